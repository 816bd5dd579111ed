--!include _number
-- Takes the next seeds of a queue for one consumer, which has them until it acknowledges them.
-- KEYS: queue, what the consumer has taken, consumers by when they were heard of, the last number of a seed.
-- ARGV: consumer, how many, most bytes of each that are returned, group of a stream's consumers.
-- Returns: the type of the queue (`none`; `odd` where a key of ours is of a wrong type), then of each
-- seed its number and its text, or the number and the fields of a stream's entry.
local queue, taken, consumers, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local consumer, most, longest, group = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local function fits(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end

if not (fits(taken, 'hash') and fits(consumers, 'zset') and fits(counter, 'string')) then return {'odd'} end
redis.call('ZADD', consumers, redis.call('TIME')[1], consumer)
local kind = redis.call('TYPE', queue).ok
if most < 1 then return {kind} end
local answer = {kind}

local function cut(text) return string.sub(text, 1, longest) end

-- How it came is kept with it, so that it can be put back as it was. Its number does not come back: a consumer has
-- seeds from before the database was emptied, and would take a new one for one of those.
local last = number_before(counter)
local function take(text, how)
  last = last + 1
  local number = string.format('%.0f', last)
  redis.call('HSET', taken, number, how .. text)
  table.insert(answer, {number, cut(text)})
end

if kind == 'list' then
  for _, text in ipairs(redis.call('LPOP', queue, most)) do take(text, 'l:') end
elseif kind == 'set' then
  for _, text in ipairs(redis.call('SPOP', queue, most)) do take(text, 's:') end
elseif kind == 'zset' then
  local found = redis.call('ZPOPMAX', queue, most)
  for place = 1, #found, 2 do take(found[place], 'z' .. found[place + 1] .. ':') end
elseif kind == 'stream' then
  redis.pcall('XGROUP', 'CREATE', queue, group, '0')
  local found = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', most, 'STREAMS', queue, '>')
  for _, entry in ipairs(found and found[1][2] or {}) do
    local seed = {entry[1]}
    for _, text in ipairs(entry[2] or {}) do table.insert(seed, cut(text)) end
    table.insert(answer, seed)
  end
end
if kind ~= 'stream' and #answer > 1 then redis.call('SET', counter, string.format('%.0f', last)) end
return answer
