-- keys: what belongs to each lock; comes behind shared/clock.lua, in front of what serves locks.
-- KEYS: for each lock six: the lock, the last fence, the line (ticket by token),
--       the waiters ("beat want card" by token; "ticket token" by "newest"),
--       the holders of a lock that several have at once (end of the lease by token), their cards

-- Behind a waiter's token this stands in a lock that is kept for it, until it claims its turn.
local TURN = ' v1 try=0 '

local locks = {}
for i = 1, #KEYS, 6 do
  locks[#locks + 1] = {key = KEYS[i], fence = KEYS[i + 1], line = KEYS[i + 2],
    waiters = KEYS[i + 3], holders = KEYS[i + 4], cards = KEYS[i + 5],
    wake = string.sub(KEYS[i + 2], 1, -6) .. 'wake:'} -- as ...:queue, with a token behind it
end

-- What another program put where a helper key should be is told, with its name, and stays as it is.
-- Where the reply is another error, such as a missing right, that is told.
local function foreign(key, what, reply)
  if type(reply) == 'table' and not string.find(reply.err, 'WRONGTYPE', 1, true) then
    return reply
  end
  return {err = 'FOREIGN ' .. string.sub(key, 1, 120) .. ' ' .. what}
end

-- The last fence, 0 where none is known; else nil, and the complaint. Numbers are exact here up to
-- 2^53, so what counts as a fence leaves room for all that can be added to it.
local function last_fence(lock)
  local last = redis.pcall('GET', lock.fence)
  local number = type(last) == 'string' and #last <= 16 and string.find(last, '^[1-9]%d*$') and
    tonumber(last)
  if not last or number and number <= 9007194959773696 then -- 2^53 - 2^32
    return number or 0
  end
  return nil, foreign(lock.fence, 'is no fence from 1 to 2^53 - 2^32', last)
end

local function leave(lock, token)
  redis.pcall('ZREM', lock.line, token) -- of another type: there is no line to leave
  redis.pcall('HDEL', lock.waiters, token)
  redis.call('DEL', lock.wake .. token)
end
