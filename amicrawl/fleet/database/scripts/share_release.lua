-- Gives a partition back: parked where nothing is left to do, else ready, or out after too many attempts.
-- KEYS: record, claim, lease, links
-- ARGV: token, how its crawl ended (`ended`, `crashed`, `limit` or `busy`), place it was shipped to, failures in a row at most
local mine = redis.call('HMGET', KEYS[2], 'token', 'idle', 'failures')
if mine[1] ~= ARGV[1] then return 'lost' end
local held = redis.call('GET', KEYS[3])
if held and held ~= ARGV[1] then return 'lost' end
local standing, failures = 'ready', 0
if ARGV[2] == 'crashed' then
  failures = (tonumber(mine[3]) or 0) + 1
  if failures >= tonumber(ARGV[4]) then standing = 'failed' end
elseif ARGV[2] == 'busy' then
  failures = tonumber(mine[3]) or 0
elseif ARGV[2] == 'limit' then
  standing = 'limit'
elseif mine[2] == '1' and redis.call('XLEN', KEYS[4]) == 0 then
  standing = 'parked'
end
redis.call('HSET', KEYS[2], 'state', standing, 'failures', failures,
  'turn', redis.call('HINCRBY', KEYS[1], 'turns', 1))
redis.call('HDEL', KEYS[2], 'token', 'owner', 'idle', 'giving', 'begun')
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], 'place', ARGV[3], 'shipped', ARGV[1])
end
redis.call('DEL', KEYS[3])
return standing
