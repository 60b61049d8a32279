-- acquire: grants one owner all of some locks, or none of them. If another owner is in the way,
-- this script returns who that is, and adds the asking owner to the queue of each lock if it will
-- wait. rlock_acquire calls this script once for each attempt. A quorum also calls it to put the
-- token back on a member that has lost the lock.
-- KEYS: six of each lock, see shared/keys.lua
-- ARGV: 1 TOKEN of the owner
--       2 ATTEMPT: the number of this attempt; the owner's next attempt has a greater one
--       3 INFO: who the owner is (holder info)
--       4 TTL of the lease in ms
--       5 NOT_AFTER: the latest server time, in ms, at which this script may act; 0: any time
--       6 POLICY: "fifo": wait in the queue; "newest": wait in the queue, from which this owner
--         removes older waiters; "none": ignore the queue, and take a lock that is free although
--         others wait for it; "try": take a lock only if nobody waits for it, and don't join the
--         queue; "parents": grant the locks only if PARENT tokens hold them already
--       7 TICKET that an earlier attempt returned; "": none
--       8 MODE: "x": exclusive, "s": shared, a number: at most so many holders (slots)
--       9 UNLESS_DONE: "1": return REPLY_DONE if a done mark is in the way; else: wait until the
--         mark expires
--       10... tokens of PARENT locks, under which the owner runs
-- Returns {REPLY_OK, now, fence}, and if the grant includes a slot or a lock of a parent, also:
--             slot, "PARENT:FENCE:TTL" of each lock (PARENT: which of the parent tokens holds the
--             lock, counted from 1; 0: the owner's own token does)
--         {REPLY_HELD, now, ms left, value, ms to block, ticket, place, which lock}
--         {REPLY_GONE, now}: POLICY is "parents", and no parent holds one of the locks
--         {REPLY_LATE, now}: it is later than NOT_AFTER, or a later attempt was granted the lock
--         {REPLY_SUPERSEDED, now}: POLICY is "newest", and a newer waiter came
--         {REPLY_OTHER_MODE, now, which lock}: a parent holds this lock in another mode than MODE
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

-- Returns the next fence: the server's time in microseconds, or the last fence plus one if that is
-- greater (a hybrid clock). So the next fence is greater also if the server has lost its data, and
-- the last fence with them.
local function fence_behind(last)
  return digits(math.max(now_us - 1, last) + 1)
end

local function note_fence(lock, fence)
  redis.call('SET', lock.fence, fence, 'PX', digits(math.max(604800000, ttl * 10)))
end

-- The two parts of what the server keeps of a holder. The number of the holder's slot, if it has
-- one, stands between them.
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

-- The usual grant: one exclusive lock, which is free and has no queue, or which the server keeps
-- for this waiter. This case stands in front of the included files because a server defines the
-- functions of a script anew at each call: to define those that this case doesn't need would take
-- longer than the case itself.
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

-- The script makes all checks before its first write, so that an error leaves the keys unchanged.
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

-- Divides the locks into those that a parent token holds and the others, which the owner needs for
-- its own token (`ours`).
--   lock.parent   the index in ARGV of the parent token that holds the lock; nil: none does
--   lock.is_mine  the owner's token holds the lock: an earlier attempt was granted it, but the
--                 owner has not received the reply
--   is_claim      the owner's token holds each lock in `ours`, or has its turn there
local ours, is_claim, no_parents = {}, true, #ARGV < 10
for i, lock in ipairs(locks) do
  -- Fails if the key holds another type than a string: an owner could only wait for it for ever.
  local err = read_lock(lock)
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

-- A ticket is the server time of the owner's first attempt in microseconds, or more: it is greater
-- than all tickets in the queue. The owner sends its ticket with each further attempt. So waiters
-- get back in the same order if the server has lost its data.
local ticket = tonumber(ARGV[7])
local function draw_ticket()
  for _, lock in ipairs(ours) do
    local last = redis.call('ZRANGE', lock.queue, -1, -1, 'WITHSCORES')[2]
    ticket = math.max(now_us, (tonumber(last) or 0) + 1, ticket or 0)
  end
end

-- Notes the owner's ticket as that of the newest waiter. Sets the expiry right after the write: a
-- command on another key that failed between the two would end the script, and the key would stay.
local function note_newest(lock)
  redis.call('HSET', lock.waiters, 'newest', digits(ticket) .. ' ' .. token)
  redis.call('PEXPIRE', lock.waiters, LIFE_MS * 2)
end

-- Keeps only one of the waiters with POLICY "newest" in the queue, that with the greatest ticket.
-- Returns false if that waiter is not this owner.
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
    -- The owner has a ticket, but the lock is free and has no queue: the server has lost its data,
    -- and this waiter is the first to ask again. The script reserves the lock for the token of
    -- nobody for CLAIM_MS. Until then waiters with smaller tickets can ask, and get ahead of it.
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

-- A waiter joins the queue before the script reads the queue, as this waiter may be the first.
if is_queueing and ticket and not is_claim and not join_queue() then
  return {REPLY_SUPERSEDED, now_ms}
end

-- `busy` is a lock that the owner can't have now, to be reported to the owner. If there are several
-- such locks, the script prefers one that has a holder to one that the server keeps for a waiter,
-- because a turn lasts only CLAIM_MS.
local busy
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

-- Returns in how many ms a waiter must ask again if nobody wakes it.
-- - The first waiter asks when the lease expires, and every 250 ms: another program may free the
--   lock by DEL, which wakes nobody.
-- - The waiters at the next places ask when those ahead of them may have missed their turns.
-- - All others ask seldom: only so that the server knows that they are alive.
local function block_ms(lock, place, left)
  -- In a quorum each waiter polls: the waiter that this server wakes may find no majority free.
  if not keeps_turns then
    local block = math.min(2500, 200 * math.max(place, 1))
    return left >= 0 and math.min(block, left + 2) or block
  end
  if place == 1 then
    -- A server that has nothing else to do ends a BLPOP up to 50 ms late.
    return left >= 0 and math.min(250, left + 2) or 250
  end
  -- If all waiters ahead are dead, the turn of each lasts CLAIM_MS until the next one gets it. The
  -- least is 2250 ms, so that a long queue doesn't keep the server busy; the most leaves 5 s until
  -- this waiter would count as dead.
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
    -- If the waiter's wake-up is still in its list, either the waiter is dead, or it reads the
    -- wake-up in a moment.
    local absent = redis.call('EXISTS', lock.wake .. waiter) == 1
    if absent and ahead == 1 then
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
      -- This lock is free: the server keeps it for the owner until the other locks are free, too.
      redis.call('SET', lock.key, token .. TURN .. info .. ' since=' .. now_ms, 'PX', CLAIM_MS)
    elseif lock.is_ours and lock.held and not lock.n_holders then
      -- The server kept this lock for the owner, but a waiter ahead of the owner asks again.
      redis.call('DEL', lock.key)
      set_value(lock, false)
      pass_on(lock)
    end
  end
  -- A turn that lasts longer than CLAIM_MS was given before the server's clock was set back.
  if busy.turn and redis.call('PTTL', busy.key) > CLAIM_MS then
    redis.call('PEXPIRE', busy.key, CLAIM_MS)
  end
  -- An owner that doesn't join the queue has written nothing so far. This write makes a server that
  -- was demoted to a replica answer READONLY, so that rlock looks for the new primary. Without any
  -- write the replica would go on to answer from its old data.
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

-- If parents hold all of the locks, the script draws no new fence: the owner gets the greatest
-- fence of the parents' locks.
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
    -- The DEL comes after the SET in take_alone(): a server that is out of memory must refuse the
    -- grant, but it refuses a SET only before a script's first write.
    if not lock.held then
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
  -- The owner may be in the queue though it sent no ticket: an earlier attempt, whose reply was
  -- lost, may have joined the queue.
  if ticket or attempt > 1 then
    leave_queue(lock, token)
    local newest = policy == 'newest' and redis.call('HGET', lock.waiters, 'newest')
    if newest and string.match(newest, ' (%x+)') == token then
      redis.call('HDEL', lock.waiters, 'newest')
    end
  end
  -- The first waiter may be able to share the lock, or to take another slot: gives it its turn.
  if mode ~= 'x' and policy ~= 'none' then
    read_lock(lock)
    pass_on(lock)
  end
end
if mode == 'x' and no_parents then
  return {REPLY_OK, now_ms, fence}
end

-- Extends the leases of the parents with the grant, because the owner counts the end of every lease
-- from the moment at which it sent this request.
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
