--!df flags=allow-undeclared-keys
-- break: takes a lock away from its holders, and passes it on to the first waiter. rlock_break
-- calls this script.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: 1 NAME of the value to remove, from inspect.lua; see name_of() in shared/view.lua
--       2 INFO: who breaks the lock (holder info)
-- Returns REPLY_OK: the value was removed; REPLY_HELD: the lock has another value by now;
--         REPLY_GONE: the lock is free
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/history.lua
--@include shared/locks.lua
--@include shared/check.lua
--@include shared/leave.lua
--@include shared/queue.lua
--@include shared/lock.lua
--@include shared/view.lua

local lock = locks[1]
local kind = redis.call('TYPE', lock.key)['ok']
if kind == 'none' then
  return REPLY_GONE
end
if kind ~= 'string' or name_of(lock) ~= ARGV[1] then
  return REPLY_HELD
end

local last, err = last_fence(lock.fence)
err = err or check_queue(lock) or check_holders(lock)
if err then
  return err
end

-- The holder info of one holder. Its word history=N says how many entries note() keeps.
local holder_info = ''

-- Returns a table of at most 100 holders: TOKEN -> for how many ms its lease lasts. Sets
-- holder_info.
local function holders_left()
  local value, left = redis.call('GETRANGE', lock.key, 0, VALUE - 1), {}
  local token = string.match(value, '^(%x+) v1 try=[1-9-]')
  if token then
    left[token] = redis.call('PTTL', lock.key)
    holder_info = value
  elseif is_of_several(value) then
    local some = redis.call('ZRANGE', lock.holders, 0, 99, 'WITHSCORES')
    for i = 1, #some, 2 do
      left[some[i]] = some[i + 1] - now_ms
    end
    holder_info = redis.call('HGET', lock.holder_info, some[1] or '') or ''
  end
  return left
end

local left_of = holders_left()

-- Raises the fence, so that no renewal of the former holder can put the lock back. DEL comes first:
-- a server that is out of memory would refuse the SET as a script's first write.
redis.call('DEL', lock.key, lock.holders, lock.holder_info)
local fence_left = math.max(tonumber(FENCE_LIFE), redis.call('PTTL', lock.fence))
redis.call('SET', lock.fence, digits(math.max(now_us, last + 1)), 'PX', digits(fence_left))

-- Leaves a note for each holder in the key wake:TOKEN, on which waiters block otherwise. The
-- holder's next renewal fails, and reads there who has broken the lock. The note lasts as long as
-- the lease would have lasted.
local broken = {}
for token, left in pairs(left_of) do
  broken[#broken + 1] = short(token)
  redis.pcall('SET', lock.wake .. token, 'broken ' .. ARGV[2], 'PX',
    digits(left > 0 and left or 60000))
end

table.sort(broken) -- pairs() has another order on each server
note(lock.history, string.match(holder_info .. ' ' .. ARGV[2], ' history=(%d+)'),
  'break v1 token=' .. table.concat(broken, ',') .. ' at=' .. digits(now_ms) .. ' ' .. ARGV[2])

read_lock(lock)
pass_on(lock)
return REPLY_OK
