--!include _cut
-- Reads some of a set, every text cut to a length. KEYS: the set. ARGV: longest text, room, most members.
local found = redis.pcall('SSCAN', KEYS[1], '0', 'COUNT', ARGV[3])
if found.err then return {} end
local kept = cut_all(found[2], 1, tonumber(ARGV[1]), {left = tonumber(ARGV[2])})
for i = tonumber(ARGV[3]) + 1, #kept do kept[i] = nil end
return kept
