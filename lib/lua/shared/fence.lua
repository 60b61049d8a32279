-- fence: reads the last fence, and says how long the server keeps it. Included after
-- shared/keys.lua.

-- Returns the error reply for a helper key that holds something that rlock doesn't write. Another
-- program uses such a key, and no script overwrites it. `reply` is what the server replied to the
-- command that read the key: if that is an error with another reason, such as a missing right, the
-- function returns `reply` itself.
local function foreign_key(key, what, reply)
  if type(reply) == 'table' and not string.find(reply.err, 'WRONGTYPE', 1, true) then
    return reply
  end
  return {err = 'FOREIGN ' .. string.sub(key, 1, 120) .. ' ' .. what}
end

-- Returns the last fence, which is in `key`, or 0 if there is none; or nil and an error reply. Lua
-- counts exactly up to 2^53. A number near that limit counts as no fence, as the fences after it
-- would soon reach the limit.
local function last_fence(key)
  local last = redis.pcall('GET', key)
  local number = type(last) == 'string' and #last <= 16 and string.find(last, '^[1-9]%d*$') and
    tonumber(last)
  if not last or number and number <= 9007194959773696 then -- 2^53 - 2^32
    return number or 0
  end
  return nil, foreign_key(key, 'is no number from 1 to 2^53 - 2^32', last)
end

-- Returns for how many ms the server keeps the last fence after a grant or a renewal for `ttl` ms:
-- for FENCE_LIFE, or for ten TTLs if those are longer.
local function fence_life(ttl)
  return ttl > 60480000 and digits(ttl * 10) or FENCE_LIFE
end
