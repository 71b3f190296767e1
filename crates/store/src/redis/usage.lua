-- How many bytes the entries of a tag take. Counts them if they are not counted, or if a version of Airlock has written
-- that does not count.
--
-- KEYS: entries, index, version and bytes of the tag
-- ARGV: what every entry takes: twice the tag, and a constant
local entries, index, bytes = KEYS[1], KEYS[2], KEYS[4]
local version = redis.call('GET', KEYS[3])
if not version then
  return 0
end

local counted, counted_at = string.match(redis.call('GET', bytes) or '', '^(%d+) (%d+)$')
if counted_at == version then
  return tonumber(counted)
end

local sum, first = 0, 0
repeat
  local paths = redis.call('ZRANGE', index, first, first + 999)
  for _, path in ipairs(paths) do
    -- A record has a header of 16 bytes before its value.
    sum = sum + tonumber(ARGV[1]) + 2 * #path + redis.call('HSTRLEN', entries, path) - 16
  end
  first = first + #paths
until #paths < 1000
redis.call('SET', bytes, string.format('%.0f ', sum) .. version)
local rest = redis.call('PTTL', KEYS[3])
if rest > 0 then
  redis.call('PEXPIRE', bytes, rest)
end
return sum
