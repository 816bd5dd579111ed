-- Reads many jobs in one go, every text cut to a length: what somebody wrote too large is not carried.
-- KEYS: record, facts and claim of each job, one job after the other.
-- ARGV: longest text, number of fields of a record, these fields, fields of the facts.
-- Returns for each job: the fields of the record, of the facts, and attempt and resumed of the claim, in
-- one list with false for what is not there; or the name of the key that is of another type.
local longest = tonumber(ARGV[1])
local of_record, of_facts = {}, {}
for i = 1, tonumber(ARGV[2]) do of_record[i] = ARGV[2 + i] end
for i = 3 + #of_record, #ARGV do of_facts[#of_facts + 1] = ARGV[i] end

local function read(into, key, fields)
  if #fields == 0 then return true end
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values.err then return false end
  for i = 1, #fields do
    local value = values[i]
    if value and #value > longest then value = string.sub(value, 1, longest) end
    into[#into + 1] = value
  end
  return true
end

local answer = {}
for i = 1, #KEYS, 3 do
  local job = {}
  if read(job, KEYS[i], of_record) then
    if not read(job, KEYS[i + 1], of_facts) then for _ = 1, #of_facts do job[#job + 1] = false end end
    if not read(job, KEYS[i + 2], {'attempt', 'resumed'}) then job[#job + 1] = false; job[#job + 1] = false end
    answer[#answer + 1] = job
  else
    answer[#answer + 1] = KEYS[i]
  end
end
return answer
