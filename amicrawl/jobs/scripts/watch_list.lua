--!include _cut
-- Reads a part of a list, every text cut to a length. KEYS: the list. ARGV: longest text, first and last place.
local found = redis.pcall('LRANGE', KEYS[1], ARGV[2], ARGV[3])
return found.err and {} or cut_all(found, 1, tonumber(ARGV[1]), {left = math.huge})
