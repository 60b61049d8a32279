--!df flags=allow-undeclared-keys
-- renew: extends the leases of all of some locks, or of none. If a lock has vanished, and nobody
-- else can have held it since, the script puts the lock back. The renewer and rlock_renew call this
-- script.
-- KEYS: those of each lock, see shared/keys.lua
-- ARGV: 1 NOT_AFTER: the latest server time, in ms, at which this script may act; 0: any time
--       2 INFO: who the owner is (holder info)
--       3 MODE: "x": exclusive, "s": shared, a number: at most this many holders (slots)
--       4 SLOT of the grant
--       5... three for each lock: TOKEN that holds it, the owner's or a parent's; TTL in ms, 0: as
--         noted; FENCE of the grant, "0": the caller knows only the token
-- Returns {REPLY_OK, now, ms left}: ms until the first of the leases ends
--         {REPLY_RESTORED, now, ms left}: the same, and the script has put a lock back
--         {REPLY_HELD, now, ms left, value}: another owner holds one of the locks
--         {REPLY_GONE, now}: a lock has vanished, and another owner may have held it since
--         {REPLY_LATE, now}: it is later than NOT_AFTER
--         {REPLY_RELEASED, now}: another process released all of the locks by their token, or, if
--         the caller knows only the token, one of them
--         {REPLY_BROKEN, now, "broken" and the info of who has broken one of the locks}
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/check.lua
--@include shared/lock.lua

-- TTL 0 renews for the TTL that the server has noted. A longer TTL than the noted one is noted:
-- other owners read there how long the lease can last.
local function set_ttl(lock)
  local was = number_in(lock.info, 'ttl') or 0
  if lock.ttl == 0 then
    lock.ttl = math.max(1, was)
  elseif lock.ttl > was then
    extend_key(lock, lock.ttl)
    local info = string.gsub(lock.info, ' ttl=%d+', ' ttl=' .. digits(lock.ttl))
    if lock.n_holders then
      redis.call('HSET', lock.holder_info, lock.token, info)
    else
      redis.call('SET', lock.key, lock.token .. ' ' .. info, 'XX', 'PX', digits(lock.ttl))
    end
  end
end

local not_after, mode = tonumber(ARGV[1]), ARGV[3]
local is_in_quorum = string.find(' ' .. ARGV[2], ' members=%x')

if not_after > 0 and now_ms > not_after then
  return {REPLY_LATE, now_ms}
end

local released = 0
for i, lock in ipairs(locks) do
  local err = read_lock(lock) or mode ~= 'x' and check_holders(lock)
  if err then
    return err
  end
  lock.token, lock.ttl = ARGV[i * 3 + 2], tonumber(ARGV[i * 3 + 3])
  lock.info = info_of(lock, lock.token)
  -- Every grant, every break and this owner's release raise the fence. As long as the fence
  -- equals this grant's fence, nobody else has held the lock since, and nobody has released or
  -- broken the lock: so this script may put the lock back.
  lock.is_last_fence = redis.pcall('GET', lock.fence) == ARGV[i * 3 + 4]
  local note = not lock.info and redis.pcall('GET', lock.wake .. lock.token)
  local is_broken = type(note) == 'string' and string.find(note, 'broken ', 1, true) == 1
  lock.is_released = note == 'released'
  lock.has_token_alone = ARGV[i * 3 + 4] == '0'
  if lock.is_released and lock.has_token_alone then
    return {REPLY_RELEASED, now_ms}
  elseif lock.is_released then
    released = released + 1
  elseif is_broken then
    return {REPLY_BROKEN, now_ms, note}
  elseif not lock.info and lock.held and not lock.n_holders then
    return {REPLY_HELD, now_ms, redis.call('PTTL', lock.key), string.sub(lock.held, 1, 500)}
  elseif not lock.info and not lock.is_last_fence then
    return {REPLY_GONE, now_ms}
  end
end

local function put_back(lock)
  local ttl = digits(lock.ttl)
  local slot = tonumber(mode) and 'slot=' .. ARGV[4] .. ' ' or ''
  local value = 'v1 try=- ttl=' .. ttl .. ' ' .. slot .. ARGV[2] .. ' since=' .. now_ms
  if mode == 'x' then
    redis.call('SET', lock.key, lock.token .. ' ' .. value, 'NX', 'PX', ttl)
  else
    redis.call('SET', lock.key, marker(mode), 'NX', 'PX', ttl)
    redis.call('HSET', lock.holder_info, lock.token, value)
    lock.n_holders = 1
  end
end

local code, left = REPLY_OK, math.huge
for _, lock in ipairs(locks) do
  if released == #locks then
    code = REPLY_RELEASED
  end
  -- The renewer goes on to renew the locks that were not released. So the key with the word
  -- "released" must last until the next renewal. Once all are released, the script deletes the key,
  -- but not in a quorum: there the key stays until its expiry, because the renewer asks again if
  -- too few members have answered.
  if lock.is_released then
    if code ~= REPLY_RELEASED then
      redis.call('PEXPIRE', lock.wake .. lock.token, digits(lock.ttl))
    elseif not is_in_quorum then
      redis.call('DEL', lock.wake .. lock.token)
    end
  else
    if not lock.info then
      put_back(lock)
      code = REPLY_RESTORED
    else
      set_ttl(lock)
    end
    left = math.min(extend_lease(lock, lock.token, lock.ttl), left)
    if lock.is_last_fence then
      redis.call('PEXPIRE', lock.fence, fence_life(lock.ttl))
    end
  end
end
return {code, now_ms, left < math.huge and left or nil}
