-- release: give back what is its owner's, and pass it on to the first in line.
-- ARGV: 1 how the value starts: "TOKEN " of the owner, or "TOKEN v1 try=N " of one attempt to undo
--       2 fence of the grant (0: not known to who has the token alone;
--         '': undoing an attempt that was never reported)
--       3 token of a waiter who leaves the line ('': nobody does)
--       4 what becomes of the lock: '' free, "rest" taken for a while, "done" marked as done
--       5 for how many ms, 6 card
--       7 ticket with which the owner is in line again (none: it isn't), 8 what it wants there
-- returns 1 released | 2 released, and passed on | 0 one is another's | -1 one is gone
-- with shared/clock.lua
-- with shared/keys.lua

local token = string.sub(ARGV[1], 1, 32)
local is_all = #ARGV[1] == 33

-- From here on a late renewal of ours finds another fence, and can't put the lock back. (After
-- the DEL, which frees memory, a server that is out of it allows this, too.)
local function move_fence(lock, was_ours)
  local is_last = redis.pcall('GET', lock.fence) == ARGV[2]
  if is_last or was_ours and ARGV[2] == '0' and (last_fence(lock) or 0) > 0 then
    redis.pcall('INCR', lock.fence)
  end
end

-- Most who give a lock back had it for themselves, are done, and nobody waits. It would cost the
-- server more to define the functions that this doesn't need than it costs.
local function is_plain(lock)
  local held = #KEYS == 6 and is_all and ARGV[2] ~= '0' and ARGV[4] == '' and
    redis.pcall('GET', lock.key)
  return type(held) == 'string' and string.find(held, ARGV[1], 1, true) == 1 and
    string.find(held, token .. TURN, 1, true) ~= 1
end

local lock = is_plain(locks[1]) and locks[1]
if lock then
  redis.call('DEL', lock.key)
  move_fence(lock, true)
  if ARGV[3] == '' and redis.call('EXISTS', lock.line) == 0 then
    return REPLY_OK
  end
end

-- with shared/check.lua
-- with shared/line.lua

if lock then
  if check_line(lock) then
    return REPLY_OK -- what is wrong with the line is told to who asks for the lock
  end
  if ARGV[3] ~= '' then
    leave(lock, ARGV[3])
  end
  return pass_on(lock) and REPLY_PASSED_ON or REPLY_OK
end

-- with shared/lock.lua

local function is_ours(lock)
  local card = card_of(lock, token)
  return lock.turn == token and is_all or
    card and string.sub(token .. ' ' .. card, 1, #ARGV[1]) == ARGV[1]
end

-- Nobody's entry takes the place of ours among several; alone, a marker does.
local function stay(lock)
  keep_going(lock, ARGV[5])
  if lock.several then
    local card = string.gsub(card_of(lock, token), ' ttl=%d+', ' ttl=' .. ARGV[5])
    redis.call('ZADD', lock.holders, whole(now + ARGV[5]), '-' .. token)
    redis.call('HSET', lock.cards, '-' .. token, card)
  else
    local value = NOBODY .. ' v1 mode=' .. ARGV[4] .. ' ' .. ARGV[6] .. ' since=' .. now
    redis.call('SET', lock.key, value, 'XX', 'PX', ARGV[5])
    see(lock, value)
  end
end

-- What is done already all who wait are to know, and as many as is quickly done at once.
local function tell(lock)
  for _, waiter in ipairs(redis.call('ZRANGE', lock.line, 0, 999)) do
    wake(lock, waiter, 'turn')
  end
end

local function give_back(lock)
  local stays = ARGV[4] ~= '' and lock.turn ~= token
  if stays then
    stay(lock)
  end
  if lock.several then
    forget(lock, token)
  end
  if lock.several and redis.call('ZCARD', lock.holders) > 0 then
    set_end(lock)
    look(lock)
  elseif lock.several then
    redis.call('DEL', lock.key, lock.holders, lock.cards)
    see(lock, false)
  elseif not stays then
    redis.call('DEL', lock.key)
    see(lock, false)
  end
end

-- A keeper of it is to hear that its lease was given back by the token, and not lost.
local function is_kept(card)
  return ARGV[2] == '0' and card and string.find(card, ' kept=1 ', 1, true)
end

local code, is_passed_on = REPLY_OK, false
for _, lock in ipairs(locks) do
  if look(lock) then -- of another type: another's
    lock.held, lock.mode = '', 'exclusive'
  end
  lock.has_line = not check_line(lock)
  local was_ours = is_ours(lock)
  -- who undoes an attempt of which a majority is another's has nothing to pass on
  local is_lost_vote = was_ours and not is_all and votes(card_of(lock, token))
  if was_ours then
    local left = is_kept(card_of(lock, token)) and left_ms(lock, token)
    give_back(lock)
    if left then
      redis.pcall('SET', lock.wake .. token, 'released', 'PX', whole(math.max(1, left)))
    end
    if lock.mode == 'done' and lock.has_line then
      tell(lock)
    end
  elseif lock.held and not lock.several then
    code = REPLY_HELD
  elseif code ~= REPLY_HELD then
    code = REPLY_GONE
  end

  move_fence(lock, was_ours)
  if ARGV[3] ~= '' and lock.has_line then
    leave(lock, ARGV[3])
  end
  -- Before the lock is passed on: so the first in line may be who had it just now.
  if was_ours and ARGV[7] and lock.has_line then
    note(lock, token, now .. ' ' .. ARGV[8] .. ' ' .. ARGV[6])
    redis.call('PEXPIRE', lock.waiters, LIFE * 2)
    redis.call('ZADD', lock.line, ARGV[7], token)
    redis.call('PEXPIRE', lock.line, LIFE * 2)
  end
  if not is_lost_vote and lock.has_line then -- who leaves may have been the one that was woken
    is_passed_on = pass_on(lock) or is_passed_on
  end
end
return code == REPLY_OK and is_passed_on and REPLY_PASSED_ON or code
