-- Takes tokens from a bucket (GCRA): as many of those that are wanted as there are. It is stored as the time when it
-- will be full, and the time when it was last changed.
--
-- KEYS: bucket
-- ARGV: now, time per token, time to fill an empty bucket, all in microseconds; how many tokens are wanted
-- Returns how many were taken, and the time until it is full.
local now, per, fill, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
-- How far the clocks of machines may differ. One that is further behind was set back.
local clocks_differ_max = 60000000

local function keep(full_at)
  -- A full bucket need not be stored; the minute allows for a server clock that differs from ours.
  local ms = math.ceil((full_at - now) / 1000) + 60000
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', full_at, now), 'PX', string.format('%.0f', ms))
end

local stored_full_at, stored_changed = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
local before, behind = tonumber(stored_full_at or 0), tonumber(stored_changed or 0) - now
if behind > clocks_differ_max then
  -- The clock was set back: the bucket is as full as it was, and goes on filling.
  before = before - behind
  keep(before)
elseif behind > 0 then
  -- Another machine's clock is ahead. Were its time taken back, two machines could fill the bucket by taking turns.
  now = now + behind
end
if before > now + fill then
  -- The rate was changed: no bucket can be emptier than empty, so store it as empty.
  before = now + fill
  keep(before)
end
before = math.max(before, now)
local taken = math.min(wanted, math.floor((fill - (before - now)) / per))
local full_at = before + taken * per
if taken > 0 then
  keep(full_at)
end
return { taken, full_at - now }
