-- renew: extend leases; put a lock back where nobody else can have had it. All of them, or none.
-- ARGV: 1 not-after in ms of server time (0: not known), 2 card, 3 what was wanted, 4 slot
--       and for each lock three: token, ttl in ms (0: as before), fence of the grant (0: not known)
-- returns {1, now, ms left} renewed | {2, now, ms left} the same, one had vanished and was put back
--         {0, now, ms left, value} one is another's | {-1, now} one is gone
--         {-2, now} this request comes too late | {-5, now} all were given back by
--         their token, or one was where it is the token that renews
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/lock.lua

-- By its token alone a lease may become longer than it was granted for.
local function set_ttl(lock)
  local was = number_in(lock.is_mine, 'ttl') or 0
  if lock.ttl == 0 then
    lock.ttl = math.max(1, was)
  elseif lock.ttl > was then
    local card = string.gsub(lock.is_mine, ' ttl=%d+', ' ttl=' .. whole(lock.ttl))
    if lock.several then
      redis.call('HSET', lock.cards, lock.token, card)
    else
      redis.call('SET', lock.key, lock.token .. ' ' .. card, 'XX', 'PX', whole(lock.ttl))
    end
  end
end

local not_after, want = tonumber(ARGV[1]), ARGV[3]

if not_after > 0 and now > not_after then
  return {REPLY_LATE, now}
end

local released = 0
for i, lock in ipairs(locks) do
  local failed = look(lock) or want ~= 'x' and check_holders(lock)
  if failed then
    return failed
  end
  lock.token, lock.ttl = ARGV[i * 3 + 2], tonumber(ARGV[i * 3 + 3])
  lock.is_mine = card_of(lock, lock.token)
  -- The fence moves with every other grant and with our own release: while it stands still,
  -- nobody has had the lock since, and a late renewal can't bring back what was released.
  lock.is_last = redis.pcall('GET', lock.fence) == ARGV[i * 3 + 4]
  lock.is_released = not lock.is_mine and
    redis.pcall('GET', lock.wake .. lock.token) == 'released'
  lock.by_token = ARGV[i * 3 + 4] == '0'
  if lock.is_released and lock.by_token then
    return {REPLY_RELEASED, now}
  elseif lock.is_released then
    released = released + 1
  elseif not lock.is_mine and lock.held and not lock.several then
    return {REPLY_HELD, now, redis.call('PTTL', lock.key), string.sub(lock.held, 1, 500)}
  elseif not lock.is_mine and not lock.is_last then
    return {REPLY_GONE, now}
  end
end

local function put_back(lock)
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
end

local code, left = REPLY_OK, math.huge
for _, lock in ipairs(locks) do
  if released == #locks then
    code = REPLY_RELEASED
  end
  if lock.is_released then -- the word is for its keeper, which renews the others
    redis.call('PEXPIRE', lock.wake .. lock.token, code == REPLY_RELEASED and 0 or whole(lock.ttl))
  else
    if not lock.is_mine then
      put_back(lock)
      code = REPLY_RESTORED
    elseif lock.by_token then
      set_ttl(lock)
    end
    left = math.min(extend(lock, lock.token, lock.ttl), left)
    if lock.is_last then
      redis.call('PEXPIRE', lock.fence, whole(math.max(604800000, lock.ttl * 10)))
    end
  end
end
return {code, now, left < math.huge and left or nil}
