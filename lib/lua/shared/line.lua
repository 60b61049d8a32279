-- line: the waiting line of a lock; comes in front of the scripts that serve it.
-- KEYS: 1 the lock, 2 the last fence, 3 the line (ticket by token)
--       4 the waiters ("beat card" by token; "ticket token" by "newest")
-- ARGV: 1 how the names of the wake-up lists begin, each followed by its owner's token

local WAKE = ARGV[1]
-- For how many ms a waiter lives without a beat; when it is its turn; when it was woken but was
-- not there. How many are woken for one turn.
local LIFE, CLAIM, ABSENT, WOKEN = 7500, 500, 300, 3
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)

local function leave(token)
  redis.call('ZREM', KEYS[3], token)
  redis.call('HDEL', KEYS[4], token)
  redis.call('DEL', WAKE .. token)
end

-- A beat from the future is from before the clock was set back: its owner will beat again.
local function is_alive(token)
  local beat = tonumber(string.match(redis.call('HGET', KEYS[4], token) or '', '^%d+'))
  return beat and beat <= now + 1000 and beat + LIFE > now
end

-- The first live waiter. The dead in front of it leave, not more of them than is quickly done.
local function head()
  for i = 1, 128 do
    local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    if not first or is_alive(first) then
      return first
    end
    leave(first)
  end
end

-- For how long a waiter counts as alive from now on, unless it beats.
local function set_life(token, ms)
  local card = string.match(redis.call('HGET', KEYS[4], token) or '', ' .*')
  if card then
    redis.call('HSET', KEYS[4], token, (now - LIFE + ms) .. card)
  end
end

local function wake(token)
  redis.call('RPUSH', WAKE .. token, '1')
  redis.call('PEXPIRE', WAKE .. token, LIFE)
end

-- The lock is free: nobody but this waiter can have it until its time to claim it is over. Those
-- behind it are woken as well: they find out if those ahead of them don't live.
local function hand_to(token)
  local card = string.match(redis.call('HGET', KEYS[4], token), ' .*')
  redis.call('SET', KEYS[1], token .. ' v1 try=0' .. card .. ' since=' .. now, 'PX', CLAIM)
  for place, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, WOKEN - 1)) do
    set_life(waiter, place == 1 and CLAIM or CLAIM * 2)
    wake(waiter)
  end
end
