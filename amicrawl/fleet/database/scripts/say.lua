--!include _log
-- Adds entries to the log of a job that is there, and sets figures of its record.
--
-- KEYS  record, log, claim
-- ARGV  ident, updates channel, entries that the log keeps, token of the claim, how many figures;
--       then name, value... of those, then the entries
-- Returns how many were added: none for a record that is gone, a claim that is another's, or a log that is
-- no sorted set.
local record, log, claim = KEYS[1], KEYS[2], KEYS[3]

local function kind(key)
  return redis.call('TYPE', key)['ok']
end

if kind(record) ~= 'hash' or redis.call('HEXISTS', record, 'url') == 0 then
  return 0
end
if kind(claim) ~= 'hash' or redis.call('HGET', claim, 'token') ~= ARGV[4] then
  return 0
end
local first = 6 + 2 * tonumber(ARGV[5])
for at = 6, first - 1, 2 do
  redis.call('HSET', record, ARGV[at], ARGV[at + 1])
end
if first <= #ARGV and (kind(log) == 'zset' or kind(log) == 'none') then
  local score = add_entries(record, log, tonumber(ARGV[3]), first, #ARGV)
  -- The figures have counted these entries: an analyzer of ArchiveBot must not do it again.
  local analyzed = tonumber(redis.call('HGET', record, 'last_analyzed_log_entry') or '')
  if not analyzed or analyzed < score then
    redis.call('HSET', record, 'last_analyzed_log_entry', string.format('%.0f', score))
  end
  if redis.call('TTL', record) > 0 then
    redis.call('EXPIRE', log, redis.call('TTL', record))
  end
end
redis.call('PUBLISH', ARGV[2], ARGV[1])
return #ARGV - first + 1
