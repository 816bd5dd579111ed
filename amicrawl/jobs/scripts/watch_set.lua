-- Reads some of a set, every text cut to a length. KEYS: the set. ARGV: longest text, most members.
local longest, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = redis.pcall('SSCAN', KEYS[1], '0', 'COUNT', most)
local answer = {}
if not found.err then
  for i = 1, math.min(#found[2], most) do answer[i] = string.sub(found[2][i], 1, longest) end
end
return answer
