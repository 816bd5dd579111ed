--!include _settled
-- The heartbeat of a worker for one partition: renews the lease, reports whether the partition is idle, and
-- returns what the worker is to do. The crawl has ended when every partition is idle and every inbox empty.
-- KEYS: record, waiting, token counter, then claim, lease and links of every partition
-- ARGV: partitions, number of this one, token, lease in ms, idle (1 or 0), spare (1 or 0),
--       turn in ms (0: as long as it takes), facts
local partitions, me, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local ttl, idle, spare, turn = tonumber(ARGV[4]), ARGV[5] == '1', ARGV[6] == '1', tonumber(ARGV[7])
local claim, lease, links = KEYS[4 + 3 * me], KEYS[5 + 3 * me], KEYS[6 + 3 * me]

local mine = redis.call('HMGET', claim, 'token', 'since', 'owner', 'giving', 'store')
if mine[1] ~= token then return {'lost'} end
local held = redis.call('GET', lease)
if held and held ~= token then return {'lost'} end
redis.call('SET', lease, token, 'PX', ttl)
redis.call('HDEL', claim, 'lapsed_at')
local answer = held and 'renewed' or 'regained'
if redis.call('HEXISTS', KEYS[1], 'state') == 0 then return {'gone'} end

redis.call('HSET', claim, 'begun', token, 'facts', ARGV[8])
local waiting = redis.call('XLEN', links)
if idle and waiting == 0 then
  redis.call('HSET', claim, 'idle', '1')
else
  idle = false
  redis.call('HDEL', claim, 'idle')
end

local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local share = redis.call('HMGET', KEYS[1], 'state', 'seeding', 'stop', 'pause', 'epoch', 'place')
local done, ready, busy, owners, owned, giving = not share[2], 0, 0, {}, 0, 0
local outs = {}
for i = 0, partitions - 1 do
  local c = redis.call('HMGET', KEYS[4 + 3 * i], 'state', 'idle', 'owner', 'store', 'place', 'giving')
  local standing = c[1] or 'ready'
  if done and not is_settled(standing, c[2], KEYS[6 + 3 * i]) then done = false end
  if standing == 'failed' or standing == 'limit' then
    outs[#outs + 1] = i
  else
    if standing == 'held' and c[2] ~= '1' and redis.call('EXISTS', KEYS[5 + 3 * i]) == 0 then
      -- Its worker is dead: the next worker that takes a partition makes it ready.
      standing = 'ready'
    end
    if standing == 'held' then
      if c[6] then giving = giving + 1 end
      if c[2] ~= '1' then
        busy = busy + 1
        owners[c[3] or ''] = true
        if c[3] == mine[3] and not c[6] then owned = owned + 1 end
      end
    elseif standing ~= 'parked' then
      local home = c[4] or ''
      if home == '' or home == mine[5] or (c[5] and c[5] == share[6]) then ready = ready + 1 end
    end
  end
end
if done then
  if share[1] ~= 'ended' then redis.call('HSET', KEYS[1], 'state', 'ended', 'ended', ms) end
  share[1] = 'ended'
end

-- Another worker waits: for a partition of this machine, or for one that it can fetch.
local give = mine[4] ~= false
local machines, askers, fits = 0, 0, false
for _ in pairs(owners) do machines = machines + 1 end
local asking = redis.call('HGETALL', KEYS[2])
for k = 1, #asking, 2 do
  local at, store, place = string.match(asking[k + 1], '^(%d+) (%S*) (.*)$')
  if at and math.abs(ms - tonumber(at)) < 3000 then
    if store == mine[5] then askers = askers + 1 end
    if asking[k] ~= mine[3] then
      if not owners[asking[k]] then machines = machines + 1 end
      if store == mine[5] or (place ~= '' and place == share[6]) then fits = true end
    end
  end
end
-- What is ready goes to a worker that has a slot to spare; only then is one given up for it.
local over = turn > 0 and ms - (tonumber(mine[2]) or ms / 1000) * 1000 > turn
if ready > askers + giving and (spare or over) then give = true end
if not idle and owned > 1 and fits and owned > math.ceil(busy / machines) then give = true end
if give then redis.call('HSET', claim, 'giving', '1') end
return {answer, share[1] == 'ended' and 1 or 0, share[3] and 1 or 0, share[4] and 1 or 0, waiting,
        give and 1 or 0, share[5] or '0', outs}
