-- keys: the keys of each lock. Each script about locks includes this file after shared/clock.lua.
-- KEYS: six for each lock, in the order of enum lock_key (lib/lock/keys.h):
--       key          the lock: a string
--       fence        the last fencing token: a string
--       queue        the queue: a sorted set; member: token, score: ticket
--       waiters      a hash: TOKEN -> "HEARTBEAT MODE HOLDER-INFO"; "newest" -> "TICKET TOKEN"
--       holders      of a shared lock or slots: a sorted set; member: token, score: end of its
--                    lease in ms
--       holder_info  of a shared lock or slots: a hash: TOKEN -> "v1 try=N ttl=MS ... since=MS"

-- While the server keeps a free lock for the waiter whose turn it is, the lock's value is the
-- waiter's token, then this text, then the waiter's holder info. Attempts count from 1, so no
-- holder's value has this text behind the token.
local TURN = ' v1 try=0 '

local locks = {}
for i = 1, #KEYS, 6 do
  locks[#locks + 1] = {key = KEYS[i], fence = KEYS[i + 1], queue = KEYS[i + 2],
    waiters = KEYS[i + 3], holders = KEYS[i + 4], holder_info = KEYS[i + 5],
    wake = string.sub(KEYS[i + 2], 1, -6) .. 'wake:'} -- KEYS[i + 2] ends with "queue"
end

-- Returns the error reply about a helper key that holds something else than rlock writes: another
-- program uses the key, so no script overwrites it. If `reply` is another error, such as a missing
-- right, returns `reply` instead.
local function foreign_key(key, what, reply)
  if type(reply) == 'table' and not string.find(reply.err, 'WRONGTYPE', 1, true) then
    return reply
  end
  return {err = 'FOREIGN ' .. string.sub(key, 1, 120) .. ' ' .. what}
end

-- Returns the last fence, or 0 if there is none; or nil and an error reply. Lua counts exactly up
-- to 2^53. A number near that limit counts as no fence, as the fences after it would soon reach the
-- limit.
local function last_fence(lock)
  local last = redis.pcall('GET', lock.fence)
  local number = type(last) == 'string' and #last <= 16 and string.find(last, '^[1-9]%d*$') and
    tonumber(last)
  if not last or number and number <= 9007194959773696 then -- 2^53 - 2^32
    return number or 0
  end
  return nil, foreign_key(lock.fence, 'is no fence from 1 to 2^53 - 2^32', last)
end

local function leave_queue(lock, token)
  -- pcall, because ZREM and HDEL fail if another program's key of another type stands there.
  redis.pcall('ZREM', lock.queue, token)
  redis.pcall('HDEL', lock.waiters, token)
  redis.call('DEL', lock.wake .. token)
end
