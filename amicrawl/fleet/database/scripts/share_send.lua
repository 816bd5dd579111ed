-- Puts batches into the inboxes of other partitions, each unless that is full or its partition is out.
-- KEYS: record, waiting, token counter, then claim, lease and links of every partition
-- ARGV: partitions, number of the sender (-1: who gives the seeds), its token, batches an inbox holds,
--       then number of the recipient and batch, again and again
local me, token, cap = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
if me >= 0 then
  if redis.call('HGET', KEYS[4 + 3 * me], 'token') ~= token then return {'lost'} end
elseif redis.call('HGET', KEYS[1], 'seeding') ~= token then
  return {'lost'}
end
local answer = {'sent'}
for k = 5, #ARGV, 2 do
  local to = tonumber(ARGV[k])
  local claim, links = KEYS[4 + 3 * to], KEYS[6 + 3 * to]
  local standing = redis.call('HGET', claim, 'state')
  if standing == 'failed' or standing == 'limit' then
    answer[#answer + 1] = 'out'
  elseif redis.call('XLEN', links) >= cap then
    answer[#answer + 1] = 'full'
  else
    redis.call('XADD', links, '*', 'v', '1', 'b', ARGV[k + 1])
    redis.call('HDEL', claim, 'idle')
    if standing == 'parked' then
      redis.call('HSET', claim, 'state', 'ready', 'turn', redis.call('HINCRBY', KEYS[1], 'turns', 1))
    end
    answer[#answer + 1] = 'taken'
  end
end
return answer
