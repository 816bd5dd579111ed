--!include _ended
-- Ends a claim whose job is not done: the job is requeued at the front of its queue, or marked as failed.
--
-- KEYS  claim, lease, working, record, live settings, jobs_failed, list of ended jobs, then what expires with the record
-- ARGV  prefix, unit, token, what has happened (drained, crashed, lapsed, unable), why in a sentence,
--       how many failures in a row end the job (or how many owners that were unable), seconds until the
--       record of a failed job expires, updates channel,
--       seconds after which an attempt counts as having gone well, seconds for which the job is kept
--       for pipelines of the same data directory, whether there is a bucket from which others can resume it
-- Returns QUEUED, DEAD, FAILED (another program has marked the record as failed), LOST (the claim is another's),
--       HELD (the lease is good) or GONE (no record).
local claim, lease, working, record = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local prefix, unit, token, happened, why = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local borne, keep, updates, well = tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

if kind(claim) ~= 'hash' then
  return 'GONE'
end
local held = redis.call('HMGET', claim, 'token', 'state', 'queue', 'since', 'failures', 'unable')
if held[1] ~= token then
  return 'LOST'
end
-- The answer to the same call was lost.
if held[2] == 'queued' then
  return 'QUEUED'
elseif held[2] == 'dead' then
  return 'DEAD'
elseif held[2] ~= 'held' then
  return 'LOST'
end
if happened == 'lapsed' and redis.call('EXISTS', lease) == 1 then
  return 'HELD'
end
redis.call('DEL', lease)
if kind(record) ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then
  redis.call('DEL', claim, KEYS[5])
  for number = 8, #KEYS do
    redis.call('DEL', KEYS[number])
  end
  redis.pcall('LREM', working, 0, unit)
  return 'GONE'
end
local marked = redis.call('HGET', record, 'failed')
if marked and marked ~= '' then
  -- Whoever marked it has counted it, and decides how long its record is kept.
  redis.pcall('LREM', working, 0, unit)
  redis.call('DEL', KEYS[5])
  redis.call('HDEL', record, 'amicrawl_step')
  redis.call('HSET', claim, 'state', 'dead', 'why', 'it was marked as failed')
  redis.call('EXPIRE', claim, keep)
  redis.call('PUBLISH', updates, unit)
  return 'FAILED'
end
local failures, unable = tonumber(held[5]) or 0, tonumber(held[6]) or 0
local is_over = false
if happened == 'unable' then
  unable = unable + 1
  is_over = unable >= borne
elseif happened ~= 'drained' then
  local now = tonumber(redis.call('TIME')[1])
  if now - (tonumber(held[4]) or now) >= well then
    failures = 0
  end
  failures, unable = failures + 1, 0
  is_over = failures >= borne
end
redis.pcall('LREM', working, 0, unit)
redis.call('HSET', claim, 'failures', failures, 'unable', unable, 'why', why)
redis.call('HDEL', record, 'amicrawl_step')
local answer = 'QUEUED'
if is_over then
  answer = 'DEAD'
  redis.call('HSET', claim, 'state', 'dead')
  redis.call('DEL', KEYS[5])
  redis.call('HSET', record, 'failed', 'true', 'amicrawl_failed_at', redis.call('TIME')[1])
  if not tonumber(redis.pcall('INCR', KEYS[6])) then
    redis.call('SET', KEYS[6], 1)
  end
  remember(KEYS[7], unit, record)
  redis.call('EXPIRE', claim, keep)
  redis.call('EXPIRE', record, keep)
  for number = 8, #KEYS do
    redis.call('EXPIRE', KEYS[number], keep)
  end
else
  local queue = held[3] or ''
  if string.sub(queue, 1, 7) ~= 'pending' then
    queue = 'pending'
  end
  if kind(prefix .. queue) ~= 'list' and kind(prefix .. queue) ~= 'none' then
    queue = 'pending'
  end
  local kept_until, not_before = 0, 0
  if happened == 'unable' then
    -- Other jobs go first: the pause before the next try doubles with each failure.
    not_before = tonumber(redis.call('TIME')[1]) + math.min(2 ^ math.min(unable, 10), 60)
  end
  local bucket = ARGV[11] == '1'
  local in_bucket = redis.call('HEXISTS', claim, 'shipped') + redis.call('HEXISTS', claim, 'checkpoint') > 0
  -- After a crash its pipeline is there yet, and can resume it; one that drains is about to go.
  if (happened == 'crashed' and not (bucket and in_bucket)) or (happened == 'drained' and not bucket) then
    kept_until = tonumber(redis.call('TIME')[1]) + tonumber(ARGV[10])
  end
  redis.call('HSET', claim, 'state', 'queued', 'kept_until', string.format('%.0f', kept_until),
    'not_before', string.format('%.0f', not_before))
  -- The right end is taken from: it is next.
  redis.call('RPUSH', prefix .. queue, unit)
  redis.call('HDEL', record, 'started_at', 'pipeline_id')
end
redis.call('PUBLISH', updates, unit)
return answer
