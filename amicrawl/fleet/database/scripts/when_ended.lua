-- Tells when jobs ended. KEYS: their records.
-- Returns for each, with blanks between: the second at which it ended, 0 where that is not known, or `-` where
-- it has not ended, or is none. One text, since a list of as many elements would take a reader far longer.
local function second(text)
  local found = text and string.match(string.sub(text, 1, 40), '^%+?(%d+)')
  return found and #found < 18 and found
end

local seconds = {}
for place, key in ipairs(KEYS) do
  local found = redis.pcall('HMGET', key, 'url', 'finished_at', 'failed', 'aborted', 'amicrawl_failed_at')
  local has = function(number) return found[number] and found[number] ~= '' end
  seconds[place] = '-'
  if not found.err and has(1) and (second(found[2]) or has(3) or has(4)) then
    seconds[place] = second(found[2]) or second(found[5]) or '0'
  end
end
return table.concat(seconds, ' ')
