-- break: takes a lock away from its holders, and passes it on to the first waiter. rlock_break
-- calls this script.
-- KEYS: six of one lock, see shared/keys.lua
-- ARGV: 1 NAME: a hash that stands for the value to remove (see name_of() in shared/view.lua);
--         inspect.lua returned it
-- Returns REPLY_OK: the value was removed; REPLY_HELD: the lock has another value by now;
--         REPLY_GONE: the lock is free
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/queue.lua
-- with shared/lock.lua
-- with shared/view.lua

local lock = locks[1]
local kind = redis.call('TYPE', lock.key)['ok']
if kind == 'none' then
  return REPLY_GONE
end
if kind ~= 'string' or name_of(lock) ~= ARGV[1] then
  return REPLY_HELD
end

local last, err = last_fence(lock)
err = err or check_queue(lock) or check_holders(lock)
if err then
  return err
end

-- Raises the fence, so that no renewal of the former holder can put the lock back. The SET comes
-- after the DEL: a server that is out of memory refuses a SET only before a script's first write.
redis.call('DEL', lock.key, lock.holders, lock.holder_info)
local fence_left = math.max(604800000, redis.call('PTTL', lock.fence))
redis.call('SET', lock.fence, digits(math.max(now_us, last + 1)), 'PX', digits(fence_left))

read_lock(lock)
pass_on(lock)
return REPLY_OK
