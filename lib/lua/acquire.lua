-- acquire: grants one owner all of some locks, or none of them. If that isn't possible it puts the
-- owner into the line of each lock, where it wants that, and tells who is in the way. Called by
-- each attempt of rlock_acquire, and by a quorum to repair a member that has lost the lock.
-- KEYS: of each lock, see shared/keys.lua
-- ARGV: 1 TOKEN of the owner
--       2 ATTEMPT: its number; counts up
--       3 INFO: who the owner is (holder info)
--       4 TTL of the lease in ms
--       5 NOT_AFTER: the latest server time, in ms, at which this may be executed; 0: any
--       6 POLICY: "fifo", "newest" (in line, and older waiters leave it), "none" (beside the line),
--         "try" (behind the line, without standing in it), "parents" (only under a parent lock)
--       7 TICKET from an earlier attempt; "": none
--       8 MODE: "x" exclusive, "s" shared, or a number of slots
--       9 UNLESS_DONE: "1": a done mark is the answer, and not waited for
--       10... tokens of PARENT locks, under which the owner runs
-- Returns {REPLY_OK, now, fence}, and where a slot or a parent lock is in the grant, behind that:
--             slot, "PARENT:FENCE:TTL" of each lock (which of the parents holds it; 0: the owner)
--         {REPLY_HELD, now, ms left, value, ms to block, ticket, place, which lock}
--         {REPLY_GONE, now}: POLICY is "parents", and one of the locks is held by none of them
--         {REPLY_LATE, now}: it is later than NOT_AFTER, or a later attempt was granted the lock
--         {REPLY_SUPERSEDED, now}
--         {REPLY_OTHER_MODE, now, which lock}
--         {REPLY_DONE, now, ms left, value}
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/needs.lua

local token, attempt, info = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local ttl, not_after = tonumber(ARGV[4]), tonumber(ARGV[5])
local policy, mode = ARGV[6], ARGV[8]

if not_after > 0 and now_ms > not_after then
  return {REPLY_LATE, now_ms}
end

-- The next fence, by a hybrid clock: the server's time, or one more than the last fence if that is
-- greater. So fences also grow over a loss of the server's data.
local function fence_behind(last)
  return digits(math.max(now_us - 1, last) + 1)
end

local function note_fence(lock, fence)
  redis.call('SET', lock.fence, fence, 'PX', digits(math.max(604800000, ttl * 10)))
end

-- What is kept of a holder; between these two stands the number of its slot, if it has one.
local info_start = 'v1 try=' .. ARGV[2] .. ' ttl=' .. ARGV[4] .. ' '
local info_end = info .. ' since=' .. now_ms

local function take_alone(lock, exists, fence)
  local value = token .. ' ' .. info_start .. info_end
  if ttl % 1000 == 0 then
    redis.call('SET', lock.key, value, exists, 'EX', ttl / 1000)
  else
    redis.call('SET', lock.key, value, exists, 'PX', ARGV[4])
  end
  note_fence(lock, fence)
end

-- The usual grant: one exclusive lock, which is free and without a line, or kept for this waiter.
-- It stands in front of the included files below, since a server defines a script's functions anew
-- for each call: to define those that this case doesn't need takes longer than the case itself.
if #KEYS == 6 and #ARGV == 9 and mode == 'x' and policy ~= 'newest' and policy ~= 'parents' then
  local lock = locks[1]
  local held = redis.pcall('GET', lock.key)
  local is_turn = type(held) == 'string' and string.find(held, token .. TURN, 1, true) == 1
  if is_turn or not held and attempt == 1 and redis.call('EXISTS', lock.queue) == 0 then
    local last, err = last_fence(lock)
    err = err or attempt == 1 and not has_all_rights(lock, mode) and
      missing_right(lock, mode, token)
    if err then
      return err
    end
    local fence = fence_behind(last)
    take_alone(lock, is_turn and 'XX' or 'NX', fence)
    if is_turn then
      leave_queue(lock, token)
    end
    return {REPLY_OK, now_ms, fence}
  end
end

-- with shared/check.lua
-- with shared/queue.lua
-- with shared/lock.lua

local is_queueing = policy == 'fifo' or policy == 'newest'
local keeps_turns = not is_in_quorum(' ' .. info)

-- All checks come before the first write, so that an error changes nothing.
local greatest = 0
for _, lock in ipairs(locks) do
  local last, err = last_fence(lock)
  err = err or check_queue(lock) or check_holders(lock) or
    attempt == 1 and not has_all_rights(lock, mode) and missing_right(lock, mode, token)
  if err then
    return err
  end
  lock.last = last
  greatest = math.max(greatest, last)
end

-- Sorts the locks. lock.parent: the index in ARGV of the parent token that holds it. All others are
-- `ours`: lock.is_mine where an earlier attempt was granted it, and only its reply was lost.
-- is_claim: each of them is ours already, or it is our turn.
local ours, is_claim, no_parents = {}, true, #ARGV < 10
for i, lock in ipairs(locks) do
  local err = read_lock(lock) -- a key of another type: an error, or the owner would wait for ever
  if err then
    return err
  end
  lock.index = i
  for j = 10, #ARGV do
    lock.parent = lock.parent or info_of(lock, ARGV[j]) and j
  end
  if lock.parent then
    local mode_name = mode == 'x' and 'exclusive' or mode == 's' and 'shared' or 'slots'
    if lock.mode ~= 'exclusive' and lock.mode ~= mode_name then
      return {REPLY_OTHER_MODE, now_ms, i}
    end
  else
    ours[#ours + 1] = lock
    local own_info = info_of(lock, token)
    lock.is_mine = own_info and true
    if own_info and (number_in(own_info, 'try') or 0) >= attempt then
      return {REPLY_LATE, now_ms}
    end
    is_claim = is_claim and (lock.is_mine or lock.turn == token)
    if lock.mode == 'done' and ARGV[9] == '1' then
      return {REPLY_DONE, now_ms, redis.call('PTTL', lock.key), string.sub(lock.held, 1, 500)}
    end
  end
end

if policy == 'parents' and #ours > 0 then
  return {REPLY_GONE, now_ms}
end

-- A ticket is the time of the first attempt in microseconds, and greater than all in line. The
-- owner brings it along each time, so the order survives a loss of the server's data.
local ticket = tonumber(ARGV[7])
local function draw_ticket()
  for _, lock in ipairs(ours) do
    local last = redis.call('ZRANGE', lock.queue, -1, -1, 'WITHSCORES')[2]
    ticket = math.max(now_us, (tonumber(last) or 0) + 1, ticket or 0)
  end
end

-- Sets the expiry right behind the write, as a command on another key may fail and end the script.
local function note_newest(lock)
  redis.call('HSET', lock.waiters, 'newest', digits(ticket) .. ' ' .. token)
  redis.call('PEXPIRE', lock.waiters, LIFE_MS * 2)
end

-- Of all who wait by "newest" only the one with the greatest ticket stays in line. Returns false if
-- that isn't this owner.
local function supersede(lock)
  local newest = redis.call('HGET', lock.waiters, 'newest') or ''
  local its_ticket, whose = string.match(newest, '^(%d+) (%x+)')
  if its_ticket and tonumber(its_ticket) > ticket then
    leave_queue(lock, token)
    return false
  end
  note_newest(lock)
  if whose and whose ~= token then
    leave_queue(lock, whose)
    wake(lock, whose, 'turn')
  end
  return true
end

local function join_queue()
  for _, lock in ipairs(ours) do
    -- An owner with a ticket, but no line: the server has lost its data, and this waiter is the
    -- first to be back. The free lock is kept for nobody for CLAIM_MS, so that waiters with smaller
    -- tickets can come back before it is granted.
    if keeps_turns and not lock.held and ARGV[7] ~= '' and
      redis.call('EXISTS', lock.queue) == 0 then
      redis.call('SET', lock.key, NOBODY .. TURN .. 'since=' .. now_ms, 'PX', CLAIM_MS)
      read_lock(lock)
    end
    if policy == 'newest' and not supersede(lock) then
      return false
    end
    set_waiter(lock, token, now_ms .. ' ' .. mode .. ' ' .. info)
    redis.call('PEXPIRE', lock.waiters, LIFE_MS * 2)
    redis.call('ZADD', lock.queue, digits(ticket), token)
    redis.call('PEXPIRE', lock.queue, LIFE_MS * 2)
  end
  return true
end

-- A waiter takes its place before the line is looked at, since it may be the first.
if is_queueing and ticket and not is_claim and not join_queue() then
  return {REPLY_SUPERSEDED, now_ms}
end

local busy -- the lock that is in the way; one that is held, rather than one kept for a waiter
for _, lock in ipairs(ours) do
  lock.is_ours = lock.is_mine or can_have(lock, token, mode)
  if lock.is_ours and not lock.is_mine and lock.turn ~= token and policy ~= 'none' and
    keeps_turns then
    local first, is_its_turn = next_waiter(lock)
    if first and first ~= token then
      lock.is_ours = false
      if is_its_turn then
        offer_turn(lock, first)
      else
        probe(lock, first)
      end
    end
  end
  if not lock.is_ours and (not busy or busy.turn and not lock.turn) then
    busy = lock
  end
end

-- In how many ms a waiter is to ask again unless it is woken. The first asks when the lease
-- expires, and often enough to notice a DEL by another program, which wakes nobody. Those near
-- their turn ask when the waiters ahead of them may have let their turn run out.
local function block_ms(lock, place, left)
  if not keeps_turns then -- in a quorum each polls: who is woken may not reach a majority
    local block = math.min(2500, 200 * math.max(place, 1))
    return left >= 0 and math.min(block, left + 2) or block
  end
  if place == 1 then
    return left >= 0 and math.min(250, left + 2) or 250 -- an idle server ends it up to 50 ms late
  end
  -- If all ahead are dead, each of them costs CLAIM_MS. But not so often that the server is busy
  -- with it, nor so seldom that this waiter counts as dead.
  local far = math.max(2250, math.min(CLAIM_MS * (place - 1), LIFE_MS - 5000))
  local first, is_its_turn = next_waiter(lock)
  if place == 0 or place > NEAR_PLACES then
    return far
  end
  if not (lock.turn or is_its_turn) then
    return can_have(lock, token, mode) and math.min(CLAIM_MS, life_left(lock, first)) + 2 or far
  end
  local block = 2
  for ahead, waiter in ipairs(redis.call('ZRANGE', lock.queue, 0, place - 2)) do
    -- A wake-up that still lies in its list has woken nobody: that waiter is dead, or about to take
    -- it.
    local absent = redis.call('EXISTS', lock.wake .. waiter) == 1
    if absent and ahead == 1 then -- others may have been told just now that it is near
      set_life_left(lock, waiter, math.min(ABSENT_MS, life_left(lock, waiter)))
    end
    if ahead == 1 and lock.turn then
      if absent and redis.call('PTTL', lock.key) > ABSENT_MS then
        redis.call('PEXPIRE', lock.key, ABSENT_MS)
      end
      block = block + redis.call('PTTL', lock.key)
    elseif ahead == 1 then
      block = block + math.max(0, math.min(CLAIM_MS, life_left(lock, waiter)))
    elseif not absent then
      block = block + CLAIM_MS
    end
  end
  return block
end

if busy then
  if is_queueing and not ticket then
    draw_ticket()
    if not join_queue() then
      return {REPLY_SUPERSEDED, now_ms}
    end
  end
  for _, lock in ipairs(is_queueing and keeps_turns and ours or {}) do
    if lock.is_ours and not lock.n_holders and first_alive(lock) == token then
      -- keep this one until the other locks are free as well
      redis.call('SET', lock.key, token .. TURN .. info .. ' since=' .. now_ms, 'PX', CLAIM_MS)
    elseif lock.is_ours and lock.held and not lock.n_holders then
      -- kept for this owner, but a waiter ahead of it is back
      redis.call('DEL', lock.key)
      set_value(lock, false)
      pass_on(lock)
    end
  end
  if busy.turn and redis.call('PTTL', busy.key) > CLAIM_MS then -- the server's clock was set back
    redis.call('PEXPIRE', busy.key, CLAIM_MS)
  end
  -- Outside the line this is the only write. Without one, a primary that has become a replica would
  -- go on to answer; it refuses a write with READONLY, and rlock then looks for the new primary.
  if not is_queueing then
    redis.call('DEL', busy.wake .. token)
  end
  local place = (redis.call('ZRANK', busy.queue, token) or -1) + 1
  local block = block_ms(busy, place, redis.call('PTTL', busy.key))
  local left, value = redis.call('PTTL', busy.key), busy.held or ''
  if busy.n_holders then
    local nth = busy.mode == 'slots' and 0 or -1
    local last = redis.call('ZRANGE', busy.holders, nth, nth, 'WITHSCORES')
    left = last[2] - now_ms
    value = NOBODY .. ' ' .. (redis.call('HGET', busy.holder_info, last[1]) or '')
  end
  return {REPLY_HELD, now_ms, left, string.sub(value, 1, 500), block, digits(ticket or 0), place,
    busy.index}
end

-- Under parent locks alone the fence is theirs, as nothing new is granted.
local fence = #ours > 0 and fence_behind(greatest) or digits(math.max(greatest, 1))

local function free_slot(lock)
  local taken = {}
  for _, holder in ipairs(lock.n_holders and redis.call('HVALS', lock.holder_info) or {}) do
    taken[number_in(holder, 'slot') or -1] = true
  end
  local slot = 0
  while taken[slot] do
    slot = slot + 1
  end
  return slot
end

local slot = 0
for _, lock in ipairs(ours) do
  local exists = lock.held and 'XX' or 'NX'
  if mode == 'x' then
    take_alone(lock, exists, fence)
    if not lock.held then -- behind the SET, so that a server that is out of memory can refuse that
      redis.call('DEL', lock.holders, lock.holder_info)
    end
  else
    local numbered = ''
    if tonumber(mode) then
      slot = lock.n_holders and number_in(info_of(lock, token), 'slot') or free_slot(lock)
      numbered = 'slot=' .. slot .. ' '
    end
    if not lock.n_holders then
      redis.call('SET', lock.key, marker(mode), exists, 'PX', ARGV[4])
      redis.call('DEL', lock.holders, lock.holder_info)
    end
    redis.call('ZADD', lock.holders, digits(now_ms + ttl), token)
    redis.call('HSET', lock.holder_info, token, info_start .. numbered .. info_end)
    set_expiry(lock)
    note_fence(lock, fence)
  end
  if ticket or attempt > 1 then -- an attempt whose reply was lost may have put us in line
    leave_queue(lock, token)
    local newest = policy == 'newest' and redis.call('HGET', lock.waiters, 'newest')
    if newest and string.match(newest, ' (%x+)') == token then
      redis.call('HDEL', lock.waiters, 'newest')
    end
  end
  if mode ~= 'x' and policy ~= 'none' then -- the next waiter may fit in as well
    read_lock(lock)
    pass_on(lock)
  end
end
if mode == 'x' and no_parents then
  return {REPLY_OK, now_ms, fence}
end

-- A parent's lease is extended with the grant: the owner counts its end from this request, too.
local held_by = {}
for i, lock in ipairs(locks) do
  held_by[i] = '0:' .. fence .. ':' .. ARGV[4]
  if lock.parent then
    local parent_info = info_of(lock, ARGV[lock.parent])
    local parent_ttl = number_in(parent_info, 'ttl') or ttl
    slot = number_in(parent_info, 'slot') or slot
    extend_lease(lock, ARGV[lock.parent], parent_ttl)
    held_by[i] = (lock.parent - 9) .. ':' .. digits(lock.last) .. ':' .. parent_ttl
  end
end
return {REPLY_OK, now_ms, fence, slot, table.concat(held_by, ' ')}
