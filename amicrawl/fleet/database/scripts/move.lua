-- Moves a job that waits, within its queue or into another.
-- KEYS: the queue it is to be in, then every queue. ARGV: ident, place from 1 (the next).
-- Returns: `absent` where it waits in none, else the name of the queue where it was.
local ident, place = ARGV[1], tonumber(ARGV[2])
local was = false
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'list' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' is not a list') end
for number = 2, #KEYS do
  local queue = KEYS[number]
  if redis.call('TYPE', queue).ok == 'list' and redis.call('LREM', queue, 0, ident) > 0 then was = queue end
end
if not was then return 'absent' end
local length = redis.call('LLEN', KEYS[1])
if place <= 1 then redis.call('RPUSH', KEYS[1], ident)
elseif place > length then redis.call('LPUSH', KEYS[1], ident)
else
  -- The next one is at the right. Whatever is to come before it is taken off, and put back after it.
  local before = {}
  for _ = 1, place - 1 do table.insert(before, redis.call('RPOP', KEYS[1])) end
  redis.call('RPUSH', KEYS[1], ident)
  for number = #before, 1, -1 do redis.call('RPUSH', KEYS[1], before[number]) end
end
return was
