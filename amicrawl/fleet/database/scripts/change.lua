--!include _aged
-- Changes settings of an existing job and notifies its crawl; never creates a record.
-- KEYS: record, ignores, desired settings. ARGV: job channel, then changes of three texts each.
-- Returns: the new age of the settings (-1: no such job, -2: it has ended, -3: a key is of a wrong type),
-- how many things changed.
local record, ignores, desired = KEYS[1], KEYS[2], KEYS[3]
if redis.call('TYPE', record).ok ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then return {-1, 0} end
local ended = redis.call('HEXISTS', record, 'finished_at') == 1 or redis.call('HEXISTS', record, 'failed') == 1

local function fits(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end

if not fits(ignores, 'set') or not fits(desired, 'hash') then return {-3, 0} end

local changed = 0
for at = 2, #ARGV, 3 do
  local kind, name, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if ended and not (kind == 'set' and name == 'note') then return {-2, 0} end
  if kind == 'set' then
    redis.call('HSET', record, name, value)
    changed = changed + 1
  elseif kind == 'unset' then changed = changed + redis.call('HDEL', record, name)
  elseif kind == 'ignore' then changed = changed + redis.call('SADD', ignores, name)
  elseif kind == 'unignore' then changed = changed + redis.call('SREM', ignores, name)
  elseif kind == 'wish' then
    redis.call('HSET', desired, name, value)
    changed = changed + 1
  elseif kind == 'unwish' then changed = changed + redis.call('HDEL', desired, name)
  end
end
local age = aged(record)
redis.call('PUBLISH', ARGV[1], age)
return {age, changed}
