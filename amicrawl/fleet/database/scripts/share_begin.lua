-- Writes a shared crawl down, unless there is one of its name. Without batches, its partitions are parked.
-- KEYS: record, names of all, then the claim of every partition
-- ARGV: name, then fields and values of the record
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('SADD', KEYS[2], ARGV[1])
for k = 3, #KEYS do redis.call('HSETNX', KEYS[k], 'state', 'parked') end
return 1
