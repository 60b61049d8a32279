--!df flags=allow-undeclared-keys
-- acquire: grants one owner all of some locks, or none of them. If another owner is in the way,
-- returns who that is, and, by POLICY, adds the asking owner to the queue of each lock.
-- rlock_acquire calls this script once for each attempt. A quorum also calls it to put the token
-- back on a member that has lost the lock.
-- KEYS: those of each lock, see shared/keys.lua
-- ARGV: 1 START: "TOKEN v1 try=ATTEMPT ttl=TTL INFO": what the value of the lock begins with.
--         TOKEN: the owner's. ATTEMPT: the number of this attempt; the owner's next attempt has a
--         greater one. INFO: who the owner is (holder info)
--       2 TTL of the lease in ms
--       3 POLICY: "fifo": wait in the queue; "newest": wait in the queue, from which this owner
--         removes older waiters; "none": ignore the queue, and acquire a free lock even if
--         others wait for it; "try": acquire a lock only if nobody waits for it, and don't join the
--         queue; "parents": grant the locks only if PARENT tokens hold them already
--       4 HISTORY: the history of the lock keeps at most this many entries; "": this script notes
--         nothing in the history
--       5 NOT_AFTER: the latest server time, in ms, at which this script may act; 0: any time
--       6 TICKET that an earlier attempt returned; "": none
--       7 MODE: "x": exclusive, "s": shared, a number: at most this many holders (slots)
--       8 UNLESS_DONE: "1": return REPLY_DONE if the lock was released as RLOCK_ENDS_DONE; else:
--         wait until its key expires
--       9... tokens of PARENT locks, under which the owner runs
--       A first attempt without parents leaves out 5 to 8 if they are "0", "", "x" and "", and
--       then 4, too, if it is "": each argument costs the server time.
-- Returns TEXT alone: granted; TEXT is the fence, and the server's time in microseconds
--         {REPLY_OK, now, fence}: granted; if the grant includes a slot or a lock of a parent, also
--             slot, "PARENT:FENCE:TTL" of each lock (PARENT: which of the parent tokens holds the
--             lock, counted from 1; 0: the owner's own token does)
--         {REPLY_HELD, now, ms left, value, ms to block, ticket, place, which lock}
--         {REPLY_GONE, now}: POLICY is "parents", and no parent holds one of the locks
--         {REPLY_LATE, now}: it is later than NOT_AFTER, or this attempt or a later one was
--             granted the lock already
--         {REPLY_SUPERSEDED, now, a word and the info of the newer waiter; "": not known}: POLICY
--             is "newest"
--         {REPLY_OTHER_MODE, now, which lock}: a parent holds this lock in another mode than MODE
--         {REPLY_DONE, now, ms left, value}
--@include shared/constants.lua
--@include shared/commands.lua

local policy, history = ARGV[3], (ARGV[4] or '') ~= '' and ARGV[4]

-- The server's time since 1970 in microseconds and in milliseconds. The usual grant uses texts: Lua
-- takes as long to convert a number into a text as Redis takes to execute a command.
local time = redis.call('TIME')
local us_text = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local ms_text = string.sub(us_text, 1, -4)

-- The value of an exclusive lock.
local value = ARGV[1] .. ' since=' .. ms_text

-- The lock's expiry as arguments of SET: whole seconds by EX, all others by PX.
local unit, length = 'PX', ARGV[2]
if string.sub(length, -3) == '000' then
  unit, length = 'EX', string.sub(length, 1, -4)
end

-- The usual grant of one exclusive lock: the lock is free, nobody waits for it, and the last fence,
-- if any, is less than the server's time, which becomes the fence. The script compares the two as
-- texts: numbers of 16 digits are in the order of their texts. The checks below deal with other
-- fences, and with a TTL of 10,000 s or more, for which the fence may have to live longer than
-- FENCE_LIFE.
--
-- This grant stands in front of most of the included files because a server defines the functions
-- of a script anew at each call: to define all of them would take longer than the grant itself. So
-- files that this grant seldom needs are included within its blocks, and further below once more.
if #KEYS == 8 and #ARGV < 5 and policy ~= 'newest' and policy ~= 'parents' and
  redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  local last = redis.pcall('GET', KEYS[2]) or '1000000000000000'
  if #last == 16 and string.find(last, '^[1-9]%d*$') and last < us_text and #us_text == 16 and
    #ARGV[2] < 8 then
    -- pcall catches the error of a server whose command ACL has another name, and of Redis 6, which
    -- has no acl_check_cmd().
    local keys = {key = KEYS[1], fence = KEYS[2]}
    local is_known, is_allowed = pcall(may_all, 'all', keys, redis.acl_check_cmd)
    if not (is_known and is_allowed) then
      --@include shared/keys.lua
      --@include shared/rights.lua
      local err = missing_right_to_hold(lock_at(1))
      if err then
        return err
      end
    end
    redis.call('SET', KEYS[1], value, 'NX', unit, length)
    redis.call('SET', KEYS[2], us_text, 'PX', FENCE_LIFE)
    if history then
      --@include shared/history.lua
      --@include shared/history_grant.lua
      note_grant(KEYS[7], history, us_text, value)
    end
    return us_text
  end
end

local now_us = tonumber(us_text)
local now_ms = math.floor(now_us / 1000)

--@include shared/keys.lua
--@include shared/rights.lua
--@include shared/history.lua
--@include shared/history_grant.lua
--@include shared/fence.lua
--@include shared/leave.lua
--@include shared/locks.lua

local not_after, mode = tonumber(ARGV[5] or 0), ARGV[7] or 'x'

if not_after > 0 and now_ms > not_after then
  return {REPLY_LATE, now_ms}
end

local token, attempt, info = string.match(ARGV[1], '^(%x+) v1 try=(%d+) ttl=%d+ (.*)')
local ttl = tonumber(ARGV[2])
attempt = tonumber(attempt)

local FIRST_PARENT = 9 -- the index in ARGV of the first of the PARENT tokens
local no_parents = #ARGV < FIRST_PARENT

-- Writes an exclusive lock. exists: the condition for SET, "NX" (no key yet) or "XX" (replace it).
local function take_alone(key, exists)
  redis.call('SET', key, value, exists, unit, length)
end

-- Returns the next fence: the server's time in microseconds, or the last fence plus one if that is
-- greater. So fences grow even if the server has lost the last fence with all its data.
local function fence_behind(last)
  return digits(math.max(now_us - 1, last) + 1)
end

local function set_fence(key, fence)
  redis.call('SET', key, fence, 'PX', fence_life(ttl))
end

--@include shared/check.lua
--@include shared/queue.lua
--@include shared/lock.lua

local is_queueing = policy == 'fifo' or policy == 'newest'
local keeps_turns = not is_in_quorum(' ' .. info)

-- The script makes all checks before its first write, so that an error leaves the keys unchanged.
local greatest = 0
for _, lock in ipairs(locks) do
  local last, err = last_fence(lock.fence)
  err = err or check_queue(lock) or check_holders(lock) or
    attempt == 1 and (missing_right_to_hold(lock) or
    mode ~= 'x' and missing_right('several', lock))
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
local ours, is_claim = {}, true
for i, lock in ipairs(locks) do
  -- Fails if the key holds another type than a string: otherwise an owner would wait for ever.
  local err = read_lock(lock)
  if err then
    return err
  end
  lock.index = i
  for j = FIRST_PARENT, #ARGV do
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
    if lock.mode == 'done' and ARGV[8] == '1' then
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
local ticket = tonumber(ARGV[6] or '')

-- Sets the ticket of an owner that has sent none. If an earlier attempt of this owner joined the
-- queue, its reply was lost: the owner keeps the ticket of that attempt, and so its place.
local function draw_ticket()
  for _, lock in ipairs(ours) do
    local place = attempt > 1 and redis.call('ZRANK', lock.queue, token) or nil
    local at = place or -1
    local found = tonumber(redis.call('ZRANGE', lock.queue, at, at, 'WITHSCORES')[2])
    ticket = math.max(place and found or math.max(now_us, (found or 0) + 1), ticket or 0)
  end
end

-- Notes the owner's ticket as that of the newest waiter. Sets the expiry right after the write: a
-- command on another key that failed between the two would end the script, and the key would stay.
local function note_newest(lock)
  redis.call('HSET', lock.waiters, 'newest', digits(ticket) .. ' ' .. token)
  redis.call('PEXPIRE', lock.waiters, QUEUE_MS)
end

-- Keeps only one of the waiters with POLICY "newest" in the queue: the waiter with the greatest
-- ticket. If this owner isn't that waiter, returns the waiter's info, "" if not known; else nil. A
-- greater ticket that this owner itself has drawn doesn't count: if the owner's first attempt
-- arrives after its second, each of the two draws a ticket, and the owner goes on with that of the
-- second.
local function supersede(lock)
  local newest = redis.call('HGET', lock.waiters, 'newest') or ''
  local its_ticket, whose = string.match(newest, '^(%d+) (%x+)')
  if its_ticket and tonumber(its_ticket) > ticket and whose ~= token then
    leave_queue(lock, token)
    return string.match(get_waiter(lock, whose), '^%d+ (.*)') or info_of(lock, whose) or ''
  end
  note_newest(lock)
  if whose and whose ~= token then
    leave_queue(lock, whose)
    wake(lock, whose, 'turn')
  end
end

-- Returns nil, or the reply REPLY_SUPERSEDED.
local function join_queue()
  for _, lock in ipairs(ours) do
    -- The owner has a ticket, but the lock is free and has no queue: the server has lost its data,
    -- and this waiter is the first to ask again. The script reserves the lock for the token of
    -- nobody for CLAIM_MS. Until then waiters with smaller tickets can ask, and get ahead of this
    -- waiter.
    if keeps_turns and not lock.held and (ARGV[6] or '') ~= '' and
      redis.call('EXISTS', lock.queue) == 0 then
      redis.call('SET', lock.key, NOBODY .. TURN .. 'since=' .. now_ms, 'PX', CLAIM_MS)
      read_lock(lock)
    end
    if policy == 'newest' then
      local newer = supersede(lock)
      if newer then
        return {REPLY_SUPERSEDED, now_ms, newer}
      end
    end
    set_waiter(lock, token, now_ms .. ' ' .. mode .. ' ' .. info)
    redis.call('PEXPIRE', lock.waiters, QUEUE_MS)
    redis.call('ZADD', lock.queue, digits(ticket), token)
    redis.call('PEXPIRE', lock.queue, QUEUE_MS)
  end
end

-- A waiter joins the queue before the script reads the queue, as this waiter may be the first.
if is_queueing and ticket and not is_claim then
  local superseded = join_queue()
  if superseded then
    return superseded
  end
end

-- `busy` is a lock that the owner can't have now, to be reported to the owner. If there are several
-- such locks, the script prefers one that has a holder to one that is reserved for a waiter: no
-- lock is reserved for longer than CLAIM_MS.
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
-- - The first waiter asks when the lease expires, and every 250 ms (with the delay of BLPOP itself
--   about every 300 ms): another program may free the lock by DEL, which wakes nobody.
-- - The waiters at the next places ask when the lease expires, and when the waiters ahead of them
--   may have missed their turns.
-- - All others ask seldom: only so that the server knows that they are alive.
local function block_ms(lock, place, left)
  local expiry = left >= 0 and left + 2 or math.huge -- in how many ms the lease has expired
  -- In a quorum each waiter polls: the waiter that this server wakes may find no majority free.
  -- Each waiter polls, too, if the server refuses to scripts the lists of other waiters, which
  -- aren't in KEYS: then no release wakes anybody. Nor is lock.wake, the beginning of their names,
  -- in KEYS. The first two waiters then ask within the CLAIM_MS for which a turn lasts.
  if not keeps_turns or type(redis.pcall('PTTL', lock.wake)) == 'table' then
    return math.min(2500, 200 * math.max(place, 1), expiry)
  end
  if place == 1 then
    return math.min(250, expiry)
  end
  -- For how long a waiter blocks that is not near the front: CLAIM_MS for each waiter ahead, as
  -- each may be dead, and let its turn pass. But at least 2250 ms, so that a long queue doesn't
  -- keep the server busy, and at most until 5 s before this waiter would count as dead.
  local far = math.max(2250, math.min(CLAIM_MS * (place - 1), LIFE_MS - 5000))
  local first, is_its_turn = next_waiter(lock)
  if place == 0 or place > NEAR_PLACES then
    return far
  end
  if not (lock.turn or is_its_turn) then
    far = math.min(far, expiry) -- the first waiter may be dead, too
    return can_have(lock, token, mode) and math.min(CLAIM_MS, life_left(lock, first)) + 2 or far
  end
  -- The waiters ahead may have died after they read their wake-ups. Once all of them count as dead,
  -- none gets a turn: this waiter asks then at the latest.
  local block, longest = 2, 0
  for ahead, waiter in ipairs(redis.call('ZRANGE', lock.queue, 0, place - 2)) do
    -- A waiter behind the first whose wake-up is still in its list is dead, or reads the wake-up
    -- in a moment: this waiter asks without a turn for it, and then gives it the turn.
    if ahead == 1 then
      block = block + (lock.turn and redis.call('PTTL', lock.key) or
        math.max(0, math.min(CLAIM_MS, life_left(lock, waiter))))
    elseif redis.call('PTTL', lock.wake .. waiter) == -2 then
      block = block + CLAIM_MS
    end
    longest = math.max(longest, life_left(lock, waiter))
  end
  return math.min(block, longest + 2)
end

if busy then
  if is_queueing and not ticket then
    draw_ticket()
    local superseded = join_queue()
    if superseded then
      return superseded
    end
  end
  for _, lock in ipairs(is_queueing and keeps_turns and ours or {}) do
    if lock.is_ours and not lock.n_holders and first_waiter(lock) == token then
      -- This lock is free: reserves it for the owner until the other locks are free, too.
      redis.call('SET', lock.key, token .. TURN .. info .. ' since=' .. now_ms, 'PX', CLAIM_MS)
    elseif lock.is_ours and lock.held and not lock.n_holders then
      -- The lock was reserved for the owner, but a waiter ahead of the owner is alive: that waiter
      -- goes first.
      redis.call('DEL', lock.key)
      set_value(lock, false)
      pass_on(lock)
    end
  end
  -- If a lock is reserved for more than CLAIM_MS, the server's clock was set back meanwhile.
  if busy.turn and redis.call('PTTL', busy.key) > CLAIM_MS then
    redis.call('PEXPIRE', busy.key, CLAIM_MS)
  end
  -- An owner that doesn't join the queue has written nothing so far. This write makes a server that
  -- has become a replica reply READONLY, so that rlock looks for the new primary. Without a write
  -- the replica would go on to reply from its old data.
  if not is_queueing then
    redis.call('DEL', busy.wake .. token)
  end
  local place = (redis.call('ZRANK', busy.queue, token) or -1) + 1
  local left, value = redis.call('PTTL', busy.key), busy.held or ''
  local block = block_ms(busy, place, left)
  left = busy.turn and redis.call('PTTL', busy.key) or left -- block_ms() may have cut the turn
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

local BEFORE_INFO = '^v1 try=%d+ ttl=%d+ ' -- the words slot=N and shared=1 stand after these
local slot = 0
for _, lock in ipairs(ours) do
  local exists = lock.held and 'XX' or 'NX'
  local held_info = string.sub(value, 34) -- without the token of 32 digits and a blank
  if mode == 'x' then
    take_alone(lock.key, exists)
    -- The DEL comes after the SET in take_alone(): a server that is out of memory must refuse the
    -- grant, but it refuses a SET only before a script's first write.
    if not lock.held then
      redis.call('DEL', lock.holders, lock.holder_info)
    end
  else
    if tonumber(mode) then
      slot = lock.n_holders and number_in(info_of(lock, token), 'slot') or free_slot(lock)
      held_info = string.gsub(held_info, BEFORE_INFO, '%0slot=' .. slot .. ' ')
    end
    if not lock.n_holders then
      redis.call('SET', lock.key, marker(mode), exists, 'PX', ARGV[2])
      redis.call('DEL', lock.holders, lock.holder_info)
    end
    redis.call('ZADD', lock.holders, digits(now_ms + ttl), token)
    redis.call('HSET', lock.holder_info, token, held_info)
    set_expiry(lock)
  end
  set_fence(lock.fence, fence)
  -- The owner may be in the queue though it sent no ticket: an earlier attempt, whose reply was
  -- lost, may have joined the queue.
  if ticket or attempt > 1 then
    leave_queue(lock, token)
  end
  note_grant(lock.history, history, fence, token .. ' ' ..
    (mode == 'x' and held_info or string.gsub(held_info, BEFORE_INFO, '%0shared=1 ')))
  -- If the first waiter can share the lock, or take another slot, the script gives it the turn.
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
  held_by[i] = '0:' .. fence .. ':' .. ARGV[2]
  if lock.parent then
    local parent_info = info_of(lock, ARGV[lock.parent])
    local parent_ttl = number_in(parent_info, 'ttl') or ttl
    slot = number_in(parent_info, 'slot') or slot
    extend_lease(lock, ARGV[lock.parent], parent_ttl)
    held_by[i] = (lock.parent - FIRST_PARENT + 1) .. ':' .. digits(lock.last) .. ':' .. parent_ttl
  end
end
return {REPLY_OK, now_ms, fence, slot, table.concat(held_by, ' ')}
