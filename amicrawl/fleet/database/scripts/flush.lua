--!include _log
-- One flush of a crawl: renews its lease, writes its figures, adds its log entries and returns its live
-- settings. Nothing is written for a crawl whose claim has another owner, or into a record that is missing.
--
-- KEYS  record, ignores, log, claim, lease, desired, facts, epoch, token counter
-- ARGV  1 unit, 2 token, 3 lease in ms or 0 to renew nothing, 4 the age of the settings that the crawl
--       has, or nothing to get all of them, 5 the epoch it knows or nothing, 6 an epoch to begin where there
--       is none, 7 updates channel, 8 entries that the log keeps, 9 by how much the heartbeat grows,
--       10 how many figures, 11 how many facts, 12 how many fields of the record are settings; then the
--       names of the latter, then name, value... of figures and facts, then the log entries
-- Returns {what, regained, epoch, {age, abort_requested, failed, log_score}, faults, settings, ignores,
--       desired}. what: OK; LOST (the claim is another's, or the job is over); GONE (Redis was emptied,
--       or put back to what it was before the claim); ENDED (another program has removed the record);
--       ODD (a key of ours is of a wrong type). settings, ignores and desired are nil where they are
--       unchanged; each of them is nil, too, where it cannot be read, and then a fault says why.
local record, ignores, log, claim, lease, desired, facts, epoch, counter =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local unit, token, lease_ms, known = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local MOST_IGNORES, LONGEST, SHOWN = 5000, 4096, 100

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

local found = kind(epoch) == 'string' and redis.call('GET', epoch) or ''
local same = ARGV[5] == '' or found == ARGV[5]

local function over(what)
  return {what, 0, found}
end

local kind_of_claim = kind(claim)
if kind_of_claim == 'none' then
  -- Tokens only grow: where the last one is older than ours, Redis was put back in time.
  local last = kind(counter) == 'string' and tonumber(redis.call('GET', counter)) or 0
  return over(same and last >= tonumber(token) and 'LOST' or 'GONE')
elseif kind_of_claim ~= 'hash' then
  return over('ODD')
end
local held = redis.call('HMGET', claim, 'token', 'state')
if held[1] ~= token then
  local other = tonumber(held[1] or '')
  return over(other and other < tonumber(token) and 'GONE' or 'LOST')
elseif held[2] ~= 'held' then
  return over('LOST')
end
local kind_of_record = kind(record)
if kind_of_record == 'none' or (kind_of_record == 'hash' and redis.call('HEXISTS', record, 'url') == 0) then
  return over(same and 'ENDED' or 'GONE')
end

if found == '' then
  found = ARGV[5] ~= '' and ARGV[5] or ARGV[6]
  redis.call('SET', epoch, found)
end
local regained = 0
if lease_ms > 0 then
  if kind(lease) ~= 'string' or redis.call('GET', lease) ~= token then
    regained = 1
  end
  redis.call('SET', lease, token, 'PX', lease_ms)
  redis.call('HSET', claim, 'begun', token)
end

local faults = {}
local function fault(text)
  table.insert(faults, string.sub(text, 1, 300))
end
if kind_of_record ~= 'hash' then
  fault('the record is a ' .. kind_of_record .. ', not a hash')
end
local sound = kind_of_record == 'hash'

local fields = {unpack(ARGV, 13, 12 + tonumber(ARGV[12]))}
local facts_at = 13 + #fields + 2 * tonumber(ARGV[10])
local at = facts_at + 2 * tonumber(ARGV[11])
if sound and facts_at > 13 + #fields then
  redis.call('HSET', record, unpack(ARGV, 13 + #fields, facts_at - 1))
end
if kind(facts) ~= 'hash' and kind(facts) ~= 'none' then
  fault('the facts are a ' .. kind(facts) .. ', not a hash')
  redis.call('DEL', facts)
end
if at > facts_at then
  redis.call('HSET', facts, unpack(ARGV, facts_at, at - 1))
end
if sound and tonumber(ARGV[9]) > 0 and not tonumber(redis.pcall('HINCRBY', record, 'heartbeat', ARGV[9])) then
  redis.call('HSET', record, 'heartbeat', ARGV[9])
end

local score
local kind_of_log = kind(log)
if kind_of_log ~= 'zset' and kind_of_log ~= 'none' then
  fault('the log is a ' .. kind_of_log .. ', not a sorted set')
elseif sound and at <= #ARGV then
  local repaired
  score, repaired = add_entries(record, log, tonumber(ARGV[8]), at, #ARGV)
  if repaired then fault('log_score was no number') end
  -- The figures have counted these entries: an analyzer of ArchiveBot must not do it again.
  local analyzed = tonumber(redis.call('HGET', record, 'last_analyzed_log_entry') or '')
  if not analyzed or analyzed < score then
    redis.call('HSET', record, 'last_analyzed_log_entry', string.format('%.0f', score))
  end
end
if lease_ms > 0 or at <= #ARGV then
  redis.call('PUBLISH', ARGV[7], (string.gsub(unit, '%..*$', '')))
end

local state = {'', '', '', ''}
if sound then
  state = redis.call('HMGET', record, 'settings_age', 'abort_requested', 'failed', 'log_score')
  for number = 1, 4 do
    state[number] = string.sub(state[number] or '', 1, SHOWN)
  end
end
if not sound or (known ~= '' and known == (state[1] == '' and '0' or state[1])) then
  return {'OK', regained, found, state, faults}
end

local settings = redis.call('HMGET', record, unpack(fields))
for number = 1, #fields do
  settings[number] = string.sub(settings[number] or '', 1, LONGEST)
end
local patterns = false
if kind(ignores) == 'none' then
  patterns = {}
elseif kind(ignores) ~= 'set' then
  fault('the ignores are a ' .. kind(ignores) .. ', not a set')
elseif redis.call('SCARD', ignores) > MOST_IGNORES then
  fault('there are more than ' .. MOST_IGNORES .. ' ignores')
else
  patterns = {}
  for _, pattern in ipairs(redis.call('SMEMBERS', ignores)) do
    if #pattern > LONGEST then
      fault('an ignore of more than ' .. LONGEST .. ' characters: ' .. string.sub(pattern, 1, SHOWN))
    else
      table.insert(patterns, pattern)
    end
  end
end
local wishes = false
if kind(desired) == 'none' then
  wishes = {}
elseif kind(desired) ~= 'hash' then
  fault('the desired settings are a ' .. kind(desired) .. ', not a hash')
else
  local paused = redis.call('HGET', desired, 'paused')
  wishes = paused and {'paused', string.sub(paused, 1, SHOWN)} or {}
end
return {'OK', regained, found, state, faults, settings, patterns, wishes}
