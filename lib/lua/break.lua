-- break: take a lock from whoever has it, and pass it on to the first in line.
-- ARGV: 1 name of the value to take away, as inspect tells it
-- returns 1 taken away | 0 it is another value by now | -1 gone
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/line.lua
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

local last, complaint = last_fence(lock)
complaint = complaint or check_line(lock) or check_holders(lock)
if complaint then
  return complaint
end

-- With another fence no holder's renewal can put the lock back. (After the DEL, which frees
-- memory, a server that is out of it allows this, too.)
redis.call('DEL', lock.key, lock.holders, lock.cards)
local life_left = math.max(604800000, redis.call('PTTL', lock.fence))
redis.call('SET', lock.fence, whole(math.max(us, last + 1)), 'PX', whole(life_left))

look(lock)
pass_on(lock)
return REPLY_OK
