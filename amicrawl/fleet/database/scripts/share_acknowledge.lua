-- Takes batches out of an inbox whose links are in the frontier, on disk.
-- KEYS: claim, links    ARGV: token, then the numbers of the batches
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return {'lost'} end
for k = 2, #ARGV do
  redis.call('XACK', KEYS[2], 'owner', ARGV[k])
  redis.call('XDEL', KEYS[2], ARGV[k])
end
return {'done'}
