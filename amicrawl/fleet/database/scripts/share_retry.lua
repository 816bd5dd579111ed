-- Makes partitions that failed ready again, and then has every outbox sent once more.
-- KEYS: record, waiting, token counter, then claim, lease and links of every partition
-- ARGV: partitions, whether outboxes are sent once more in any case (1 or 0)
if redis.call('HEXISTS', KEYS[1], 'state') == 0 then return -1 end
local again = 0
for i = 0, tonumber(ARGV[1]) - 1 do
  local standing = redis.call('HGET', KEYS[4 + 3 * i], 'state')
  if standing == 'failed' or standing == 'limit' then again = again + 1 end
end
if again > 0 or ARGV[2] == '1' then
  redis.call('HSET', KEYS[1], 'state', 'open')
  redis.call('HINCRBY', KEYS[1], 'epoch', 1)
  for i = 0, tonumber(ARGV[1]) - 1 do
    if redis.call('HGET', KEYS[4 + 3 * i], 'state') ~= 'held' then
      redis.call('HSET', KEYS[4 + 3 * i], 'state', 'ready', 'failures', 0)
    else
      redis.call('HDEL', KEYS[4 + 3 * i], 'idle')
    end
  end
end
redis.call('HDEL', KEYS[1], 'stop')
return again
