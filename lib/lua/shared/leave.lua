-- leave: removes a waiter from a queue. Included after shared/keys.lua.

local function leave_queue(lock, token)
  -- pcall catches the errors of ZREM and HDEL if another program uses one of the keys, with another
  -- type, and of DEL if the list isn't in KEYS.
  redis.pcall('ZREM', lock.queue, token)
  redis.pcall('HDEL', lock.waiters, token)
  redis.pcall('DEL', lock.wake .. token)
end
