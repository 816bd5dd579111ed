-- Whether the others need not wait for a partition: the rule of `partition/messages.py`. Put in front of the scripts that
-- begin with `--!include _settled`; a crawl has ended when every partition is settled and no more seeds are to come.
local function is_settled(standing, idle, links)
  if standing == 'failed' or standing == 'limit' then return true end
  if standing ~= 'parked' and not (standing == 'held' and idle == '1') then return false end
  return redis.call('XLEN', links) == 0
end

