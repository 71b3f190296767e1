-- Takes one token from a bucket (GCRA), stored as the time when it will be full.
--
-- KEYS: bucket
-- ARGV: now, time per token, time to fill an empty bucket; all in microseconds
-- Returns 1 and the time until it is full, or 0 and the time to wait.
local now, per, fill = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function keep(full_at)
  -- A full bucket need not be stored; the minute allows for a server clock that differs from ours.
  local ms = math.ceil((full_at - now) / 1000) + 60000
  redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', string.format('%.0f', ms))
end

local before = tonumber(redis.call('GET', KEYS[1]) or 0)
if before > now + fill then
  -- The clock was set back: no bucket can be emptier than empty, so store it as empty.
  before = now + fill
  keep(before)
end
local full_at = math.max(before, now) + per
local wait = full_at - now - fill
if wait > 0 then
  return { 0, wait }
end
keep(full_at)
return { 1, full_at - now }
