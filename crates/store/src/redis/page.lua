-- Lists entries from a position on and counts all of them, without those that have expired.
--
-- KEYS: entries, index and expiry of the tag
-- ARGV: now, from, to (both as ZRANGEBYLEX takes them), prefix, offset, limit
-- Returns the total, and path, record, path, record …
local entries, index, expiry = KEYS[1], KEYS[2], KEYS[3]
local from, to, prefix = ARGV[2], ARGV[3], ARGV[4]
local offset, limit = tonumber(ARGV[5]), tonumber(ARGV[6])

-- The positions of expired entries that are still stored: few, because every commit removes some.
local gone, is_gone = {}, {}
for _, path in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', ARGV[1])) do
  if string.sub(path, 1, #prefix) == prefix then
    gone[#gone + 1] = redis.call('ZLEXCOUNT', index, from, '(' .. path)
    is_gone[path] = true
  end
end
table.sort(gone)
for _, place in ipairs(gone) do
  if place <= offset then
    offset = offset + 1
  end
end

local total = redis.call('ZLEXCOUNT', index, from, to)
local found = {}
-- By position, because ZRANGEBYLEX would visit everything that it skips.
local start = redis.call('ZLEXCOUNT', index, '-', '(' .. prefix) + offset
local last = start + math.min(limit + #gone, total - offset) - 1
for _, path in ipairs(last < start and {} or redis.call('ZRANGE', index, start, last)) do
  if not is_gone[path] and #found < 2 * limit then
    found[#found + 1] = path
    found[#found + 1] = redis.call('HGET', entries, path)
  end
end
return { total - #gone, found }
