--!include _cut
-- Reads the newest entries of many logs behind a number each, every text cut to a length.
-- KEYS: the logs. ARGV: longest text, room for all, most entries of a log, the highest number, and for each
-- log the number behind which it is read.
-- Returns for each log: number, text, number, text ... the oldest first; the newest that there is room for.
local longest, left, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = {}
for i = 1, #KEYS do
  local newest = redis.pcall('ZREVRANGEBYSCORE', KEYS[i], ARGV[4], '(' .. ARGV[4 + i], 'WITHSCORES', 'LIMIT', 0, most)
  local entries, share = {}, left / (#KEYS - i + 1)
  local room = {left = share}
  if not newest.err then
    newest = cut_all(newest, 2, longest, room)
    for j = #newest - 1, 1, -2 do
      entries[#entries + 1] = newest[j + 1]
      entries[#entries + 1] = newest[j]
    end
  end
  answer[i] = entries
  left = left - share + room.left
end
return answer
