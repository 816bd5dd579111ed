-- Reads the newest entries of the list of ended jobs, every text cut to a length.
-- KEYS: the list. ARGV: most entries, longest text. Returns for each: name, value, name, value...
local answer, longest = {}, tonumber(ARGV[2])
if redis.call('TYPE', KEYS[1])['ok'] ~= 'stream' then return answer end
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[1])) do
  local fields = {}
  for number, text in ipairs(entry[2]) do
    fields[number] = string.sub(text, 1, longest)
  end
  table.insert(answer, fields)
end
return answer
