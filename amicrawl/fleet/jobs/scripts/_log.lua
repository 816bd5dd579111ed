-- What scripts that add log entries have in common; put in front of those that begin with `--!include _log`.

-- Adds the texts *first* to *last* of ARGV to *log*, numbered by `log_score` of *record*, and trims the log to
-- *most* entries, the oldest first. Returns the last number, and whether the numbering had to be repaired.
local function add_entries(record, log, most, first, last)
  local score, repaired
  for number = first, last do
    score = redis.pcall('HINCRBY', record, 'log_score', 1)
    if type(score) ~= 'number' then
      -- Another program wrote something else there: numbering continues after the last entry.
      local newest = redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')
      score, repaired = math.floor((tonumber(newest[2] or '') or 0)) + 1, true
      redis.call('HSET', record, 'log_score', string.format('%.0f', score))
    end
    redis.call('ZADD', log, score, ARGV[number])
  end
  local surplus = redis.call('ZCARD', log) - most
  if surplus > 0 then
    local oldest = redis.call('ZRANGE', log, surplus - 1, surplus - 1, 'WITHSCORES')
    redis.call('ZREMRANGEBYRANK', log, 0, surplus - 1)
    redis.call('HSET', record, 'last_trimmed_log_entry', oldest[2])
  end
  return score, repaired
end
