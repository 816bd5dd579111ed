-- Notes that what was shipped lies in the data directory of its new owner now: it is the truth from here on.
-- KEYS: claim    ARGV: token, store
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'store', ARGV[2])
redis.call('HDEL', KEYS[1], 'place')
return 1
