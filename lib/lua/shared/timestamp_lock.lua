-- timestamp_lock: a lock whose value is the time of its expiry, as older programs write it.
-- Included after shared/check.lua.
-- KEYS: those of one lock, see shared/keys.lua; the scripts use the lock, its fence and its
-- holder_info
--
-- Any client that finds that the time in a lock has passed may take the lock. As the time doesn't
-- tell who wrote it, the hash holder_info does: TOKEN -> "VALUE v1 try=N ttl=MS unit=s ...
-- since=MS". This entry counts only while the lock still has the value VALUE.

local LOCK, FENCE, HOLDER_INFO = KEYS[1], KEYS[2], lock_at(1).holder_info

-- Returns a time in ms as the text that stands in the lock. Rounds it up, so that the time in the
-- lock doesn't pass before the lease ends.
local function time_text(at, unit)
  return unit == 's' and digits(math.floor(at / 1000) + 1) or digits(at + 1)
end

-- Returns for how many ms a lock with this value is still held; -1: for ever, because the value is
-- not a time.
local function left_ms_of(value, unit)
  local at = string.match(value, '^%s*(%d+%.?%d*)%s*$')
  if not at then
    return -1
  end
  return unit == 's' and math.max(0, (at + 1) * 1000 - now_ms) or math.max(0, at + 1 - now_ms)
end

-- Returns the error reply if holder_info is no hash; false if it is a hash, or doesn't exist.
local function check_holder_info()
  return check_type(HOLDER_INFO, 'is no hash', 'HGET', HOLDER_INFO, '')
end

-- Returns "v1 try=N ttl=MS ..." of the owner of this token; nil or false: that owner didn't write
-- the value that the lock has.
local function info_of(held, token)
  local value, info = string.match(redis.call('HGET', HOLDER_INFO, token) or '', '^(%d+) (.*)')
  return value and value == held and info
end

-- Writes the lock, and who holds it (`token` nil: nobody does). The key expires 2 s after the time
-- in it, because older programs look for a key whose time has passed, to take it over.
local function write_lock(token, value, info, ttl, exists)
  redis.call('SET', LOCK, value, exists, 'PX', digits(ttl + 2000))
  redis.call('DEL', HOLDER_INFO)
  if token then
    redis.call('HSET', HOLDER_INFO, token, value .. ' ' .. info)
    redis.call('PEXPIRE', HOLDER_INFO, digits(ttl + 2000))
  end
end
