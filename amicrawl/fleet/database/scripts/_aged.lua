-- What scripts that change settings have in common; put in front of those that begin with `--!include _aged`.
-- Increments the age of the settings. An age that is not a number is replaced by the time, which is greater.
local function aged(record)
  local age = redis.pcall('HINCRBY', record, 'settings_age', 1)
  if type(age) ~= 'number' then
    age = redis.call('TIME')[1]
    redis.call('HSET', record, 'settings_age', age)
  end
  return tonumber(age)
end
