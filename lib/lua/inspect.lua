--!df flags=allow-undeclared-keys
-- inspect: returns who holds a lock, and who waits for it. Changes nothing. rlock_inspect calls
-- this script once for each page of waiters.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: 1 AFTER: return only waiters with a greater ticket than this; "": begin with the first one
--       2 COUNT: read this many waiters
--       3 return at most this many holders
-- Returns {now, view (see shared/view.lua), name of the value (see name_of() there),
--          AFTER for the next call ("": the queue ends here),
--          and for each waiter that is alive: ticket, "HEARTBEAT MODE INFO"}
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/check.lua
--@include shared/leave.lua
--@include shared/queue.lua
--@include shared/lock.lua
--@include shared/view.lua

local lock = locks[1]
local kind = redis.call('TYPE', lock.key)['ok']
if kind ~= 'string' and kind ~= 'none' then
  return redis.pcall('GET', lock.key) -- the server's error WRONGTYPE
end

local after = ARGV[1] == '' and '-inf' or '(' .. ARGV[1]
local waiters = check_queue(lock) and {} or
  redis.call('ZRANGEBYSCORE', lock.queue, after, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local answer = {now_ms, view(lock, ARGV[3]), name_of(lock), ''}
for i = 1, #waiters, 2 do
  if life_left(lock, waiters[i]) > 0 then
    answer[#answer + 1] = waiters[i + 1]
    answer[#answer + 1] = string.sub(redis.call('HGET', lock.waiters, waiters[i]), 1, VALUE)
  end
end
if #waiters == ARGV[2] * 2 then
  answer[4] = waiters[#waiters]
end
return answer
