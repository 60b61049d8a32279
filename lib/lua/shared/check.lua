-- check: checks that the helper keys of a lock hold values of the types that rlock writes. Included
-- after shared/keys.lua.

local function check_type(key, what, ...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err and foreign_key(key, what, reply)
end

-- Returns the error reply about a key of the queue; nil or false: both keys are right. A script
-- calls this before its first write, as Redis doesn't undo the writes of a script that fails.
local function check_queue(lock)
  return check_type(lock.queue, 'is no sorted set', 'ZCARD', lock.queue) or
    check_type(lock.waiters, 'is no hash', 'HGET', lock.waiters, 'newest')
end

-- Returns the error reply about the keys of the holders of a shared lock or slots, or nil or false.
local function check_holders(lock)
  return check_type(lock.holders, 'is no sorted set', 'ZCARD', lock.holders) or
    check_type(lock.holder_info, 'is no hash', 'HGET', lock.holder_info, '')
end
