--!include _claim
-- Takes one unit that is not held, out of any queue: the job that a crawl was begun for by hand.
--
-- KEYS  claim, lease, token counter, record
-- ARGV  prefix, unit, owner, lease in ms
-- Returns {token, claim as HGETALL}, or nil while it is held, or where it has ended.
local claim, lease, counter, record = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

if redis.call('EXISTS', lease) == 1 then
  return false
end
forget_earlier(ARGV[1], ARGV[2])
local queued_at = kind(record) == 'hash' and redis.call('HGET', record, 'queued_at') or ''
local token = hold(claim, lease, counter, ARGV[3], ARGV[4], 'queued_at', queued_at)
return {token, hash(claim)}
