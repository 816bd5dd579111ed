--!include _cut
-- Reads many jobs in one go, every text cut to a length: what was written too large is not carried.
-- KEYS: record, facts, claim, lease and ignores of each job, one job after the other.
-- ARGV: longest text, room for all, number of fields of a record, these fields, fields of the facts.
-- Returns for each job: the fields of the record, of the facts, attempt and resumed of the claim, the number
-- of its ignores, and 1 if its lease is held, in one list with false for what is not there; or the name of the key that is of another
-- type. Each job has an equal share of the room, and what those before it have left.
local longest, left = tonumber(ARGV[1]), tonumber(ARGV[2])
local of_record, of_facts = {}, {}
for i = 1, tonumber(ARGV[3]) do of_record[i] = ARGV[3 + i] end
for i = 4 + #of_record, #ARGV do of_facts[#of_facts + 1] = ARGV[i] end

local function read(into, key, fields, room)
  if #fields == 0 then return true end
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values.err then return false end
  for i = 1, #fields do
    into[#into + 1] = values[i] and cut(values[i], longest, room)
  end
  return true
end

local answer = {}
for i = 1, #KEYS, 5 do
  local share = 5 * left / (#KEYS - i + 1)
  local job, room = {}, {left = share}
  if read(job, KEYS[i], of_record, room) then
    if not read(job, KEYS[i + 1], of_facts, room) then for _ = 1, #of_facts do job[#job + 1] = false end end
    if not read(job, KEYS[i + 2], {'attempt', 'resumed'}, room) then job[#job + 1] = false; job[#job + 1] = false end
    local ignores = redis.pcall('SCARD', KEYS[i + 4])
    job[#job + 1] = type(ignores) == 'number' and ignores
    job[#job + 1] = redis.call('EXISTS', KEYS[i + 3]) == 1 and 1
    answer[#answer + 1] = job
  else
    answer[#answer + 1] = KEYS[i]
  end
  left = left - share + room.left
end
return answer
