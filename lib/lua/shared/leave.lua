-- leave: removes a waiter from a queue, and the note that it is the newest waiter (acquire.lua,
-- note_newest). Included after shared/keys.lua.

local function leave_queue(lock, token)
  -- pcall catches the errors of ZREM, HGET and HDEL if another program uses one of the keys, with
  -- another type, and of DEL if the list isn't in KEYS.
  redis.pcall('ZREM', lock.queue, token)
  local newest = tostring(redis.pcall('HGET', lock.waiters, 'newest'))
  redis.pcall('HDEL', lock.waiters, token, string.sub(newest, -32) == token and 'newest' or token)
  redis.pcall('DEL', lock.wake .. token)
end
