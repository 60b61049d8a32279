-- confirm: note the fence of a grant with those of its locks that are its owner's, all or none.
-- ARGV: 1 token, 2 fence, 3 ttl in ms
-- returns {1, now, fence} noted | {-2, now, last fence} a greater one has been given
--         {-1, now} one of them isn't its owner's
-- The comparison is what makes fences unique and their order that of the grants: of two owners
-- whose majorities meet here, the later one got its own number after the first one's was noted.
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/lock.lua

local fence = tonumber(ARGV[2])
local greatest = fence

for _, lock in ipairs(locks) do
  local failed = look(lock)
  if failed then
    return failed
  end
  if not card_of(lock, ARGV[1]) then
    return {REPLY_GONE, now}
  end
  local last, complaint = last_fence(lock)
  if complaint then
    return complaint
  end
  greatest = math.max(greatest, last)
end
if greatest > fence then
  return {REPLY_LATE, now, whole(greatest)}
end
for _, lock in ipairs(locks) do
  redis.call('SET', lock.fence, ARGV[2], 'PX', whole(math.max(604800000, ARGV[3] * 10)))
end
return {REPLY_OK, now, ARGV[2]}
