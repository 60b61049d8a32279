-- confirm: notes the fence of a quorum's grant as the last one of each of its locks, or of none.
-- Called as the second round of a grant in a quorum, before the command starts.
-- KEYS: of each lock that is the owner's own
-- ARGV: 1 TOKEN of the owner, 2 FENCE: the greatest that a member gave, 3 TTL in ms
-- Returns {REPLY_OK, now, FENCE}
--         {REPLY_LATE, now, last fence}: a greater fence was noted, so that FENCE can't count
--         {REPLY_GONE, now}: one of the locks isn't the owner's any more
--
-- The comparison makes fences unique, and gives them the order of the grants. The majorities of two
-- owners share a member. Whoever confirms there as the second either got its number after the first
-- fence was noted, and then it is greater; or its fence is refused here.
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/lock.lua

local fence = tonumber(ARGV[2])
local greatest = fence

for _, lock in ipairs(locks) do
  local err = read_lock(lock)
  if err then
    return err
  end
  if not info_of(lock, ARGV[1]) then
    return {REPLY_GONE, now_ms}
  end
  local last, err = last_fence(lock)
  if err then
    return err
  end
  greatest = math.max(greatest, last)
end
if greatest > fence then
  return {REPLY_LATE, now_ms, digits(greatest)}
end
for _, lock in ipairs(locks) do
  redis.call('SET', lock.fence, ARGV[2], 'PX', digits(math.max(604800000, ARGV[3] * 10)))
end
return {REPLY_OK, now_ms, ARGV[2]}
