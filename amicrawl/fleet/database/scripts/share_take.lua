--!include _claim
--!include _settled
-- Gives a worker a partition that is ready, with a lease and a fencing token.
-- A partition whose lease has run out is ready again first, or failed after too many attempts.
-- KEYS: record, waiting, token counter, then claim, lease and links of every partition
-- ARGV: partitions, owner, lease in ms, store, place, attempts at most, grace in ms that a lease that has run
-- out is left to its owner, counted from the first look (after an outage of Redis all have run out)
local partitions, owner, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local store, place, most, grace = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local _, ms = clock()

local state = redis.call('HGET', KEYS[1], 'state')
if not state then return {'gone'} end
if state == 'ended' then return {'ended'} end
if redis.call('HEXISTS', KEYS[1], 'stop') == 1 then return {'stopped'} end

local best, best_rank, best_turn = nil, nil, nil
local failed, away, leased, held = 0, 0, 0, {}
for i = 0, partitions - 1 do
  local claim = KEYS[4 + 3 * i]
  local c = redis.call('HMGET', claim, 'state', 'store', 'place', 'turn', 'failures', 'owner', 'lapsed_at')
  local standing, home, shipped = c[1] or 'ready', c[2] or '', c[3] or ''
  local turn, failures = tonumber(c[4]) or 0, tonumber(c[5]) or 0
  if standing == 'held' then
    if redis.call('EXISTS', KEYS[5 + 3 * i]) == 1 then
      leased = leased + 1
      held[c[6] or ''] = (held[c[6] or ''] or 0) + 1
      if c[7] then redis.call('HDEL', claim, 'lapsed_at') end
    elseif ms - (tonumber(c[7] or '') or ms) < grace then
      leased = leased + 1
      -- Anew where the clock was set back since.
      if not c[7] or (tonumber(c[7]) or 0) > ms then redis.call('HSET', claim, 'lapsed_at', ms) end
    else
      failures = failures + 1
      standing = 'ready'
      turn = redis.call('HINCRBY', KEYS[1], 'turns', 1)
      if failures >= most then standing = 'failed' end
      redis.call('HSET', claim, 'state', standing, 'failures', failures, 'turn', turn, 'lapsed', '1')
      redis.call('HDEL', claim, 'token', 'owner', 'idle', 'giving', 'lapsed_at')
    end
  end
  if standing == 'failed' or standing == 'limit' then
    failed = failed + 1
  elseif standing == 'ready' then
    local rank = nil
    if home == store or home == '' then rank = 0
    elseif place ~= '' and shipped == place then rank = 1 end
    if not rank then
      away = away + 1
    elseif not best or rank < best_rank or (rank == best_rank and turn < best_turn) then
      best, best_rank, best_turn = i, rank, turn
    end
  end
end

if not best then
  redis.call('HSET', KEYS[2], owner, ms .. ' ' .. store .. ' ' .. place)
  redis.call('PEXPIRE', KEYS[2], 60000)
  -- What failed for good may have been the last that was open.
  if leased == 0 and away == 0 and redis.call('HEXISTS', KEYS[1], 'seeding') == 0 then
    for i = 0, partitions - 1 do
      local c = redis.call('HMGET', KEYS[4 + 3 * i], 'state', 'idle')
      if not is_settled(c[1] or 'ready', c[2], KEYS[6 + 3 * i]) then return {'none', leased, away, failed} end
    end
    redis.call('HSET', KEYS[1], 'state', 'ended', 'ended', ms)
    return {'ended'}
  end
  return {'none', leased, away, failed}
end

local claim = KEYS[4 + 3 * best]
local home = redis.call('HMGET', claim, 'store', 'place')
-- A partition that was given up for another worker must not return to the one that holds more.
local asking = redis.call('HGETALL', KEYS[2])
for k = 1, #asking, 2 do
  local at, theirs, reach = string.match(asking[k + 1], '^(%d+) (%S*) (.*)$')
  if at and asking[k] ~= owner and math.abs(ms - tonumber(at)) < 3000 then
    local fits = not home[1] or home[1] == theirs or (reach ~= '' and reach == home[2])
    if fits and (held[asking[k]] or 0) < (held[owner] or 0) then return {'none', leased, away, failed} end
  end
end
redis.call('HDEL', KEYS[2], owner)
local before = redis.call('HMGET', claim, 'lapsed', 'failures', 'shipped')
local token = hold(claim, KEYS[5 + 3 * best], KEYS[3], owner, ttl)
redis.call('HDEL', claim, 'idle', 'giving', 'lapsed', 'begun')
-- What was shipped is behind the truth from here on. One that has yet to fetch it may die before it has.
if best_rank == 0 then
  redis.call('HSET', claim, 'store', store)
  redis.call('HDEL', claim, 'place')
end
return {'taken', best, token, before[2] or '0', best_rank == 1 and before[3] or '', before[1] or ''}
