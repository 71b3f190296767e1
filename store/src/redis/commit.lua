-- Checks what a batch expects and then makes its changes, or makes none.
--
-- KEYS: entries, index, expiry and version of the tag, then messages and due of each queue
-- ARGV: now, sweep limit, longest queue
--       number of checks; each: path, version or '' for absent
--       number of queues; each: how many messages are pushed
--       then each change: 'put' path expires value | 'delete' path | 'push' queue value
-- Returns 1 when done, 0 on a conflict, -n when queue n is full.
local entries, index, expiry, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now = tonumber(ARGV[1])
local at = 3

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

for queue = 1, tonumber(take()) do
  if redis.call('ZCARD', KEYS[4 + 2 * queue]) + tonumber(take()) > tonumber(ARGV[3]) then
    return -queue
  end
end

if at == #ARGV then
  return 1
end

-- The version of a tag that was forgotten starts at the time, so that it is later than all it gave before.
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

function change.push()
  local queue, value = tonumber(take()), take()
  local id = string.format('%020.0f', version)
  redis.call('HSET', KEYS[3 + 2 * queue], id, struct.pack('>I4I4', 0, 0) .. value)
  redis.call('ZADD', KEYS[4 + 2 * queue], 0, id)
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

-- A tag of which everything expires is forgotten an hour after the last of it, even when nobody writes to it again.
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
