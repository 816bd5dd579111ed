--!include _ended
-- Ends a job that is done, as ArchiveBot's own script does, and its claim.
--
-- KEYS  claim, lease, working, record, live settings, jobs_completed, jobs_aborted, finish_notifications,
--       list of ended jobs, then what expires with the record
-- ARGV  unit, token, info JSON, seconds that the record of a completed job lives, of an aborted one,
--       how many notifications are kept, updates channel
-- Returns COMPLETED, ABORTED, LOST (the claim is another's) or GONE (there is no record, or no claim).
local claim, lease, working, record = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local unit, token, info = ARGV[1], ARGV[2], ARGV[3]
local notifications = KEYS[8]

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

if kind(claim) ~= 'hash' then
  return 'GONE'
end
local held = redis.call('HMGET', claim, 'token', 'state')
if held[1] == token and held[2] == 'done' then
  -- The answer to the same call was lost.
  return 'COMPLETED'
elseif held[1] ~= token or held[2] ~= 'held' then
  return 'LOST'
end
if kind(record) ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then
  return 'GONE'
end
redis.call('HSET', record, 'finished_at', redis.call('TIME')[1])
redis.call('HDEL', record, 'amicrawl_step')
-- Whatever is done to `working` must not keep a job from ending.
redis.pcall('LREM', working, 1, unit)
-- Live settings end with the job, and do not wait for the next one of its ident.
redis.call('DEL', lease, KEYS[5])
local aborted = redis.call('HGET', record, 'aborted')
local answer, counter, keep = 'COMPLETED', KEYS[6], ARGV[4]
if aborted and aborted ~= '' then
  answer, counter, keep = 'ABORTED', KEYS[7], ARGV[5]
end
redis.call('HSET', claim, 'state', 'done')
if not tonumber(redis.pcall('INCR', counter)) then
  redis.call('SET', counter, 1)
end
redis.call('EXPIRE', claim, keep)
redis.call('EXPIRE', record, keep)
for number = 10, #KEYS do
  redis.call('EXPIRE', KEYS[number], keep)
end
if kind(notifications) ~= 'list' then
  redis.call('DEL', notifications)
end
redis.call('RPUSH', notifications, info)
redis.call('LTRIM', notifications, -tonumber(ARGV[6]), -1)
remember(KEYS[9], unit, record)
redis.call('PUBLISH', ARGV[7], unit)
return answer
