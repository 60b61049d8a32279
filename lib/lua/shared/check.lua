-- check: checks that the helper keys of a lock hold values of the types that rlock writes. Included
-- after shared/fence.lua.

local function check_type(key, what, ...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err and foreign_key(key, what, reply)
end

-- Returns an error reply if lock.queue or lock.waiters holds another type; else nil or false. A
-- script calls this before its first write: Redis doesn't undo the writes of a script that fails.
local function check_queue(lock)
  return check_type(lock.queue, 'is no sorted set', 'ZCARD', lock.queue) or
    check_type(lock.waiters, 'is no hash', 'HGET', lock.waiters, 'newest')
end

-- Returns an error reply if lock.holders or lock.holder_info holds another type; else nil or false.
local function check_holders(lock)
  return check_type(lock.holders, 'is no sorted set', 'ZCARD', lock.holders) or
    check_type(lock.holder_info, 'is no hash', 'HGET', lock.holder_info, '')
end
