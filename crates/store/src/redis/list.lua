-- Lists entries in order, without those that have expired.
--
-- KEYS: entries and index of the tag
-- ARGV: now, from, to (both as ZRANGEBYLEX takes them), limit
-- Returns path, record, path, record …
local now, from, limit = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[4])
local found = {}
while #found < 2 * limit do
  local wanted = limit - #found / 2
  local paths = redis.call('ZRANGEBYLEX', KEYS[2], from, ARGV[3], 'LIMIT', 0, wanted)
  for _, path in ipairs(paths) do
    local record = redis.call('HGET', KEYS[1], path)
    if record then
      local _, expires = struct.unpack('>I8I8', record)
      if expires == 0 or expires > now then
        found[#found + 1] = path
        found[#found + 1] = record
      end
    end
    from = '(' .. path
  end
  if #paths < wanted then
    break
  end
end
return found
