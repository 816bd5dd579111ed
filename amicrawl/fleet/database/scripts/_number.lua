-- What scripts that number have in common; put in front of those that begin with `--!include _number`.

-- Returns the number before the next of a series whose last one is at *counter*. It grows for ever, even over a
-- database that was emptied or put back in time: it is never behind the clock, in microseconds. By milliseconds,
-- a claim taken right after the emptying could have the token of the last one before it. What no script of ours
-- has written, from 2^52 (the year 2112) on for one, counts as none: beyond 2^53 numbers would be alike.
local function number_before(counter)
  local now = redis.call('TIME')
  local known = redis.call('TYPE', counter)['ok'] == 'string' and redis.call('GET', counter) or ''
  local last = string.find(known, '^%d+$') and tonumber(known) or 0
  if last >= 2 ^ 52 then last = 0 end
  return math.max(last, tonumber(now[1]) * 1000000 + tonumber(now[2]) - 1)
end
