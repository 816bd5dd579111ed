--!include _cut
-- One step of SCAN, names cut to a length. ARGV: cursor, pattern, how many are looked at, longest name, room.
-- Returns the next cursor, `0` at the end, and the names, one a line: as elements of a list they would take
-- a reader far longer. A name with a line break is that of nothing that this project knows.
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local names = {}
for _, name in ipairs(found[2]) do
  if not string.find(name, '\n', 1, true) then names[#names + 1] = name end
end
return {found[1], table.concat(cut_all(names, 1, tonumber(ARGV[4]), {left = tonumber(ARGV[5])}), '\n')}
