-- Hands out batches of an inbox; those that the owner before had read and not acknowledged come first.
-- KEYS: claim, links    ARGV: token, batches at most, read behind this one (`0`: all; `>`: the next)
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return {'lost'} end
if redis.call('XLEN', KEYS[2]) == 0 then return {'batches', {}} end
local made = redis.pcall('XGROUP', 'CREATE', KEYS[2], 'owner', '0', 'MKSTREAM')
if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
local read = redis.call('XREADGROUP', 'GROUP', 'owner', 'partition', 'COUNT', ARGV[2], 'STREAMS', KEYS[2], ARGV[3])
if not read then return {'batches', {}} end
return {'batches', read[1][2]}
