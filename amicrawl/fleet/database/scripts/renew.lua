-- Renews a lease for the owner of its claim.
--
-- KEYS  claim, lease, record
-- ARGV  token, lease in ms, by how much the heartbeat of the record grows, 1 where it is the crawl itself
--       that renews
-- Returns RENEWED; REGAINED where the lease had run out and the claim is still the caller's; LOST where
-- it is another's; GONE where there is no claim, or an older one: Redis was emptied, or put back in time.
local claim, lease, record = KEYS[1], KEYS[2], KEYS[3]
local token, lease_ms, beats = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('TYPE', claim)['ok'] ~= 'hash' then
  return 'GONE'
end
local held = redis.call('HMGET', claim, 'token', 'state')
if held[1] ~= token then
  local other = tonumber(held[1] or '')
  return other and other < tonumber(token) and 'GONE' or 'LOST'
elseif held[2] ~= 'held' then
  return 'LOST'
end
local answer = 'RENEWED'
local current = redis.call('TYPE', lease)['ok'] == 'string' and redis.call('GET', lease)
if current ~= token then
  answer = 'REGAINED'
end
redis.call('SET', lease, token, 'PX', lease_ms)
-- Since when another worker has seen that it had run out (`share_take.lua`).
redis.call('HDEL', claim, 'lapsed_at')
if ARGV[4] == '1' then
  redis.call('HSET', claim, 'begun', token)
end
-- The heartbeat does not create a record that is missing.
if beats > 0 and redis.call('TYPE', record)['ok'] == 'hash' and redis.call('HEXISTS', record, 'url') == 1 then
  if not tonumber(redis.pcall('HINCRBY', record, 'heartbeat', beats)) then
    redis.call('HSET', record, 'heartbeat', beats)
  end
end
return answer
