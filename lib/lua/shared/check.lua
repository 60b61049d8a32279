-- check: does each helper key of a lock hold what rlock keeps there? Comes behind shared/keys.lua.
-- KEYS and ARGV: none of its own

local function is_of_type(key, what, ...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err and foreign(key, what, reply)
end

-- The complaint about the line of a lock, or nil or false. Called before the first write.
local function check_line(lock)
  return is_of_type(lock.line, 'is no sorted set', 'ZCARD', lock.line) or
    is_of_type(lock.waiters, 'is no hash', 'HGET', lock.waiters, 'newest')
end

-- The same about those that hold it at once.
local function check_holders(lock)
  return is_of_type(lock.holders, 'is no sorted set', 'ZCARD', lock.holders) or
    is_of_type(lock.cards, 'is no hash', 'HGET', lock.cards, '')
end
