--!include _log
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
add_entries(record, log, tonumber(ARGV[3]), 4, #ARGV)
if redis.call('TTL', record) > 0 then
  redis.call('EXPIRE', log, redis.call('TTL', record))
end
redis.call('PUBLISH', ARGV[2], ARGV[1])
return #ARGV - 3
