--!include _cut
-- Reads one value, whatever its type and size, within bounds.
-- KEYS[1]: the value. ARGV: type that is expected; most elements; most bytes of each, and of all;
-- for a sorted set: lowest and highest score, `newest` to begin at the highest; for a hash: fields that
-- are returned in any case, however many others there are.
-- Returns: the type found, `none` for nothing; how many elements there are; the elements.
local key, expected = KEYS[1], ARGV[1]
local most, longest, room = tonumber(ARGV[2]), tonumber(ARGV[3]), {left = tonumber(ARGV[4])}
local found = redis.call('TYPE', key).ok
if found ~= expected then return {found, 0, {}} end

local size, elements
local first = {}
if found == 'hash' then
  size = redis.call('HLEN', key)
  for number = 5, #ARGV do
    local value = redis.call('HGET', key, ARGV[number])
    if value then
      first[#first + 1] = ARGV[number]
      first[#first + 1] = cut(value, longest, room)
    end
  end
  elements = fields_of(key, most)
elseif found == 'set' then
  size = redis.call('SCARD', key)
  elements = size <= most and redis.call('SMEMBERS', key) or redis.call('SSCAN', key, '0', 'COUNT', most)[2]
elseif found == 'list' then
  size = redis.call('LLEN', key)
  elements = redis.call('LRANGE', key, -most, -1)
elseif found == 'zset' then
  size = redis.call('ZCARD', key)
  if ARGV[7] == 'newest' then
    elements = redis.call('ZREVRANGEBYSCORE', key, ARGV[6], ARGV[5], 'WITHSCORES', 'LIMIT', 0, most)
  else
    elements = redis.call('ZRANGEBYSCORE', key, ARGV[5], ARGV[6], 'WITHSCORES', 'LIMIT', 0, most)
  end
else
  size = redis.call('STRLEN', key)
  elements = {redis.call('GETRANGE', key, 0, longest - 1)}
end
elements = cut_all(elements, (found == 'hash' or found == 'zset') and 2 or 1, longest, room)
-- The required fields come last: of two values for one name the reader takes the last.
for _, text in ipairs(first) do elements[#elements + 1] = text end
return {found, size, elements}
