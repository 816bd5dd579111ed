--!include _cut
-- Reads the newest entries of the list of ended jobs, every text cut to a length.
-- KEYS: the list. ARGV: most entries, longest text, room. Returns for each: name, value, name, value...
local answer, room = {}, {left = tonumber(ARGV[3])}
if redis.call('TYPE', KEYS[1])['ok'] ~= 'stream' then return answer end
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[1])) do
  table.insert(answer, cut_all(entry[2], 2, tonumber(ARGV[2]), room))
end
return answer
