--!include _cut
--!include _number
-- What scripts about claims have in common; put in front of those that begin with `--!include _claim`.
local function kind(key)
  return redis.call('TYPE', key)['ok']
end

-- Seconds as text, and milliseconds, by the clock of this server.
local function clock()
  local now = redis.call('TIME')
  return now[1] .. '.' .. string.format('%06d', tonumber(now[2])),
    tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

local function next_token(counter)
  local token = string.format('%.0f', number_before(counter) + 1)
  redis.call('SET', counter, token)
  return token
end

-- Removes what an earlier job of the same ident left: ArchiveBot's bot knows only three of a job's keys. A
-- claim belongs to the `queued_at` under which it was taken, and what came with a job to that claim.
local function forget_earlier(prefix, unit)
  local claim = prefix .. 'amicrawl:claim:' .. unit
  if kind(claim) ~= 'hash' then
    redis.call('DEL', claim)
    -- What came with a job that has not been taken yet does not expire.
    for _, name in ipairs({'facts', 'config', 'list', 'desired'}) do
      local key = prefix .. 'amicrawl:' .. name .. ':' .. unit
      if redis.call('TTL', key) >= 0 then redis.call('DEL', key) end
    end
    return
  end
  local held = redis.call('HMGET', claim, 'queued_at', 'state')
  local queued_at = kind(prefix .. unit) == 'hash' and redis.call('HGET', prefix .. unit, 'queued_at') or ''
  local has_ended = held[2] == 'done' or held[2] == 'dead'
  if has_ended or (held[1] and held[1] ~= queued_at) then
    redis.call('DEL', claim)
    for _, name in ipairs({'facts', 'config', 'list'}) do
      redis.call('DEL', prefix .. 'amicrawl:' .. name .. ':' .. unit)
    end
    -- The live settings of a job that ended went with it: these are newer.
    if not has_ended then redis.call('DEL', prefix .. 'amicrawl:desired:' .. unit) end
  end
end

-- Has *owner* hold the claim from now; returns its token. Further fields come as name, value.
local function hold(claim, lease, counter, owner, lease_ms, ...)
  local since = clock()
  local token = next_token(counter)
  local attempt = (tonumber(redis.call('HGET', claim, 'attempt')) or 0) + 1
  redis.call('HSET', claim, 'owner', owner, 'token', token, 'attempt', attempt, 'state', 'held', 'since', since,
    ...)
  redis.call('PERSIST', claim)
  redis.call('SET', lease, token, 'PX', lease_ms)
  return token, since
end
