--!df flags=allow-undeclared-keys
-- confirm: stores the fence that a quorum has chosen as the last fence of all of the locks, or of
-- none. A quorum calls this script as the second round of a grant, before the command starts.
-- KEYS: those of each lock that the owner's own token holds, see shared/keys.lua
-- ARGV: 1 TOKEN of the owner, 2 FENCE: the greatest one that a member returned to the acquire,
--       3 TTL of the lease in ms, 4 DRAWN: the fence that this server returned to the acquire; 0:
--       not known
-- Returns {REPLY_OK, now, FENCE}
--         {REPLY_LATE, now, last fence}: this server has stored a greater fence than FENCE, or
--           FENCE for another owner
--         {REPLY_GONE, now}: the owner's token doesn't hold one of the locks any more
--
-- The comparison below keeps the fences of grants in the order of the grants:
-- 1. The majorities of any two owners have a member in common.
-- 2. Owner A stores its fence on that member.
-- 3. If owner B acquires the lock there after step 2, the member gives B a greater fence than A's.
-- 4. If owner B has acquired the lock there before step 2 and B's fence is smaller than A's, the
--    comparison refuses B's fence, and B chooses a greater one.
-- 5. Owners that share the lock may arrive at the same fence: B adds 1 to the fence that a refusal
--    told it, or the clocks of two members agree. So a server that has stored FENCE already refuses
--    FENCE, unless the server itself returned FENCE to this owner's acquire.
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/check.lua
--@include shared/lock.lua
--@include shared/history.lua

local fence, drawn = tonumber(ARGV[2]), tonumber(ARGV[4])
local greatest = 0

for _, lock in ipairs(locks) do
  local err = read_lock(lock)
  if err then
    return err
  end
  lock.info = info_of(lock, ARGV[1])
  if not lock.info then
    return {REPLY_GONE, now_ms}
  end
  local last, err = last_fence(lock.fence)
  if err then
    return err
  end
  greatest = math.max(greatest, last)
end
if greatest > fence or greatest == fence and greatest ~= drawn then
  return {REPLY_LATE, now_ms, digits(greatest)}
end
for _, lock in ipairs(locks) do
  redis.call('SET', lock.fence, ARGV[2], 'PX', fence_life(tonumber(ARGV[3])))
end
for _, lock in ipairs(locks) do
  note(lock.history, string.match(lock.info, ' history=(%d+)'),
    'grant v1 token=' .. short(ARGV[1]) .. ' fence=' .. ARGV[2] ..
    (lock.n_holders and ' shared=1' or '') .. string.sub(lock.info, 3))
end
return {REPLY_OK, now_ms, ARGV[2]}
