-- Requeues what a consumer has taken that has been silent for too long.
-- KEYS: queue, what it has taken, consumers by the time of their last call.
-- ARGV: consumer, seconds of silence that are too long, who asks, group of a stream's consumers.
-- Returns how many seeds were put back, or are the asker's now; -1 where they cannot be put back.
local queue, taken, consumers = KEYS[1], KEYS[2], KEYS[3]
local consumer, silence, asker, group = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local heard = tonumber(redis.call('ZSCORE', consumers, consumer) or '')
if not heard or tonumber(redis.call('TIME')[1]) - heard < silence then return 0 end

local count = 0
if redis.call('TYPE', queue).ok == 'stream' then
  local ids = {}
  local waiting = redis.pcall('XPENDING', queue, group, '-', '+', 1000, consumer)
  if not waiting.err then
    for _, entry in ipairs(waiting) do table.insert(ids, entry[1]) end
  end
  if #ids > 0 then
    redis.call('XCLAIM', queue, group, asker, 0, unpack(ids))
    count = #ids
  end
  if #ids == 1000 then return count end
  redis.pcall('XGROUP', 'DELCONSUMER', queue, group, consumer)
end
if redis.call('TYPE', taken).ok == 'hash' then
  for number, text in pairs((function()
    local found, pairs_ = redis.call('HSCAN', taken, '0', 'COUNT', 1000)[2], {}
    for place = 1, #found, 2 do pairs_[found[place]] = found[place + 1] end
    return pairs_
  end)()) do
    local how, seed = string.match(text, '^([lsz][^:]*):(.*)$')
    local done
    if not how then done = {err = 'odd'}
    elseif how == 'l' then
      done = redis.pcall('LPUSH', queue, seed)
      -- A user who may not submit jobs may push at the end only.
      if type(done) == 'table' and done.err then done = redis.pcall('RPUSH', queue, seed) end
    elseif how == 's' then done = redis.pcall('SADD', queue, seed)
    else done = redis.pcall('ZADD', queue, string.sub(how, 2), seed) end
    if type(done) == 'table' and done.err then return -1 end
    redis.call('HDEL', taken, number)
    count = count + 1
  end
  if redis.call('EXISTS', taken) == 1 then return count end
end
redis.call('ZREM', consumers, consumer)
return count
