--!include _cut
-- One step of SCAN, names cut to a length. ARGV: cursor, pattern, how many are looked at, longest name, room.
-- Returns the next cursor, `0` at the end, and the names.
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
return {found[1], cut_all(found[2], 1, tonumber(ARGV[4]), {left = tonumber(ARGV[5])})}
