-- keys: the keys of each lock. Included behind shared/clock.lua by every script about locks.
-- KEYS: six for each lock, in the order of enum lock_key (lib/lock/keys.h):
--       key          the lock: a string
--       fence        the last fencing token
--       queue        the waiting line: a sorted set, token by ticket
--       waiters      a hash: by token "HEARTBEAT MODE HOLDER-INFO"; by "newest" "TICKET TOKEN"
--       holders      of a shared lock or slots: a sorted set, token by the end of its lease in ms
--       holder_info  of the same: a hash, "v1 try=N ttl=MS ... since=MS" by token

-- A free lock that is kept for the waiter whose turn it is holds that waiter's token, this, and its
-- holder info. No attempt has the number 0, so no holder's value reads like this.
local TURN = ' v1 try=0 '

local locks = {}
for i = 1, #KEYS, 6 do
  locks[#locks + 1] = {key = KEYS[i], fence = KEYS[i + 1], queue = KEYS[i + 2],
    waiters = KEYS[i + 3], holders = KEYS[i + 4], holder_info = KEYS[i + 5],
    wake = string.sub(KEYS[i + 2], 1, -6) .. 'wake:'} -- KEYS[i + 2] ends with "queue"
end

-- The error reply about a helper key in which another program keeps something else: it names the
-- key, which is never overwritten. Where `reply` is another error, such as a missing right, that.
local function foreign_key(key, what, reply)
  if type(reply) == 'table' and not string.find(reply.err, 'WRONGTYPE', 1, true) then
    return reply
  end
  return {err = 'FOREIGN ' .. string.sub(key, 1, 120) .. ' ' .. what}
end

-- The last fence, 0 where there is none; or nil and an error reply. Lua counts exactly up to 2^53:
-- a number near that, or greater, is no fence, as it could not grow for long.
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
  redis.pcall('ZREM', lock.queue, token) -- pcall: where the key is of another type there is no line
  redis.pcall('HDEL', lock.waiters, token)
  redis.call('DEL', lock.wake .. token)
end
