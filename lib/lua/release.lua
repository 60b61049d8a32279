-- release: gives back those of some locks that are the owner's, and passes each on to its first
-- waiter. Called by rlock_release; to undo an attempt that was given up, whose grant may have come
-- too late to be seen; and by an owner that gives up, to leave the line.
-- KEYS: of each lock
-- ARGV: 1 VALUE_START, as the value of a lock must start: "TOKEN " for all that was granted to
--         the token, "TOKEN v1 try=N " for what was granted to attempt N
--       2 FENCE of the grant; "0": the caller has the token alone; "": an undo, there was no grant
--       3 LEAVER: the token of a waiter that leaves the line; "": none
--       4 ENDING: "" the lock is free, "rest" it stays taken for a while, "done" it is done
--       5 STAY: for how many ms, of "rest" and "done"
--       6 INFO: who the owner is (holder info)
--       7 TICKET with which the owner stands in line again, 8 MODE that it wants there; or neither
-- Returns, without an array around it, REPLY_OK, REPLY_PASSED_ON, REPLY_HELD: one of the locks is
--         another owner's, or REPLY_GONE: one of them isn't held by the owner, nor by another
-- with shared/clock.lua
-- with shared/keys.lua

local token = string.sub(ARGV[1], 1, 32)
local is_whole_token = #ARGV[1] == 33

-- Raises the fence, so that a renewal of this owner that arrives late can't put the lock back.
-- Called behind the DEL, which frees memory: a server that is out of memory then allows it.
local function raise_fence(lock, was_ours)
  local is_last = redis.pcall('GET', lock.fence) == ARGV[2]
  if is_last or was_ours and ARGV[2] == '0' and (last_fence(lock) or 0) > 0 then
    redis.pcall('INCR', lock.fence)
  end
end

-- The usual release: one exclusive lock, which is free from then on, and without a line. It stands
-- in front of the included files, since a server defines a script's functions anew for each call:
-- to define those that this case doesn't need takes longer than the case itself.
local function is_usual(lock)
  local held = #KEYS == 6 and is_whole_token and ARGV[2] ~= '0' and ARGV[4] == '' and
    redis.pcall('GET', lock.key)
  return type(held) == 'string' and string.find(held, ARGV[1], 1, true) == 1 and
    string.find(held, token .. TURN, 1, true) ~= 1
end

local lock = is_usual(locks[1]) and locks[1]
if lock then
  redis.call('DEL', lock.key)
  raise_fence(lock, true)
  if ARGV[3] == '' and redis.call('EXISTS', lock.queue) == 0 then
    return REPLY_OK
  end
end

-- with shared/check.lua
-- with shared/queue.lua

if lock then
  if check_queue(lock) then
    return REPLY_OK -- what is wrong with the line is told to whoever acquires the lock
  end
  if ARGV[3] ~= '' then
    leave_queue(lock, ARGV[3])
  end
  return pass_on(lock) and REPLY_PASSED_ON or REPLY_OK
end

-- with shared/lock.lua

local function is_ours(lock)
  local info = info_of(lock, token)
  return lock.turn == token and is_whole_token or
    info and string.sub(token .. ' ' .. info, 1, #ARGV[1]) == ARGV[1]
end

-- Lets the lock stay taken. A marker of nobody takes the place of an exclusive value; among several
-- holders, an entry whose token is none takes the place of the owner's.
local function stay(lock)
  extend_key(lock, ARGV[5])
  if lock.n_holders then
    local info = string.gsub(info_of(lock, token), ' ttl=%d+', ' ttl=' .. ARGV[5])
    redis.call('ZADD', lock.holders, digits(now_ms + ARGV[5]), '-' .. token)
    redis.call('HSET', lock.holder_info, '-' .. token, info)
  else
    local value = NOBODY .. ' v1 mode=' .. ARGV[4] .. ' ' .. ARGV[6] .. ' since=' .. now_ms
    redis.call('SET', lock.key, value, 'XX', 'PX', ARGV[5])
    set_value(lock, value)
  end
end

-- Wakes all waiters, to be told that it is done; the first 1,000, so that it doesn't take long.
local function wake_all(lock)
  for _, waiter in ipairs(redis.call('ZRANGE', lock.queue, 0, 999)) do
    wake(lock, waiter, 'turn')
  end
end

local function give_back(lock)
  local stays = ARGV[4] ~= '' and lock.turn ~= token
  if stays then
    stay(lock)
  end
  if lock.n_holders then
    remove_holder(lock, token)
  end
  if lock.n_holders and redis.call('ZCARD', lock.holders) > 0 then
    set_expiry(lock)
    read_lock(lock)
  elseif lock.n_holders then
    redis.call('DEL', lock.key, lock.holders, lock.holder_info)
    set_value(lock, false)
  elseif not stays then
    redis.call('DEL', lock.key)
    set_value(lock, false)
  end
end

-- Another process renews this lock (info has kept=1), and is to be told that it was released by its
-- token, and not lost.
local function has_renewer(info)
  return ARGV[2] == '0' and info and string.find(info, ' kept=1 ', 1, true)
end

local code, is_passed_on = REPLY_OK, false
for _, lock in ipairs(locks) do
  if read_lock(lock) then -- a key of another type: another's
    lock.held, lock.mode = '', 'exclusive'
  end
  lock.has_queue = not check_queue(lock)
  local was_ours = is_ours(lock)
  -- an undo in a quorum: the majority is another owner's, so there is nothing to pass on
  local is_lost_vote = was_ours and not is_whole_token and is_in_quorum(info_of(lock, token))
  if was_ours then
    local left = has_renewer(info_of(lock, token)) and left_ms(lock, token)
    give_back(lock)
    if left then
      redis.pcall('SET', lock.wake .. token, 'released', 'PX', digits(math.max(1, left)))
    end
    if lock.mode == 'done' and lock.has_queue then
      wake_all(lock)
    end
  elseif lock.held and not lock.n_holders then
    code = REPLY_HELD
  elseif code ~= REPLY_HELD then
    code = REPLY_GONE
  end

  raise_fence(lock, was_ours)
  if ARGV[3] ~= '' and lock.has_queue then
    leave_queue(lock, ARGV[3])
  end
  -- Before the lock is passed on, as the owner itself may be the first in line.
  if was_ours and ARGV[7] and lock.has_queue then
    set_waiter(lock, token, now_ms .. ' ' .. ARGV[8] .. ' ' .. ARGV[6])
    redis.call('PEXPIRE', lock.waiters, LIFE_MS * 2)
    redis.call('ZADD', lock.queue, ARGV[7], token)
    redis.call('PEXPIRE', lock.queue, LIFE_MS * 2)
  end
  -- Also if nothing was released: the leaver may be the waiter that was woken.
  if not is_lost_vote and lock.has_queue then
    is_passed_on = pass_on(lock) or is_passed_on
  end
end
return code == REPLY_OK and is_passed_on and REPLY_PASSED_ON or code
