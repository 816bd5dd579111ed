--!include _aged
--!include _ended
--!include _log
-- Aborts a job: asks its crawl to, or takes it out of the queues where it still waits and ends it here.
-- KEYS: record, ignores, log, working, count of aborted jobs, notifications, lease, list of ended jobs, keys
-- of ours that go with the job, as many as ARGV[7] says, then every queue.
-- ARGV: ident, job channel, updates channel, now (whole seconds), expiry (seconds), info (JSON), number of keys of ours,
-- most notifications, most entries of a log, then the entries that the log gets if the job is ended here.
-- Returns: `absent`, `ended`, `asked` (its crawl will), `removed` (it waited) or `again` (asked before).
local record, working = KEYS[1], KEYS[4]
local ident, channel, updates, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('TYPE', record).ok ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then return 'absent' end
if redis.call('HEXISTS', record, 'finished_at') == 1 or redis.call('HEXISTS', record, 'failed') == 1 then return 'ended' end

local ours = tonumber(ARGV[7])
local waited = 0
for place = 9 + ours, #KEYS do
  if redis.call('TYPE', KEYS[place]).ok == 'list' then
    waited = waited + redis.call('LREM', KEYS[place], 0, ident)
  end
end
local asked = redis.call('HEXISTS', record, 'abort_requested') == 1
redis.call('HSET', record, 'abort_requested', 'true')
redis.call('PUBLISH', channel, aged(record))

local works = redis.call('EXISTS', KEYS[7]) == 1
if redis.call('TYPE', working).ok == 'list' then
  works = works or redis.call('LPOS', working, ident)
end
if works then return asked and 'again' or 'asked' end

-- No pipeline crawls it: what a pipeline does at the end of a job is done here.
local kind_of_log = redis.call('TYPE', KEYS[3]).ok
if #ARGV > 9 and (kind_of_log == 'zset' or kind_of_log == 'none') then
  add_entries(record, KEYS[3], tonumber(ARGV[9]), 10, #ARGV)
end
redis.call('HSET', record, 'aborted', 'true')
redis.call('HSET', record, 'finished_at', now)
if not tonumber(redis.pcall('INCR', KEYS[5])) then redis.call('SET', KEYS[5], 1) end
for place = 1, 3 do redis.call('EXPIRE', KEYS[place], ARGV[5]) end
for place = 9, 8 + ours do redis.call('EXPIRE', KEYS[place], ARGV[5]) end
local kind = redis.call('TYPE', KEYS[6]).ok
if kind == 'list' or kind == 'none' then
  redis.call('RPUSH', KEYS[6], ARGV[6])
  redis.call('LTRIM', KEYS[6], -tonumber(ARGV[8]), -1)
end
remember(KEYS[8], ident, record)
redis.call('PUBLISH', updates, ident)
return 'removed'
