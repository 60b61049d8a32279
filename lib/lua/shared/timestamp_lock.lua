-- timestamp_lock: a lock whose value is the time of its expiry, as older programs keep it. Included
-- behind shared/check.lua.
-- KEYS: of one lock; besides the lock itself its fence and its holder_info are used
--
-- Whoever finds that the time in a lock has passed may take it. A time doesn't tell who wrote it,
-- so that stands in holder_info, by token: "VALUE v1 try=N ttl=MS unit=s ... since=MS". It counts
-- as long as VALUE is what stands in the lock.

local LOCK, FENCE, HOLDER_INFO = KEYS[1], KEYS[2], KEYS[6]

-- A moment in ms as it is written into the lock. Rounded up, so that it doesn't pass before the
-- lease ends.
local function time_text(at, unit)
  return unit == 's' and digits(math.floor(at / 1000) + 1) or digits(at + 1)
end

-- For how many ms a lock with this value is still held; -1: for ever, as the value is no time.
local function left_ms_of(value, unit)
  local at = string.match(value, '^%s*(%d+%.?%d*)%s*$')
  if not at then
    return -1
  end
  return unit == 's' and math.max(0, (at + 1) * 1000 - now_ms) or math.max(0, at + 1 - now_ms)
end

-- The error reply where holder_info is no hash, or false.
local function check_holder_info()
  return check_type(HOLDER_INFO, 'is no hash', 'HGET', HOLDER_INFO, '')
end

-- "v1 try=N ttl=MS ..." of the owner of this token, if the lock's value is the one that it wrote.
local function info_of(held, token)
  local value, info = string.match(redis.call('HGET', HOLDER_INFO, token) or '', '^(%d+) (.*)')
  return value and value == held and info
end

-- The lock expires 2 s after the time that it holds: what other programs see as expired is still
-- there for them to take over. `token` nil: it is nobody's.
local function write_lock(token, value, info, ttl, exists)
  redis.call('SET', LOCK, value, exists, 'PX', digits(ttl + 2000))
  redis.call('DEL', HOLDER_INFO)
  if token then
    redis.call('HSET', HOLDER_INFO, token, value .. ' ' .. info)
    redis.call('PEXPIRE', HOLDER_INFO, digits(ttl + 2000))
  end
end
