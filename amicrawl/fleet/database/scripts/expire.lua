-- Forgets a job that has ended.
-- KEYS: record, ignores, log, keys of ours. Returns `absent`, `alive` (it has no expiry yet) or `gone`.
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HEXISTS', KEYS[1], 'url') == 0 then return 'absent' end
if redis.call('TTL', KEYS[1]) < 0 then return 'alive' end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, 0) end
return 'gone'
