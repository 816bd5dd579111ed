-- Records where and how a claimed job runs, for the owner of its claim.
--
-- KEYS  claim, record
-- ARGV  token, started_at that the record gets or nothing, then field, value... of the claim
-- Returns 1, or 0 where the claim is another's.
local claim, record = KEYS[1], KEYS[2]

if redis.call('TYPE', claim)['ok'] ~= 'hash' then
  return 0
end
local held = redis.call('HMGET', claim, 'token', 'state')
if held[1] ~= ARGV[1] or held[2] ~= 'held' then
  return 0
end
for number = 3, #ARGV, 2 do
  if ARGV[number + 1] == '' then
    redis.call('HDEL', claim, ARGV[number])
  else
    redis.call('HSET', claim, ARGV[number], ARGV[number + 1])
  end
end
if redis.call('TYPE', record)['ok'] == 'hash' and redis.call('HEXISTS', record, 'url') == 1 then
  if ARGV[2] ~= '' then
    redis.call('HSET', record, 'started_at', ARGV[2])
    -- Of an attempt that begins, which has not come to its end.
    redis.call('HDEL', record, 'amicrawl_step')
  end
  local words = redis.call('HMGET', claim, 'attempt', 'resumed')
  redis.call('HSET', record, 'amicrawl_attempt', words[1] or '1')
  if words[2] and words[2] ~= '' then
    redis.call('HSET', record, 'amicrawl_resumed', words[2])
  else
    redis.call('HDEL', record, 'amicrawl_resumed')
  end
end
return 1
