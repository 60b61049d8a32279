-- lock: who holds a lock. Included after shared/check.lua.
--
-- An exclusive lock is the string "TOKEN v1 try=N ttl=MS ... since=MS". A script sets it by SET NX,
-- as any client would that locks with a Redis string. A shared lock, or a lock with slots, is a
-- string as well, so that such clients can't acquire it: a marker with the token of nobody (32
-- zeros). lock.holders and lock.holder_info list its holders. Once the marker is gone, these lists
-- count as empty.

local NOBODY = string.rep('0', 32)

-- Returns the number in the word NAME=NUMBER of a holder info, or nil.
local function number_in(info, name)
  return tonumber(string.match(info or '', ' ' .. name .. '=(%d+)'))
end

-- Returns "v1 try=N ttl=MS ..." of the holder with this token; nil: the token doesn't hold the
-- lock. A waiter for which the lock is reserved doesn't hold the lock yet.
local function info_of(lock, token)
  if lock.mode == 'exclusive' then
    return string.sub(lock.held, 1, 33) == token .. ' ' and not lock.turn and
      string.sub(lock.held, 34) or nil
  end
  return lock.n_holders and redis.call('HGET', lock.holder_info, token) or nil
end

local function marker(mode)
  return NOBODY .. ' v1 mode=' .. (mode == 's' and 'shared' or 'slots') .. ' since=' .. now_ms
end

local function remove_holder(lock, token)
  redis.call('ZREM', lock.holders, token)
  redis.call('HDEL', lock.holder_info, token)
end

-- Makes the three keys of a shared lock or slots expire with the last of its leases.
local function set_expiry(lock)
  local last = redis.call('ZRANGE', lock.holders, -1, -1, 'WITHSCORES')[2]
  local left = digits(math.max(1, last - now_ms))
  redis.call('PEXPIRE', lock.key, left)
  redis.call('PEXPIRE', lock.holders, left)
  redis.call('PEXPIRE', lock.holder_info, left)
end

-- Makes the key expire in `ttl` ms. A script calls this before other writes: a server that is out
-- of memory refuses commands that need memory before a script's first write, but it allows PEXPIRE.
local function extend_key(lock, ttl)
  redis.call('PEXPIRE', lock.key, digits(ttl))
end

-- Removes holders whose lease is over, at most 1,000 in one call. A lease that ends later than its
-- TTL allows was granted before the server's clock was set back: it ends one TTL from now instead.
local function prune(lock)
  local over = redis.call('ZRANGEBYSCORE', lock.holders, '-inf', digits(now_ms), 'LIMIT', 0, 1000)
  for _, token in ipairs(over) do
    remove_holder(lock, token)
  end
  for i = 1, 100 do
    local last = redis.call('ZRANGE', lock.holders, -1, -1, 'WITHSCORES')
    local ttl = last[1] and number_in(redis.call('HGET', lock.holder_info, last[1]), 'ttl')
    if not ttl or last[2] - now_ms <= ttl + 1000 then
      return
    end
    extend_key(lock, ttl)
    redis.call('ZADD', lock.holders, digits(now_ms + ttl), last[1])
    set_expiry(lock)
  end
end

-- Sets the fields of a lock whose key holds the value `held` (false: the key doesn't exist):
--   held       the value; false: the lock is free
--   mode       'exclusive', 'shared', 'slots', 'rest', 'done'; false: the lock is free
--   turn       the token of the waiter for which the lock is reserved; nil: it isn't reserved
--   n_holders  of a shared lock or slots: the number of its holders; else nil
local function set_value(lock, held)
  lock.held, lock.mode, lock.turn, lock.n_holders = held, held and 'exclusive', nil, nil
  if not held then
    return
  end
  lock.turn = string.match(held, '^(' .. string.rep('%x', 32) .. ')' .. TURN)
  local mode = string.match(held, '^' .. NOBODY .. ' v1 mode=(%a+) ')
  if mode == 'shared' or mode == 'slots' then
    prune(lock)
    lock.mode, lock.n_holders = mode, redis.call('ZCARD', lock.holders)
    if lock.n_holders == 0 then
      redis.call('DEL', lock.key, lock.holders, lock.holder_info)
      lock.held, lock.mode, lock.n_holders = false, false, nil
    end
  elseif mode then
    lock.mode = mode
  end
end

-- Reads the lock, and sets its fields by set_value(). Returns the error reply about a key of
-- another type, or nil.
local function read_lock(lock)
  local held = redis.pcall('GET', lock.key)
  if type(held) == 'table' then
    return held
  end
  local err = held and string.find(held, NOBODY .. ' v1 mode=s', 1, true) == 1 and
    check_holders(lock)
  if err then
    return err
  end
  set_value(lock, held)
end

local function left_ms(lock, token)
  if lock.n_holders then
    return (redis.call('ZSCORE', lock.holders, token) or now_ms) - now_ms
  end
  return redis.call('PTTL', lock.key)
end

-- Extends the lease of this token to `ttl` ms from now. Returns for how many ms the lease lasts.
-- Doesn't shorten a lease, as other processes may count on its end. But a lease that lasts longer
-- than its noted TTL allows, as the server's clock was set back, gets the noted TTL, or `ttl` if
-- that is longer.
local function extend_lease(lock, token, ttl)
  local left = left_ms(lock, token)
  local noted = number_in(info_of(lock, token), 'ttl') or 0
  if left > ttl and left <= noted + 1000 then
    return left
  elseif left > ttl then
    ttl = math.max(ttl, noted)
  end
  extend_key(lock, ttl)
  if lock.n_holders then
    redis.call('ZADD', lock.holders, digits(now_ms + ttl), token)
    set_expiry(lock)
  end
  return ttl
end
