-- acquire: take locks for one owner, all or none, or stand in line for them, or say who holds one.
-- ARGV: 1 token, 2 attempt, 3 card, 4 ttl in ms
--       5 not-after in ms of server time (0: not known)
--       6 how to wait: fifo, newest, none (take it when it is free), try (that, after the line),
--         outer (not at all: it is had only under rlocks that we run under)
--       7 ticket from an earlier attempt ('': none)
--       8 what is wanted: x (alone), s (shared), or a number of slots
--       9 1: not at all, if it was done already
--       10... tokens of the rlocks that we run under
-- returns {1, now, fence} granted, and behind that where there is more to say: slot,
--             for each lock "OUTER:FENCE:TTL" (which of the tokens holds it; 0: ours)
--         {0, now, ms left, value, ms to block, ticket, place, which lock} held, or another's turn
--         {-1, now} by "outer": none of those rlocks holds one of the locks
--         {-2, now} this request comes too late: it was given up, or a later one was served
--         {-3, now} a newer waiter came
--         {-4, now, which lock} an rlock that we run under has it in another way
--         {3, now, ms left, value} done already
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/needs.lua

local token, attempt, card = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local ttl, not_after = tonumber(ARGV[4]), tonumber(ARGV[5])
local waits, want = ARGV[6], ARGV[8]

if not_after > 0 and now > not_after then
  return {REPLY_LATE, now}
end

-- The hybrid clock: greater than every fence before it, also after the data were lost.
local function fence_behind(last)
  return whole(math.max(us - 1, last) + 1)
end

local function note_fence(lock, fence)
  redis.call('SET', lock.fence, fence, 'PX', whole(math.max(604800000, ttl * 10)))
end

-- The card of a holder: between these may come the number of its slot.
local begins, ends = 'v1 try=' .. ARGV[2] .. ' ttl=' .. ARGV[4] .. ' ', card .. ' since=' .. now

local function take_alone(lock, exists, fence)
  local value = token .. ' ' .. begins .. ends
  if ttl % 1000 == 0 then
    redis.call('SET', lock.key, value, exists, 'EX', ttl / 1000)
  else
    redis.call('SET', lock.key, value, exists, 'PX', ARGV[4])
  end
  note_fence(lock, fence)
end

-- Most who are granted a lock want one for themselves, and find it free or kept for them. It would
-- cost the server more to define the functions that this doesn't need than it costs.
if #KEYS == 6 and #ARGV == 9 and want == 'x' and waits ~= 'newest' and waits ~= 'parents' then
  local lock = locks[1]
  local held = redis.pcall('GET', lock.key)
  local is_turn = type(held) == 'string' and string.find(held, token .. TURN, 1, true) == 1
  if is_turn or not held and attempt == 1 and redis.call('EXISTS', lock.line) == 0 then
    local last, complaint = last_fence(lock)
    complaint = complaint or attempt == 1 and not has_all_rights(lock, want) and
      missing_right(lock, want, token)
    if complaint then
      return complaint
    end
    local fence = fence_behind(last)
    take_alone(lock, is_turn and 'XX' or 'NX', fence)
    if is_turn then
      leave(lock, token)
    end
    return {REPLY_OK, now, fence}
  end
end

-- with shared/check.lua
-- with shared/line.lua
-- with shared/lock.lua

local stands = waits == 'fifo' or waits == 'newest'
local keeps_turns = not votes(' ' .. card)

-- Nothing is changed where any of this isn't as rlock keeps it.
local greatest = 0
for _, lock in ipairs(locks) do
  local last, complaint = last_fence(lock)
  complaint = complaint or check_line(lock) or check_holders(lock) or
    attempt == 1 and not has_all_rights(lock, want) and missing_right(lock, want, token)
  if complaint then
    return complaint
  end
  lock.last = last
  greatest = math.max(greatest, last)
end

-- What an attempt of ours took whose reply was lost, what is an outer rlock's, and the rest.
local ours, claimed, outer = {}, true, #ARGV < 10
for i, lock in ipairs(locks) do
  local failed = look(lock) -- of another type: say so instead of looking busy for ever
  if failed then
    return failed
  end
  lock.index = i
  for j = 10, #ARGV do
    lock.outer = lock.outer or card_of(lock, ARGV[j]) and j
  end
  if lock.outer then
    local as = want == 'x' and 'exclusive' or want == 's' and 'shared' or 'slots'
    if lock.mode ~= 'exclusive' and lock.mode ~= as then
      return {REPLY_OTHER_MODE, now, i}
    end
  else
    ours[#ours + 1] = lock
    local mine = card_of(lock, token)
    lock.is_mine = mine and true
    if mine and (number_in(mine, 'try') or 0) >= attempt then
      return {REPLY_LATE, now}
    end
    claimed = claimed and (lock.is_mine or lock.turn == token)
    if lock.mode == 'done' and ARGV[9] == '1' then
      return {REPLY_DONE, now, redis.call('PTTL', lock.key), string.sub(lock.held, 1, 500)}
    end
  end
end

if waits == 'parents' and #ours > 0 then
  return {REPLY_GONE, now}
end

-- A ticket is the moment of its first attempt, and later than all in line. Its owner keeps it, so
-- the order outlives the line's data.
local ticket = tonumber(ARGV[7])
local function draw_ticket()
  for _, lock in ipairs(ours) do
    local last = redis.call('ZRANGE', lock.line, -1, -1, 'WITHSCORES')[2]
    ticket = math.max(us, (tonumber(last) or 0) + 1, ticket or 0)
  end
end

-- Each key gets its expiry at once: the next one may turn out to be of another type.
local function note_newest(lock)
  redis.call('HSET', lock.waiters, 'newest', whole(ticket) .. ' ' .. token)
  redis.call('PEXPIRE', lock.waiters, LIFE * 2)
end

-- Of those who wait by "newest" one stays. Returns false if that isn't us.
local function supersede(lock)
  local newest = redis.call('HGET', lock.waiters, 'newest') or ''
  local its_ticket, whose = string.match(newest, '^(%d+) (%x+)')
  if its_ticket and tonumber(its_ticket) > ticket then
    leave(lock, token)
    return false
  end
  note_newest(lock)
  if whose and whose ~= token then
    leave(lock, whose)
    wake(lock, whose, 'turn')
  end
  return true
end

local function stand_in_line()
  for _, lock in ipairs(ours) do
    -- Who brings a ticket to a server that knows of no line is the first to be back after its data
    -- were lost: the others, who may come before it in line, get the time to come back, too.
    if keeps_turns and not lock.held and ARGV[7] ~= '' and redis.call('EXISTS', lock.line) == 0 then
      redis.call('SET', lock.key, NOBODY .. TURN .. 'since=' .. now, 'PX', CLAIM)
      look(lock)
    end
    if waits == 'newest' and not supersede(lock) then
      return false
    end
    note(lock, token, now .. ' ' .. want .. ' ' .. card)
    redis.call('PEXPIRE', lock.waiters, LIFE * 2)
    redis.call('ZADD', lock.line, whole(ticket), token)
    redis.call('PEXPIRE', lock.line, LIFE * 2)
  end
  return true
end

-- Who has waited before takes its place before anything else: it may be the first.
if stands and ticket and not claimed and not stand_in_line() then
  return {REPLY_SUPERSEDED, now}
end

local busy -- what is in the way, a holder before a line
for _, lock in ipairs(ours) do
  lock.is_ours = lock.is_mine or is_open(lock, token, want)
  if lock.is_ours and not lock.is_mine and lock.turn ~= token and waits ~= 'none' and
    keeps_turns then
    local first, is_its_turn = next_turn(lock)
    if first and first ~= token then
      lock.is_ours = false
      if is_its_turn then
        hand_to(lock, first)
      else
        probe(lock, first)
      end
    end
  end
  if not lock.is_ours and (not busy or busy.turn and not lock.turn) then
    busy = lock
  end
end

-- In how many ms a waiter looks again unless it is woken. The first watches for expiry, and for a
-- DEL that wakes nobody. The next ones watch those ahead of them whose turn it is.
local function block_ms(lock, place, left)
  if not keeps_turns then -- at times each looks, as others may be woken who can't have it
    local block = math.min(2500, 200 * math.max(place, 1))
    return left >= 0 and math.min(block, left + 2) or block
  end
  if place == 1 then
    return left >= 0 and math.min(250, left + 2) or 250 -- each 300 ms, as a server at rest counts
  end
  -- All ahead may be dead, and cost no more than their time to claim a turn. Nobody asks too often,
  -- nor so seldom that it counts as dead.
  local far = math.max(2250, math.min(CLAIM * (place - 1), LIFE - 5000))
  local first, is_its_turn = next_turn(lock)
  if place == 0 or place > NEAR then
    return far
  end
  if not (lock.turn or is_its_turn) then
    return is_open(lock, token, want) and math.min(CLAIM, life(lock, first)) + 2 or far
  end
  local block = 2
  for ahead, waiter in ipairs(redis.call('ZRANGE', lock.line, 0, place - 2)) do
    -- A wake-up that is still there woke nobody: its owner is dead, or will find it at once.
    local absent = redis.call('EXISTS', lock.wake .. waiter) == 1
    if absent and ahead == 1 then -- who is only near its turn may have been told just now
      set_life(lock, waiter, math.min(ABSENT, life(lock, waiter)))
    end
    if ahead == 1 and lock.turn then
      if absent and redis.call('PTTL', lock.key) > ABSENT then
        redis.call('PEXPIRE', lock.key, ABSENT)
      end
      block = block + redis.call('PTTL', lock.key)
    elseif ahead == 1 then
      block = block + math.max(0, math.min(CLAIM, life(lock, waiter)))
    elseif not absent then
      block = block + CLAIM
    end
  end
  return block
end

if busy then
  if stands and not ticket then
    draw_ticket()
    if not stand_in_line() then
      return {REPLY_SUPERSEDED, now}
    end
  end
  for _, lock in ipairs(stands and keeps_turns and ours or {}) do
    if lock.is_ours and not lock.several and head(lock) == token then -- as soon as the others are
      redis.call('SET', lock.key, token .. TURN .. card .. ' since=' .. now, 'PX', CLAIM)
    elseif lock.is_ours and lock.held and not lock.several then -- one is back that is ahead of us
      redis.call('DEL', lock.key)
      see(lock, false)
      pass_on(lock)
    end
  end
  if busy.turn and redis.call('PTTL', busy.key) > CLAIM then -- the clock was set back
    redis.call('PEXPIRE', busy.key, CLAIM)
  end
  -- Without this write a waiter that stands in no line only reads. A demoted primary answers reads
  -- for ever; it refuses the DEL with READONLY, and rlock connects anew.
  if not stands then
    redis.call('DEL', busy.wake .. token)
  end
  local place = (redis.call('ZRANK', busy.line, token) or -1) + 1
  local block = block_ms(busy, place, redis.call('PTTL', busy.key))
  local left, value = redis.call('PTTL', busy.key), busy.held or ''
  if busy.several then
    local nth = busy.mode == 'slots' and 0 or -1
    local last = redis.call('ZRANGE', busy.holders, nth, nth, 'WITHSCORES')
    left, value = last[2] - now, NOBODY .. ' ' .. (redis.call('HGET', busy.cards, last[1]) or '')
  end
  return {REPLY_HELD, now, left, string.sub(value, 1, 500), block, whole(ticket or 0), place,
    busy.index}
end

-- Who runs under outer locks alone has their fence.
local fence = #ours > 0 and fence_behind(greatest) or whole(math.max(greatest, 1))

local function free_slot(lock)
  local taken = {}
  for _, holder in ipairs(lock.several and redis.call('HVALS', lock.cards) or {}) do
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
  if want == 'x' then
    take_alone(lock, exists, fence)
    if not lock.held then -- not first: a server without memory would let us go on
      redis.call('DEL', lock.holders, lock.cards)
    end
  else
    local numbered = ''
    if tonumber(want) then
      slot = lock.several and number_in(card_of(lock, token), 'slot') or free_slot(lock)
      numbered = 'slot=' .. slot .. ' '
    end
    if not lock.several then
      redis.call('SET', lock.key, marker(want), exists, 'PX', ARGV[4])
      redis.call('DEL', lock.holders, lock.cards)
    end
    redis.call('ZADD', lock.holders, whole(now + ttl), token)
    redis.call('HSET', lock.cards, token, begins .. numbered .. ends)
    set_end(lock)
    note_fence(lock, fence)
  end
  if ticket or attempt > 1 then -- an earlier one may have put us in line, and not told
    leave(lock, token)
    local newest = waits == 'newest' and redis.call('HGET', lock.waiters, 'newest')
    if newest and string.match(newest, ' (%x+)') == token then
      redis.call('HDEL', lock.waiters, 'newest')
    end
  end
  if want ~= 'x' and waits ~= 'none' then -- there may be room for the next one
    look(lock)
    pass_on(lock)
  end
end
if want == 'x' and outer then
  return {REPLY_OK, now, fence}
end

local held_by = {}
for i, lock in ipairs(locks) do
  held_by[i] = '0:' .. fence .. ':' .. ARGV[4]
  if lock.outer then
    local of = card_of(lock, ARGV[lock.outer])
    local its_ttl = number_in(of, 'ttl') or ttl
    slot = number_in(of, 'slot') or slot
    extend(lock, ARGV[lock.outer], its_ttl)
    held_by[i] = (lock.outer - 9) .. ':' .. whole(lock.last) .. ':' .. its_ttl
  end
end
return {REPLY_OK, now, fence, slot, table.concat(held_by, ' ')}
