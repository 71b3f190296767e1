-- Checks the conditions of a batch, then applies all its changes or none.
--
-- KEYS: entries, index, expiry, version and bytes of the tag
-- ARGV: now, the time as far as it can be believed, sweep limit, what every entry takes: twice the tag, and a constant
--       number of conditions; each: path, version or '' for absent
--       then each change: 'put' path expires value | 'delete' path
-- Returns 1 when done, 0 on a conflict.
local entries, index, expiry, counter, bytes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, believed, entry_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local at = 4

local function take()
  at = at + 1
  return ARGV[at]
end

local function live_version(record)
  if not record then
    return nil
  end
  local version, expires = struct.unpack('>I8I8', record)
  if expires == 0 or expires > now then
    return version
  end
end

for _ = 1, tonumber(take()) do
  local path, expected = take(), tonumber(take())
  if live_version(redis.call('HGET', entries, path)) ~= expected then
    return 0
  end
end

if at == #ARGV then
  return 1
end

-- The version of a tag that was removed starts from the time, which is above all that it had before.
local version_before = redis.call('GET', counter)
local version = tonumber(version_before or now * 1024)
local more_bytes = 0

-- What an entry takes that is stored.
local function bytes_of(path)
  local length = redis.call('HSTRLEN', entries, path)
  return length > 0 and entry_bytes + 2 * #path + length - 16 or 0
end

local function remove(path)
  more_bytes = more_bytes - bytes_of(path)
  redis.call('HDEL', entries, path)
  redis.call('ZREM', index, path)
  redis.call('ZREM', expiry, path)
end

local change = {}

function change.put()
  local path, expires, value = take(), tonumber(take()), take()
  more_bytes = more_bytes + entry_bytes + 2 * #path + #value - bytes_of(path)
  redis.call('HSET', entries, path, struct.pack('>I8I8', version, expires) .. value)
  redis.call('ZADD', index, 0, path)
  if expires == 0 then
    redis.call('ZREM', expiry, path)
  else
    redis.call('ZADD', expiry, expires, path)
  end
end

function change.delete()
  remove(take())
end

while at < #ARGV do
  version = version + 1
  change[take()]()
end
redis.call('SET', counter, string.format('%.0f', version))

for _, path in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', believed, 'LIMIT', 0, ARGV[3])) do
  remove(path)
end

-- The bytes, and the version that they belong to. If that is an older one, a version of Airlock has written that does
-- not count, and they are counted again when they are read.
local counted, counted_at = string.match(redis.call('GET', bytes) or '', '^(%d+) (%d+)$')
if not version_before then
  counted, counted_at = 0, version_before
end
if counted then
  local current = counted_at == version_before and string.format('%.0f', version) or counted_at
  redis.call('SET', bytes, string.format('%.0f ', math.max(counted + more_bytes, 0)) .. current)
end

-- A tag whose entries all expire is removed an hour after the last of them, even without another write.
local last = redis.call('ZREVRANGE', expiry, 0, 0, 'WITHSCORES')[2]
local forget = redis.call('ZCARD', index) == redis.call('ZCARD', expiry)
for key = 1, 5 do
  if forget then
    local rest = math.max(tonumber(last or believed) - believed, 0) + 3600000
    redis.call('PEXPIRE', KEYS[key], string.format('%.0f', rest))
  else
    redis.call('PERSIST', KEYS[key])
  end
end
return 1
