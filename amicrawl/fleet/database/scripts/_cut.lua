-- What scripts that read have in common; put in front of those that begin with `--!include _cut`.
-- Values of other writers are handed over cut to a length, and no answer is larger than its room.
local SHORTEST = 64

-- Returns *text*, cut to *longest* and to what is left of *room* (`{left = bytes}`), but not below a few bytes.
local function cut(text, longest, room)
  text = string.sub(text, 1, math.max(math.min(longest, room.left), SHORTEST))
  room.left = room.left - #text
  return text
end

-- Returns *elements*, cut, in groups of *step*; groups for which there is no room any more are left out.
local function cut_all(elements, step, longest, room)
  local kept = {}
  for place, element in ipairs(elements) do
    if place % step == 1 % step and room.left <= 0 then break end
    kept[place] = cut(element, longest, room)
  end
  return kept
end

-- Returns names and values of the hash *key*; of one with more than *most* fields, some of them.
local function fields_of(key, most)
  if redis.call('HLEN', key) <= most then return redis.call('HGETALL', key) end
  return redis.call('HSCAN', key, '0', 'COUNT', most)[2]
end

-- Returns the hash *key* as HGETALL does, cut.
local function hash(key)
  return cut_all(redis.call('HGETALL', key), 2, 65536, {left = 4194304})
end
