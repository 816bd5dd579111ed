-- Returns what a consumer has taken and not acknowledged: what it took before it died, or what was taken
-- for it by a call whose answer was lost.
-- KEYS: queue, what the consumer has taken. ARGV: consumer, how many, most bytes of each, group.
-- Returns as `seeds_take`.
local queue, taken = KEYS[1], KEYS[2]
local consumer, most, longest, group = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local kind = redis.call('TYPE', queue).ok
local answer = {kind}
local ours = redis.call('TYPE', taken).ok
if ours ~= 'hash' and ours ~= 'none' then return {'odd'} end

local found = redis.call('HSCAN', taken, '0', 'COUNT', most)[2]
for place = 1, #found, 2 do
  local text = string.gsub(string.sub(found[place + 1], 1, longest + 40), '^[lsz][^:]*:', '', 1)
  table.insert(answer, {found[place], string.sub(text, 1, longest)})
end
if kind == 'stream' then
  local read = redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', most, 'STREAMS', queue, '0')
  if type(read) == 'table' and not read.err then
    for _, entry in ipairs(read[1] and read[1][2] or {}) do
      local seed = {entry[1]}
      for _, text in ipairs(entry[2] or {}) do table.insert(seed, string.sub(text, 1, longest)) end
      table.insert(answer, seed)
    end
  end
end
return answer
