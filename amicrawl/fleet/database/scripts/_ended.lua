-- What scripts that end jobs have in common; put in front of those that begin with `--!include _ended`.
local KEPT = {'url', 'url_file', 'fetch_depth', 'note', 'started_by', 'started_in', 'pipeline_id', 'queued_at', 'started_at',
  'finished_at', 'aborted', 'failed', 'amicrawl_failed_at', 'amicrawl_attempt', 'bytes_downloaded', 'items_downloaded',
  'items_queued', 'error_count', 'r1xx', 'r2xx', 'r3xx', 'r4xx', 'r5xx', 'runk'}
local MOST_ENDED, LONGEST_KEPT = 10000, 4096

-- Adds what became of a job to the list of ended jobs, which outlives its record.
local function remember(ended, unit, record)
  local found = redis.call('TYPE', ended)['ok']
  if found ~= 'stream' and found ~= 'none' then
    redis.call('DEL', ended)
  end
  local values, entry = redis.call('HMGET', record, unpack(KEPT)), {'ident', unit}
  for number, name in ipairs(KEPT) do
    if values[number] and values[number] ~= '' then
      table.insert(entry, name)
      table.insert(entry, string.sub(values[number], 1, LONGEST_KEPT))
    end
  end
  redis.call('XADD', ended, 'MAXLEN', '~', MOST_ENDED, '*', unpack(entry))
end
