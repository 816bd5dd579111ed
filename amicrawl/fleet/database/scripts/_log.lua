-- What scripts that add log entries have in common; put in front of those that begin with `--!include _log`.

-- Adds the texts *first* to *last* of ARGV to *log*, numbered by `log_score` of *record*, and trims the log to
-- *most* entries, the oldest first. Returns the last number, and whether the numbering had to be repaired.
local function add_entries(record, log, most, first, last)
  local AT_ONCE = 500
  local count, repaired = last - first + 1, false
  local score = redis.pcall('HINCRBY', record, 'log_score', count)
  if type(score) ~= 'number' then
    -- Another program wrote something else there: numbering continues after the last entry.
    local newest = redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')
    score, repaired = math.floor((tonumber(newest[2] or '') or 0)) + count, true
    redis.call('HSET', record, 'log_score', string.format('%.0f', score))
  end
  for from = first, last, AT_ONCE do
    local entries = {}
    for number = from, math.min(from + AT_ONCE - 1, last) do
      table.insert(entries, score - last + number)
      table.insert(entries, ARGV[number])
    end
    redis.call('ZADD', log, unpack(entries))
  end
  local surplus = redis.call('ZCARD', log) - most
  if surplus > 0 then
    local oldest = redis.call('ZRANGE', log, surplus - 1, surplus - 1, 'WITHSCORES')
    redis.call('ZREMRANGEBYRANK', log, 0, surplus - 1)
    redis.call('HSET', record, 'last_trimmed_log_entry', oldest[2])
  end
  return score, repaired
end
