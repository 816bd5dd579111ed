-- Takes one unit that nobody holds: a partition of a shared crawl, which waits in no queue.
--
-- KEYS  claim, lease, token counter
-- ARGV  owner, lease in ms
-- Returns {token, claim as HGETALL}, or nil while somebody holds it.
local claim, lease, counter = KEYS[1], KEYS[2], KEYS[3]
local owner, lease_ms = ARGV[1], ARGV[2]

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

if redis.call('EXISTS', lease) == 1 then
  return false
end
if kind(claim) ~= 'hash' then
  redis.call('DEL', claim)
end
if redis.call('HGET', claim, 'state') == 'done' then
  return false
end
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local last = 0
if kind(counter) == 'string' then
  last = tonumber(redis.call('GET', counter)) or 0
end
local token = string.format('%.0f', math.max(last + 1, ms))
redis.call('SET', counter, token)
local attempt = (tonumber(redis.call('HGET', claim, 'attempt')) or 0) + 1
redis.call('HSET', claim, 'owner', owner, 'token', token, 'attempt', attempt, 'state', 'held',
  'since', now[1] .. '.' .. string.format('%06d', tonumber(now[2])))
redis.call('PERSIST', claim)
redis.call('SET', lease, token, 'PX', lease_ms)
return {token, redis.call('HGETALL', claim)}
