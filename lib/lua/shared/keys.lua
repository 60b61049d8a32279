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

local function leave(lock, token)
  redis.call('ZREM', lock.line, token)
  redis.call('HDEL', lock.waiters, token)
  redis.call('DEL', lock.wake .. token)
end
