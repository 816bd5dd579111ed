--!include _cut
-- Reads entries of the list of ended jobs, the newest first, every text cut to a length.
-- KEYS: the list. ARGV: id of the entry to begin behind, `+` to begin at the newest; most entries, longest text,
-- room. Returns how many entries were looked at, the id of the last, and a JSON text for each: an object of its
-- fields. One that does not fit into the room any more is left out.
if redis.call('TYPE', KEYS[1])['ok'] ~= 'stream' then return {0, ARGV[1]} end
local from = ARGV[1] == '+' and '+' or '(' .. ARGV[1]
local entries, room = redis.call('XREVRANGE', KEYS[1], from, '-', 'COUNT', ARGV[2]), tonumber(ARGV[4])
local answer = {#entries, ARGV[1]}
for _, entry in ipairs(entries) do
  local fields, texts = {}, cut_all(entry[2], 2, tonumber(ARGV[3]), {left = room})
  for place = 1, #texts - 1, 2 do fields[texts[place]] = texts[place + 1] end
  local text = cjson.encode(fields)
  room, answer[2] = room - #text, entry[1]
  if room < 0 then break end
  answer[#answer + 1] = text
end
return answer
