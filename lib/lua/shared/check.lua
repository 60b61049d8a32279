-- check: does each helper key of a lock hold the type of value that rlock keeps there?
-- Included behind shared/keys.lua.

local function check_type(key, what, ...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err and foreign_key(key, what, reply)
end

-- Returns the error reply about a key of the waiting line, or nil or false. To be called before the
-- first write: a script that has failed half way leaves what it has written.
local function check_queue(lock)
  return check_type(lock.queue, 'is no sorted set', 'ZCARD', lock.queue) or
    check_type(lock.waiters, 'is no hash', 'HGET', lock.waiters, 'newest')
end

-- The same about the keys of a lock that several hold.
local function check_holders(lock)
  return check_type(lock.holders, 'is no sorted set', 'ZCARD', lock.holders) or
    check_type(lock.holder_info, 'is no hash', 'HGET', lock.holder_info, '')
end
