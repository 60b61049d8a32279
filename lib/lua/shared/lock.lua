-- lock: who holds a lock; comes behind shared/check.lua, in front of the scripts that
-- change that.
-- KEYS and ARGV: none of its own
-- A lock that several have at once is a string as well, so that nobody else takes it: a marker
-- that is nobody's. Where it is gone, what is left of its holders counts for nothing.

local NOBODY = string.rep('0', 32)

-- A word of a card: its number.
local function number_in(card, name)
  return tonumber(string.match(card or '', ' ' .. name .. '=(%d+)'))
end

-- The card of a holder as "v1 try=N ttl=MS ...", or nil. A waiter whose turn it is holds nothing.
local function card_of(lock, token)
  if lock.mode == 'exclusive' then
    return string.sub(lock.held, 1, 33) == token .. ' ' and not lock.turn and
      string.sub(lock.held, 34) or nil
  end
  return lock.several and redis.call('HGET', lock.cards, token) or nil
end

-- What the key of a lock holds that several have at once.
local function marker(want)
  return NOBODY .. ' v1 mode=' .. (want == 's' and 'shared' or 'slots') .. ' since=' .. now
end

local function forget(lock, token)
  redis.call('ZREM', lock.holders, token)
  redis.call('HDEL', lock.cards, token)
end

-- The marker and all beside it end with the last of the leases.
local function set_end(lock)
  local last = redis.call('ZRANGE', lock.holders, -1, -1, 'WITHSCORES')[2]
  local left = whole(math.max(1, last - now))
  redis.call('PEXPIRE', lock.key, left)
  redis.call('PEXPIRE', lock.holders, left)
  redis.call('PEXPIRE', lock.cards, left)
end

-- A server that is out of memory lets a script go on that has written already, and allows this.
local function keep_going(lock, ttl)
  redis.call('PEXPIRE', lock.key, whole(ttl))
end

-- Leases that are over end. One that ends later than it can is from before the clock was set back.
local function prune(lock)
  local over = redis.call('ZRANGEBYSCORE', lock.holders, '-inf', whole(now), 'LIMIT', 0, 1000)
  for _, token in ipairs(over) do
    forget(lock, token)
  end
  for i = 1, 100 do
    local last = redis.call('ZRANGE', lock.holders, -1, -1, 'WITHSCORES')
    local ttl = last[1] and number_in(redis.call('HGET', lock.cards, last[1]), 'ttl')
    if not ttl or last[2] - now <= ttl + 1000 then
      return
    end
    keep_going(lock, ttl)
    redis.call('ZADD', lock.holders, whole(now + ttl), last[1])
    set_end(lock)
  end
end

-- Sets held (the value, or false), mode (false: free), turn (whose it is to claim the lock), and
-- several (how many hold it at once).
local function see(lock, held)
  lock.held, lock.mode, lock.turn, lock.several = held, held and 'exclusive', nil, nil
  if not held then
    return
  end
  lock.turn = string.match(held, '^(' .. string.rep('%x', 32) .. ')' .. TURN)
  local mode = string.match(held, '^' .. NOBODY .. ' v1 mode=(%a+) ')
  if mode == 'shared' or mode == 'slots' then
    prune(lock)
    lock.mode, lock.several = mode, redis.call('ZCARD', lock.holders)
    if lock.several == 0 then
      redis.call('DEL', lock.key, lock.holders, lock.cards)
      lock.held, lock.mode, lock.several = false, false, nil
    end
  elseif mode then
    lock.mode = mode
  end
end

-- Returns the complaint about a key of another type.
local function look(lock)
  local held = redis.pcall('GET', lock.key)
  if type(held) == 'table' then
    return held
  end
  local complaint = held and string.find(held, NOBODY .. ' v1 mode=s', 1, true) == 1 and
    check_holders(lock)
  if complaint then
    return complaint
  end
  see(lock, held)
end

local function left_ms(lock, token)
  if lock.several then
    return (redis.call('ZSCORE', lock.holders, token) or now) - now
  end
  return redis.call('PTTL', lock.key)
end

-- A lease is not made shorter, as others may count on its end, unless it is longer than it can be:
-- that is from before the clock was set back. Returns for how many ms it lasts.
local function extend(lock, token, ttl)
  local left = left_ms(lock, token)
  if left > ttl and left <= (number_in(card_of(lock, token), 'ttl') or 0) + 1000 then
    return left
  end
  keep_going(lock, ttl)
  if lock.several then
    redis.call('ZADD', lock.holders, whole(now + ttl), token)
    set_end(lock)
  end
  return ttl
end
