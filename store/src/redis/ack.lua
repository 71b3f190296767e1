-- Removes a message, if the lease is still the last one.
--
-- KEYS: messages and due of the queue
-- ARGV: id, deliveries, consumer
-- Returns 1 when it was removed, 0 when it is somebody else's or gone.
local message = redis.call('HGET', KEYS[1], ARGV[1])
if not message then
  return 0
end
local deliveries, holder = struct.unpack('>I4I4', message)
if deliveries ~= tonumber(ARGV[2]) or string.sub(message, 9, 8 + holder) ~= ARGV[3] then
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
