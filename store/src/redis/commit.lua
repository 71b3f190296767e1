-- Checks the conditions of a batch, then applies all its changes or none.
--
-- KEYS: entries, index, expiry and version of the tag
-- ARGV: now, sweep limit
--       number of conditions; each: path, version or '' for absent
--       then each change: 'put' path expires value | 'delete' path
-- Returns 1 when done, 0 on a conflict.
local entries, index, expiry, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now = tonumber(ARGV[1])
local at = 2

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
local version = tonumber(redis.call('GET', counter) or now * 1024)

local change = {}

function change.put()
  local path, expires, value = take(), tonumber(take()), take()
  redis.call('HSET', entries, path, struct.pack('>I8I8', version, expires) .. value)
  redis.call('ZADD', index, 0, path)
  if expires == 0 then
    redis.call('ZREM', expiry, path)
  else
    redis.call('ZADD', expiry, expires, path)
  end
end

function change.delete()
  local path = take()
  redis.call('HDEL', entries, path)
  redis.call('ZREM', index, path)
  redis.call('ZREM', expiry, path)
end

while at < #ARGV do
  version = version + 1
  change[take()]()
end
redis.call('SET', counter, string.format('%.0f', version))

for _, path in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, ARGV[2])) do
  redis.call('HDEL', entries, path)
  redis.call('ZREM', index, path)
  redis.call('ZREM', expiry, path)
end

-- A tag whose entries all expire is removed an hour after the last of them, even without another write.
local last = redis.call('ZREVRANGE', expiry, 0, 0, 'WITHSCORES')[2]
local forget = redis.call('ZCARD', index) == redis.call('ZCARD', expiry)
for key = 1, 4 do
  if forget then
    local rest = math.max(tonumber(last or now) - now, 0) + 3600000
    redis.call('PEXPIRE', KEYS[key], string.format('%.0f', rest))
  else
    redis.call('PERSIST', KEYS[key])
  end
end
return 1
