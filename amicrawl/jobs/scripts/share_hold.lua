-- Keeps the lease of a partition whose crawl is starting or has ended, for the worker around it.
-- Once the crawl itself has renewed it, it has to go on doing so: one that hangs loses its lease.
-- KEYS: claim, lease    ARGV: token, lease in ms, crawl is running (1 or 0)
local mine = redis.call('HMGET', KEYS[1], 'token', 'ticked')
local held = redis.call('GET', KEYS[2])
if mine[1] ~= ARGV[1] or (held and held ~= ARGV[1]) then return 'lost' end
if ARGV[3] == '1' and mine[2] == ARGV[1] then
  if held then return 'its own' end
  return 'lapsed'
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('HDEL', KEYS[1], 'lapsed_at')
return 'held'
