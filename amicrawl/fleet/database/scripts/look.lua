--!include _cut
-- Reads claims, and for how long their leases are good yet.
-- KEYS: claim and lease of each unit. ARGV: most fields of a claim, most bytes of each, and of all.
-- Returns for each unit the fields of its claim, none where there is no hash, and PTTL of its lease.
local most, longest, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found = {}
for at = 1, #KEYS, 2 do
  local is_claim = redis.call('TYPE', KEYS[at]).ok == 'hash'
  local fields = is_claim and cut_all(fields_of(KEYS[at], most), 2, longest, {left = room}) or {}
  found[#found + 1] = {fields, redis.call('PTTL', KEYS[at + 1])}
end
return found
