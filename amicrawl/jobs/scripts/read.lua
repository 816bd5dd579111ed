-- Reads one value without handing over more of it than was asked for, whatever lies there.
-- KEYS[1]: the value. ARGV: type that is expected; most elements; most bytes of each;
-- for a sorted set: lowest and highest score, `newest` to begin at the highest; for a hash: fields that
-- are told whatever else, and however much, somebody has put beside them.
-- Returns: the type found, `none` for nothing; how many elements there are; the elements.
local key, expected = KEYS[1], ARGV[1]
local most, longest = tonumber(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('TYPE', key).ok
if found ~= expected then return {found, 0, {}} end

local size, elements
if found == 'hash' then
  size = redis.call('HLEN', key)
  if size <= most then
    elements = redis.call('HGETALL', key)
  else
    elements = redis.call('HSCAN', key, '0', 'COUNT', most)[2]
    for number = 4, #ARGV do
      local value = redis.call('HGET', key, ARGV[number])
      if value then
        table.insert(elements, ARGV[number])
        table.insert(elements, value)
      end
    end
  end
elseif found == 'set' then
  size = redis.call('SCARD', key)
  elements = size <= most and redis.call('SMEMBERS', key) or redis.call('SSCAN', key, '0', 'COUNT', most)[2]
elseif found == 'list' then
  size = redis.call('LLEN', key)
  elements = redis.call('LRANGE', key, -most, -1)
elseif found == 'zset' then
  size = redis.call('ZCARD', key)
  if ARGV[6] == 'newest' then
    elements = redis.call('ZREVRANGEBYSCORE', key, ARGV[5], ARGV[4], 'WITHSCORES', 'LIMIT', 0, most)
  else
    elements = redis.call('ZRANGEBYSCORE', key, ARGV[4], ARGV[5], 'WITHSCORES', 'LIMIT', 0, most)
  end
else
  size = redis.call('STRLEN', key)
  elements = {redis.call('GETRANGE', key, 0, longest - 1)}
end
for place, element in ipairs(elements) do
  if #element > longest then elements[place] = string.sub(element, 1, longest) end
end
return {found, size, elements}
