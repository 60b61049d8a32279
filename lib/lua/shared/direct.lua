-- direct: a release grants the lock to the first waiter itself. Included after shared/queue.lua,
-- shared/next_fence.lua and shared/history_grant.lua.
--
-- The waiter starts its command when it reads the wake-up, and so saves one round trip. It must
-- know until when the server surely keeps the lock for it, although a wake-up may take any time.
-- So the wake-up names the number of the waiter's last attempt that this server has executed. The
-- waiter counts from before it sent that attempt. The proof uses no time that the server tells
-- (tests/model/handover.pml).

-- If the waiter's last attempt is older than this, the waiter gets its turn, and asks for the lock.
-- Of DIRECT_MS the waiter keeps 0.3 s for TERM, KILL and drift, and wants at least 90 ms and one
-- round trip for the start: so an older attempt would leave too little. (At a distance less is too
-- old: 60 ms with a round trip of 20 ms. Then the waiter asks, and keeps the fence.) The waiter's
-- safety doesn't depend on this number.
local FRESH_MS = 90

-- Grants the free lock to this waiter, which first_waiter() has just returned. The caller has
-- checked that the hold before was brief. Returns false if the waiter can't be granted the lock in
-- this way: then the caller gives it the turn, which replaces a value that the first SET has left.
-- pcall catches errors, such as a missing right of the user that releases the lock.
local function grant_directly(lock, token)
  -- The number in front of "x" is the time of the waiter's heartbeat. It doesn't tell how old the
  -- attempt is: set_life_left() replaces the number by an earlier time, to make the server count a
  -- silent waiter as dead sooner.
  local attempt, ttl, asked_ms, info =
    string.match(get_waiter(lock, token), '^%d+ x di%l+=(%d+):(%d+):(%d+) (.*)')
  local age = asked_ms and now_ms - asked_ms
  if not age or age < 0 or age > FRESH_MS then
    return false
  end
  local last, err = last_fence(lock.fence)
  if err then
    return false
  end
  -- The waiter has told how long it had waited when it asked last; the history notes this.
  info = string.gsub(info, 'waited=(%d+)', function(ms)
    return 'waited=' .. digits(ms + age)
  end, 1)
  local fence = fence_behind(last)
  local value = token .. ' v1 try=' .. attempt .. ' ttl=' .. ttl .. ' ' .. info ..
    ' since=' .. now_ms
  if redis.pcall('SET', lock.key, value, 'PX', DIRECT_MS).err or
    redis.pcall('SET', lock.fence, fence, 'PX', fence_life(tonumber(ttl))).err then
    return false
  end
  leave_queue(lock, token)
  note_grant(lock.queue, string.match(info, 'history=(%d+)'), fence, value)
  alert_near(lock)
  wake(lock, token, 'granted ' .. fence .. ' ' .. attempt .. ' ' .. DIRECT_MS)
  return true
end
