--!df flags=allow-undeclared-keys
-- release: of the locks in KEYS, frees those that the owner holds, and passes each on to its first
-- waiter. rlock_release calls this script. An owner also calls it to undo a request that was given
-- up, but may have been granted, and to leave the queue.
-- KEYS: those of each lock, see shared/keys.lua
-- ARGV: 1 VALUE_START: release only a lock whose value starts with this text: "TOKEN " for all
--         grants of the token, "TOKEN v1 try=N " for a grant of attempt N
--       2 FENCE of the grant; "0": the caller knows only the token; "": this is an undo
--       3 ENDED: the words of the history about the end of the hold, with history=N; "": none
--       4 LEAVER: the token of a waiter that leaves the queue; "": nobody leaves it
--       5 ENDING: "": the lock becomes free; "rest": it stays taken for STAY ms; "done": as "rest",
--         but acquire.lua returns REPLY_DONE if UNLESS_DONE is set
--       6 STAY, see ENDING
--       7 INFO: who the owner is (holder info)
--       8 TICKET and 9 MODE with which the owner joins the queue again; absent: it doesn't join
--       The caller may leave out the last arguments. ENDED, LEAVER and ENDING are then "".
-- Returns one code without an array: REPLY_OK; REPLY_HELD: another owner holds one of the locks;
--         REPLY_GONE: one of them is free, or others share it
--@include shared/constants.lua

local leaver, ending = ARGV[4] or '', ARGV[5] or ''
local is_whole_token = #ARGV[1] == 33

-- The usual release: one exclusive lock, which becomes free, and for which nobody waits. It stands
-- in front of most of the included files because a server defines the functions of a script anew at
-- each call: that would take longer than the release itself. To read the server's time would take
-- long, too: so the entry in the history has no at=MS, and ENDED must tell for how long the owner
-- has held the lock (held=MS).
--
-- `held` is the value of the lock, or an error if the key has another type than a string. Of a
-- string, held.err is nil. Byte 41 is the first digit of N in "TOKEN v1 try=N". N is 0, and so the
-- byte is 48, if the lock is reserved for a waiter (see TURN), and never in a holder's value.
if #KEYS == 8 and is_whole_token and ARGV[2] ~= '0' and ARGV[2] ~= '' and leaver == '' and
  ending == '' and (not ARGV[3] or string.find(ARGV[3], ' held=', 1, true)) then
  local held = redis.pcall('GET', KEYS[1])
  if held and not held.err and string.find(held, ARGV[1], 1, true) == 1 and
    string.byte(held, 41) ~= 48 and redis.call('EXISTS', KEYS[3]) == 0 then
    redis.call('DEL', KEYS[1])
    if redis.pcall('GET', KEYS[2]) == ARGV[2] then
      redis.pcall('INCR', KEYS[2]) -- so that no late renewal puts the lock back: see raise_fence()
    end
    if ARGV[3] then
      --@include shared/history.lua
      --@include shared/history_end.lua
      note_end(KEYS[7], held)
    end
    return REPLY_OK
  end
end

--@include shared/history.lua
--@include shared/history_end.lua
--@include shared/keys.lua
--@include shared/clock.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/leave.lua
--@include shared/queue.lua
--@include shared/check.lua
--@include shared/lock.lua

local token = string.sub(ARGV[1], 1, 32)

-- Raises the fence, so that a late renewal of this owner can't put the lock back. Called after the
-- DEL: a server that is out of memory would refuse the INCR as a script's first write.
local function raise_fence(key, was_ours)
  local is_last = redis.pcall('GET', key) == ARGV[2]
  if is_last or was_ours and ARGV[2] == '0' and (last_fence(key) or 0) > 0 then
    redis.pcall('INCR', key)
  end
end

local function is_ours(lock)
  local info = info_of(lock, token)
  return lock.turn == token and is_whole_token or
    info and string.sub(token .. ' ' .. info, 1, #ARGV[1]) == ARGV[1]
end

-- Lets the lock stay taken for STAY ms after its release. The value of an exclusive lock is
-- replaced by one with the token of nobody (32 zeros). In a lock with several holders "-TOKEN",
-- which is no owner's token, replaces the owner's token.
local function stay(lock)
  extend_key(lock, ARGV[6])
  if lock.n_holders then
    local info = string.gsub(info_of(lock, token), ' ttl=%d+',
      ' ttl=' .. ARGV[6] .. ' mode=' .. ending)
    info = string.gsub(info, ' since=%d+$', ' since=' .. now_ms)
    redis.call('ZADD', lock.holders, digits(now_ms + ARGV[6]), '-' .. token)
    redis.call('HSET', lock.holder_info, '-' .. token, info)
  else
    local value = NOBODY .. ' v1 mode=' .. ending .. ' ' .. ARGV[7] .. ' since=' .. now_ms
    redis.call('SET', lock.key, value, 'XX', 'PX', ARGV[6])
    set_value(lock, value)
  end
end

-- Wakes the first 1,000 waiters, so that they ask, and get REPLY_DONE from acquire.lua. The bound
-- keeps the call short; the other waiters ask when their BLPOP times out.
local function wake_all(lock)
  for _, waiter in ipairs(redis.call('ZRANGE', lock.queue, 0, 999)) do
    wake(lock, waiter, 'turn')
  end
end

local function give_back(lock)
  local stays = ending ~= '' and lock.turn ~= token
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

-- Returns whether the script must tell this lock's renewer that the token was released, so that the
-- renewer doesn't report a lost lock: another process than the caller renews the lock (kept=1), and
-- the caller knows only the token.
local function has_renewer(info)
  return ARGV[2] == '0' and info and string.find(info, ' kept=1 ', 1, true)
end

local code = REPLY_OK
for _, lock in ipairs(locks) do
  -- A key of another type than a string belongs to another program, and counts as held by it.
  if read_lock(lock) then
    lock.held, lock.mode = '', 'exclusive'
  end
  lock.has_queue = not check_queue(lock)
  local was_ours = is_ours(lock)
  -- Two undos wake no waiter:
  -- - one in a quorum: another owner most likely has the majority, so no waiter could get the lock;
  -- - one that finds nothing: rlock may send an undo twice (by EVALSHA, then by EVAL), and the
  --   second one must change nothing.
  local wakes_nobody = not is_whole_token and
    (not was_ours or is_in_quorum(info_of(lock, token)))
  local info = was_ours and info_of(lock, token)
  if was_ours then
    local left = has_renewer(info) and left_ms(lock, token)
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

  raise_fence(lock.fence, was_ours)
  note_end(lock.history, info, digits(now_ms))
  if leaver ~= '' and lock.has_queue then
    leave_queue(lock, leaver)
  end
  -- The owner joins the queue again before pass_on(), as the owner may be the first waiter itself.
  if was_ours and ARGV[8] and lock.has_queue then
    set_waiter(lock, token, now_ms .. ' ' .. ARGV[9] .. ' ' .. ARGV[7])
    redis.call('PEXPIRE', lock.waiters, QUEUE_MS)
    redis.call('ZADD', lock.queue, ARGV[8], token)
    redis.call('PEXPIRE', lock.queue, QUEUE_MS)
  end
  -- Passes on the lock even if nothing was released: the lock may have been reserved for the waiter
  -- that leaves.
  if not wakes_nobody and lock.has_queue then
    pass_on(lock)
  end
end
return code
