-- Writes a job again that Redis has forgotten, from what its crawl remembers. What is there stays.
--
-- KEYS  record, ignores, claim, lease, desired, config, epoch, token counter, working, queue
-- ARGV  1 unit, 2 token, 3 lease in ms, 4 an epoch to begin where there is none, 5 updates channel,
--       6 the text of its crawl file or nothing, 7 how many fields of the record, 8 of the claim,
--       9 of the desired settings; then name, value... of each, then the ignores
-- Returns {1, epoch}, or {0, epoch} where the job has another owner by now.
local record, ignores, claim, lease, desired, config, epoch, counter, working, queue =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local unit, token, lease_ms = ARGV[1], ARGV[2], ARGV[3]

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

local function make(key, wanted)
  local is = kind(key)
  if is ~= wanted and is ~= 'none' then
    redis.call('DEL', key)
  end
end

local found = kind(epoch) == 'string' and redis.call('GET', epoch) or ''
if kind(claim) == 'hash' then
  local other = tonumber(redis.call('HGET', claim, 'token') or '')
  if other and other > tonumber(token) then
    return {0, found}
  end
end
if found == '' then
  found = ARGV[4]
  redis.call('SET', epoch, found)
end

local last = kind(counter) == 'string' and tonumber(redis.call('GET', counter)) or 0
if last < tonumber(token) then
  redis.call('SET', counter, token)
end
make(record, 'hash')
local at = 10
for _ = 1, tonumber(ARGV[7]) do
  redis.call('HSETNX', record, ARGV[at], ARGV[at + 1])
  at = at + 2
end
redis.call('PERSIST', record)
redis.call('DEL', claim)
for _ = 1, tonumber(ARGV[8]) do
  redis.call('HSET', claim, ARGV[at], ARGV[at + 1])
  at = at + 2
end
redis.call('HSET', claim, 'token', token, 'state', 'held')
redis.call('SET', lease, token, 'PX', lease_ms)
local has_wishes = redis.call('EXISTS', desired) == 1
for _ = 1, tonumber(ARGV[9]) do
  if not has_wishes then
    redis.call('HSET', desired, ARGV[at], ARGV[at + 1])
  end
  at = at + 2
end
if redis.call('EXISTS', ignores) == 0 then
  for number = at, #ARGV do
    redis.call('SADD', ignores, ARGV[number])
  end
end
if ARGV[6] ~= '' and redis.call('EXISTS', config) == 0 then
  redis.call('SET', config, ARGV[6])
end
if string.find(unit, '^[a-z0-9]+$') then
  make(working, 'list')
  redis.call('LREM', working, 0, unit)
  redis.call('LPUSH', working, unit)
  if kind(queue) == 'list' then
    redis.call('LREM', queue, 0, unit)
  end
end
redis.call('PUBLISH', ARGV[5], (string.gsub(unit, '%..*$', '')))
return {1, found}
