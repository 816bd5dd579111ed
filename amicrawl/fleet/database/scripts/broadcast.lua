-- Moves the mark up to which the log of a job was broadcast, unless another program has moved it since.
-- KEYS: the record. ARGV: the mark as it was read, the new one, the time.
-- Returns 1 where it was moved.
if redis.call('HEXISTS', KEYS[1], 'url') == 0 then return 0 end
local present = redis.call('HGET', KEYS[1], 'last_broadcasted_log_entry') or ''
if present ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'last_broadcasted_log_entry', ARGV[2], 'ts', ARGV[3])
return 1
