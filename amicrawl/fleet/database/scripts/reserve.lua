--!include _claim
-- Takes the next job of some queues: out of its queue, into `working`, claimed and leased, in one step.
--
-- KEYS  working, token counter, queue...            in the order in which they are asked
-- ARGV  prefix, owner, lease in ms, how many entries may be looked at, the UUID of the owner's data
--       directory: a job that another one keeps a place for (`give_back.lua`) is passed over;
--       how many entries the last call had passed over when it might look at no more
-- Returns {refused, 0, unit, token, record as HGETALL, claim as HGETALL}, or {refused, passed} where nothing
-- was found: passed is 0 where every entry was looked at, else where the next call goes on;
-- refused is {entry, queue, reason, entry, queue, reason...}: entries of queues that are no jobs.
local working, counter = KEYS[1], KEYS[2]
local prefix, owner, lease_ms, left, store = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local refused, passed, before = {}, 0, tonumber(ARGV[6])

local function refuse(entry, queue, reason)
  table.insert(refused, entry)
  table.insert(refused, queue)
  table.insert(refused, reason)
end

-- Why an entry cannot be run; nil where it can.
local function objection(unit)
  if #unit < 16 or #unit > 25 or not string.find(unit, '^[a-z0-9]+$') then
    return 'it is not an ident'
  end
  if kind(prefix .. unit) ~= 'hash' then
    return 'there is no record of that name'
  end
  local record = redis.call('HMGET', prefix .. unit, 'url', 'finished_at', 'failed')
  if not record[1] or record[1] == '' then
    return 'its record has no url'
  end
  if (record[2] and record[2] ~= '') or (record[3] and record[3] ~= '') then
    return 'it has finished'
  end
  if redis.call('EXISTS', prefix .. 'amicrawl:lease:' .. unit) == 1 then
    return 'it is running'
  end
  return nil
end

-- Whether a job is left where it is: an FTP site, which only ArchiveBot's pipelines fetch; one that could not
-- begin a moment ago; or one with which those who have it on disk are to go on, for a while yet.
local function is_passed_over(unit)
  local record = redis.call('HMGET', prefix .. unit, 'url', 'abort_requested')
  if string.sub(string.lower(record[1]), 1, 4) == 'ftp:' then
    -- One that is to be aborted needs no crawl: it is taken to be ended.
    return not record[2] or record[2] == ''
  end
  local claim = prefix .. 'amicrawl:claim:' .. unit
  if kind(claim) ~= 'hash' then
    return false
  end
  local words = redis.call('HMGET', claim, 'store', 'kept_until', 'state', 'not_before')
  local now = tonumber(redis.call('TIME')[1])
  return words[3] == 'queued' and ((tonumber(words[4] or '') or 0) > now
    or (words[1] ~= store and (tonumber(words[2] or '') or 0) > now))
end

local function take(unit, queue)
  local claim, record = prefix .. 'amicrawl:claim:' .. unit, prefix .. unit
  forget_earlier(prefix, unit)
  if redis.call('EXISTS', claim) == 1 then
    -- An entry of ours that its owner has left behind. Others' entries stay.
    redis.call('LREM', working, 0, unit)
  end
  local token, since = hold(claim, prefix .. 'amicrawl:lease:' .. unit, counter, owner, lease_ms,
    'queue', queue, 'queued_at', redis.call('HGET', record, 'queued_at') or '')
  redis.call('LPUSH', working, unit)
  redis.call('HSET', record, 'started_at', since, 'pipeline_id', owner)
  return {refused, 0, unit, token, hash(record), hash(claim)}
end

if kind(working) ~= 'list' and kind(working) ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. working .. ' is not a list')
end
for number = 3, #KEYS do
  local queue = KEYS[number]
  local name = string.sub(queue, #prefix + 1)
  local waits = kind(queue) == 'list' and redis.call('LLEN', queue) or 0
  local kept, found = math.min(math.max(before - passed, 0), waits), nil
  while left > 0 and not found and kept < waits do
    local unit = redis.call('LINDEX', queue, -1 - kept)
    local wrong = objection(unit)
    if not wrong and is_passed_over(unit) then
      kept = kept + 1
    else
      redis.call('LREM', queue, -1, unit)
      waits = waits - 1
      if wrong then
        refuse(string.sub(unit, 1, 200), name, wrong)
      else
        found = unit
      end
    end
    left = left - 1
  end
  if found then
    return take(found, name)
  end
  passed = passed + kept
  if kept < waits then
    return {refused, passed}
  end
end
return {refused, 0}
