-- Marks a job as aborted, as ArchiveBot's own script does; not a record that is gone.
--
-- KEYS  record
-- ARGV  unit, updates channel
local record = KEYS[1]
if redis.call('TYPE', record)['ok'] ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then
  return 0
end
redis.call('HSET', record, 'aborted', 'true')
redis.call('PUBLISH', ARGV[2], ARGV[1])
return 1
