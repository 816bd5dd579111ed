-- Reads a part of a list, every text cut to a length. KEYS: the list. ARGV: longest text, first and last place.
local found = redis.pcall('LRANGE', KEYS[1], ARGV[2], ARGV[3])
local answer = {}
if not found.err then
  for i = 1, #found do answer[i] = string.sub(found[i], 1, ARGV[1]) end
end
return answer
