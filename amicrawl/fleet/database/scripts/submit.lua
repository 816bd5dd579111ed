--!include _cut
-- Writes a new job: its record, its ignores, its place in a queue, the last step last.
-- KEYS: record, ignores, log, queue, then keys of ours that go with the job.
-- ARGV: ident, policy (`refuse`, `force`, or seconds since it ended), now (whole seconds), job channel,
-- how many steps, and each: its kind, how many texts, the texts.
-- Returns: what was done (`new`, `again`, `known`, `odd`), and for `known` the record that is there.
local record, ignores, log, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ident, policy, now, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local done = 'new'

if redis.call('EXISTS', record) == 1 then
  local kind = redis.call('TYPE', record).ok
  if kind ~= 'hash' then return {'odd', kind} end
  if redis.call('HEXISTS', record, 'url') == 1 then
    local known = redis.call('HMGET', record, 'finished_at', 'aborted', 'failed')
    local finished_at = tonumber(known[1] or '')
    local ended = finished_at or known[3]
    local old = policy ~= 'refuse' and policy ~= 'force' and finished_at and now - finished_at >= tonumber(policy)
    if not ended or (policy ~= 'force' and not old) then
      return {'known', hash(record)}
    end
    done = 'again'
  end
end
local kind = redis.call('TYPE', queue).ok
if kind ~= 'list' and kind ~= 'none' then return {'odd queue', kind} end

-- What is left of an earlier job of this URL, or was left behind by a writer that came too late. Only
-- where there is some: a server that is full refuses a script until its first write, and then no more.
for place, key in ipairs(KEYS) do
  if place ~= 4 and redis.call('EXISTS', key) == 1 then redis.call('DEL', key) end
end

local at = 5
local function taken()
  at = at + 1
  return ARGV[at - 1]
end

local function several(count)
  local texts = {}
  for _ = 1, count do table.insert(texts, taken()) end
  return texts
end

local function aged(publish)
  local age = redis.call('HINCRBY', record, 'settings_age', 1)
  if publish then redis.call('PUBLISH', channel, age) end
end

local steps = tonumber(taken())
for _ = 1, steps do
  local step, texts = taken(), nil
  texts = several(tonumber(taken()))
  if step == 'set' then redis.call('HSET', record, unpack(texts))
  elseif step == 'age' then aged(false)
  elseif step == 'publish' then aged(true)
  elseif step == 'ignore' then redis.call('SADD', ignores, unpack(texts))
  elseif step == 'keep' then redis.call('SET', texts[1], texts[2])
  end
end
redis.call('LPUSH', queue, ident)
redis.call('HSET', record, 'queued_at', now)
return {done}
