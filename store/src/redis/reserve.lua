-- Leases messages: first those whose lease ran out, then the oldest.
--
-- KEYS: messages and due of the queue
-- ARGV: now, end of the lease, consumer, count
-- Returns id, deliveries, value, id, deliveries, value …
local count = tonumber(ARGV[4])
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], 1, ARGV[1], 'LIMIT', 0, count)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], 0, 0, 'LIMIT', 0, count - #ids)) do
  ids[#ids + 1] = id
end
local leases = {}
for _, id in ipairs(ids) do
  local message = redis.call('HGET', KEYS[1], id)
  local deliveries, holder = struct.unpack('>I4I4', message)
  local value = string.sub(message, 9 + holder)
  deliveries = deliveries + 1
  redis.call('HSET', KEYS[1], id, struct.pack('>I4I4', deliveries, #ARGV[3]) .. ARGV[3] .. value)
  redis.call('ZADD', KEYS[2], ARGV[2], id)
  leases[#leases + 1] = id
  leases[#leases + 1] = deliveries
  leases[#leases + 1] = value
end
return leases
