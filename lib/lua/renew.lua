-- renew: extend leases; put a lock back where nobody else can have had it. All of them, or none.
-- ARGV: 1 not-after in ms of server time (0: not known), 2 card, 3 what was wanted, 4 slot
--       and for each lock three: token, ttl in ms, fence of the grant
-- returns {1, now} renewed | {2, now} the same, one had vanished and was put back
--         {0, now, ms left, value} one is another's | {-1, now} one is gone
--         {-2, now} this request comes too late
-- with shared/lock.lua

local not_after, want = tonumber(ARGV[1]), ARGV[3]

if not_after > 0 and now > not_after then
  return {-2, now}
end

for i, lock in ipairs(locks) do
  local failed = look(lock)
  if failed then
    return failed
  end
  lock.token, lock.ttl = ARGV[i * 3 + 2], tonumber(ARGV[i * 3 + 3])
  lock.is_mine = card_of(lock, lock.token)
  -- The fence moves with every other grant and with our own release: while it stands still,
  -- nobody has had the lock since, and a late renewal can't bring back what was released.
  lock.is_last = redis.pcall('GET', lock.fence) == ARGV[i * 3 + 4]
  if not lock.is_mine and lock.held and not lock.several then
    return {0, now, redis.call('PTTL', lock.key), string.sub(lock.held, 1, 500)}
  end
  if not lock.is_mine and not lock.is_last then
    return {-1, now}
  end
end

local code = 1
for _, lock in ipairs(locks) do
  if not lock.is_mine then
    local ttl = whole(lock.ttl)
    local slot = tonumber(want) and 'slot=' .. ARGV[4] .. ' ' or ''
    local value = 'v1 try=- ttl=' .. ttl .. ' ' .. slot .. ARGV[2] .. ' since=' .. now
    if want == 'x' then
      redis.call('SET', lock.key, lock.token .. ' ' .. value, 'NX', 'PX', ttl)
    else
      redis.call('SET', lock.key, marker(want), 'NX', 'PX', ttl)
      redis.call('HSET', lock.cards, lock.token, value)
      lock.several = 1
    end
    code = 2
  end
  extend(lock, lock.token, lock.ttl)
  if lock.is_last then
    redis.call('PEXPIRE', lock.fence, whole(math.max(604800000, lock.ttl * 10)))
  end
end
return {code, now}
