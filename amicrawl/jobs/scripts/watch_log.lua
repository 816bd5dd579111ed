-- Reads the newest entries of many logs behind a number each, every text cut to a length.
-- KEYS: the logs. ARGV: longest text, most entries of a log, the highest number, and for each log the
-- number behind which it is read.
-- Returns for each log: number, text, number, text ... the oldest first.
local longest, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local answer = {}
for i = 1, #KEYS do
  local newest = redis.pcall('ZREVRANGEBYSCORE', KEYS[i], ARGV[3], '(' .. ARGV[3 + i], 'WITHSCORES', 'LIMIT', 0, most)
  local entries = {}
  if not newest.err then
    for j = #newest - 1, 1, -2 do
      entries[#entries + 1] = newest[j + 1]
      entries[#entries + 1] = string.sub(newest[j], 1, longest)
    end
  end
  answer[i] = entries
end
return answer
