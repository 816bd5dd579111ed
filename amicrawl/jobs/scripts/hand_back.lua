-- Writes a claim again that Redis has forgotten, for the one who held it.
--
-- KEYS  claim, lease, token counter, working
-- ARGV  unit, token, lease in ms, then field, value... of the claim
-- Returns 1, or 0 where somebody has a claim by now.
local claim, lease, counter, working = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local unit, token, lease_ms = ARGV[1], ARGV[2], ARGV[3]

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

if redis.call('EXISTS', claim) == 1 or redis.call('EXISTS', lease) == 1 then
  return 0
end
for number = 4, #ARGV, 2 do
  redis.call('HSET', claim, ARGV[number], ARGV[number + 1])
end
redis.call('HSET', claim, 'token', token, 'state', 'held')
redis.call('SET', lease, token, 'PX', lease_ms)
local last = 0
if kind(counter) == 'string' then
  last = tonumber(redis.call('GET', counter)) or 0
end
-- No token comes twice, also where the clock of Redis was put back.
if last < tonumber(token) then
  redis.call('SET', counter, token)
end
if string.find(unit, '^[a-z0-9]+$') then
  redis.pcall('LREM', working, 0, unit)
  redis.pcall('LPUSH', working, unit)
end
return 1
