-- Trims one log: what every consumer has seen, and the oldest of what is too much.
-- KEYS: record, log. ARGV: gap by which the watermarks must be ahead, most entries, most bytes.
-- Returns how many entries went; -1 where there is no job of that name.
local record, log = KEYS[1], KEYS[2]
local gap, most, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('TYPE', record).ok ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then return -1 end
if redis.call('TYPE', log).ok ~= 'zset' then return 0 end

local function mark(name)
  local value = redis.call('HGET', record, name)
  if value == '+inf' then return math.huge end
  return tonumber(value or '') or 0
end

local function note_trimmed(score) redis.call('HSET', record, 'last_trimmed_log_entry', string.format('%.0f', score)) end

local gone = 0
local trimmed = mark('last_trimmed_log_entry')
local seen = math.min(mark('last_analyzed_log_entry'), mark('last_broadcasted_log_entry'))
-- A job that has ended keeps its last lines until they were broadcast, and some of them after that.
local ended = redis.call('HEXISTS', record, 'finished_at') == 1
if not ended and seen < math.huge and seen - trimmed >= gap then
  gone = redis.call('ZREMRANGEBYSCORE', log, '-inf', seen)
  trimmed = seen
  note_trimmed(trimmed)
end

local function drop_oldest(count)
  local last = redis.call('ZRANGE', log, count - 1, count - 1, 'WITHSCORES')[2]
  gone = gone + redis.call('ZREMRANGEBYRANK', log, 0, count - 1)
  if last and tonumber(last) > trimmed then
    trimmed = tonumber(last)
    note_trimmed(trimmed)
  end
end

local count = redis.call('ZCARD', log)
if count > most then
  drop_oldest(count - most)
  count = most
end
-- MEMORY USAGE is an estimate from samples, and by far cheaper than the lengths of all entries. A user
-- without the right to it trims by number alone.
local used = redis.pcall('MEMORY', 'USAGE', log, 'SAMPLES', '50')
while type(used) == 'number' and used > bytes and count > 1 do
  local surplus = math.max(1, math.min(count - 1, math.ceil(count * (1 - bytes / used) * 1.1)))
  drop_oldest(surplus)
  count = redis.call('ZCARD', log)
  used = redis.pcall('MEMORY', 'USAGE', log, 'SAMPLES', '50')
end
return gone
