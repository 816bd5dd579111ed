-- Adds entries to the log of a job that is there.
--
-- KEYS  record, log
-- ARGV  ident, updates channel, entries that the log keeps, entry...
-- Returns how many were added: none for a record that is gone, or a log that is no sorted set.
local record, log = KEYS[1], KEYS[2]

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

if kind(record) ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then
  return 0
end
if kind(log) ~= 'zset' and kind(log) ~= 'none' then
  return 0
end
local added = 0
for number = 4, #ARGV do
  local score = redis.pcall('HINCRBY', record, 'log_score', 1)
  if type(score) ~= 'number' then
    -- Another program wrote something else there: numbering continues after the last entry.
    local last = redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')
    score = math.floor(tonumber(last[2] or '') or 0) + 1
    redis.call('HSET', record, 'log_score', string.format('%.0f', score))
  end
  redis.call('ZADD', log, score, ARGV[number])
  added = added + 1
end
local surplus = redis.call('ZCARD', log) - tonumber(ARGV[3])
if surplus > 0 then
  local last = redis.call('ZRANGE', log, surplus - 1, surplus - 1, 'WITHSCORES')
  redis.call('ZREMRANGEBYRANK', log, 0, surplus - 1)
  redis.call('HSET', record, 'last_trimmed_log_entry', last[2])
end
if redis.call('TTL', record) > 0 then
  redis.call('EXPIRE', log, redis.call('TTL', record))
end
redis.call('PUBLISH', ARGV[2], ARGV[1])
return added
