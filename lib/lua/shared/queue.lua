-- queue: the waiting line of each lock. Included behind shared/keys.lua.
-- The functions use the fields of a lock that set_value() of shared/lock.lua sets.
--
-- Each request of a waiter is its heartbeat, and one is due within LIFE_MS - 5 s. A waiter without
-- a heartbeat for LIFE_MS counts as dead, and leaves the line when it comes to its head. A waiter
-- whose turn it is has CLAIM_MS to ask: then the turn is the next one's. A waiter that was woken,
-- but whose wake-up still lies there, has ABSENT_MS. Those at the first NEAR_PLACES are told that
-- their turn is near, and are to ask within NEAR_MS.

local LIFE_MS, CLAIM_MS, ABSENT_MS, NEAR_MS, NEAR_PLACES = 20000, 500, 300, 1500, 6

-- What each waiter left in lock.waiters, read once: a call costs the server as much as this page.
local waiters_read = {}

local function get_waiter(lock, token)
  local of = lock.wake .. token
  waiters_read[of] = waiters_read[of] or redis.call('HGET', lock.waiters, token) or ''
  return waiters_read[of]
end

local function set_waiter(lock, token, text)
  waiters_read[lock.wake .. token] = text
  redis.call('HSET', lock.waiters, token, text)
end

-- For how many ms the waiter still counts as alive. A heartbeat in the future was noted before the
-- server's clock was set back: that waiter can't be known to be dead, and keeps its place.
local function life_left(lock, token)
  local heartbeat = tonumber(string.match(get_waiter(lock, token), '^%d+'))
  return heartbeat and heartbeat + LIFE_MS - now_ms or 0
end

-- The first waiter that is alive. The dead ahead of it leave the line, at most 128 of them in one
-- call, so that no call takes long. Sets lock.front: the waiters at the first NEAR_PLACES.
local function first_alive(lock)
  for i = 1, 128 do
    lock.front = redis.call('ZRANGE', lock.queue, 0, NEAR_PLACES - 1)
    local first = lock.front[1]
    if not first or life_left(lock, first) > 0 then
      return first
    end
    leave_queue(lock, first)
  end
end

local function set_life_left(lock, token, ms)
  local rest = string.match(get_waiter(lock, token), ' .*')
  if rest then
    set_waiter(lock, token, (now_ms - LIFE_MS + ms) .. rest)
  end
end

-- Wakes a waiter that blocks on its list. The word is 'turn', or 'soon MS': see alert_near().
local function wake(lock, token, word)
  redis.pcall('RPUSH', lock.wake .. token, word) -- pcall: of another type; the waiter asks unwoken
  redis.call('PEXPIRE', lock.wake .. token, LIFE_MS / 2)
end

-- Does the waiter or holder with this info use a quorum? The server keeps a free lock for no such
-- waiter, as the server doesn't know whether the other members keep the lock for the same waiter.
local function is_in_quorum(info)
  return string.find(info or '', ' members=%x') ~= nil
end

-- Tells the waiters near their turn to ask again just before the turn of the first can be over. If
-- some next to each other have died, a live one behind them finds out, instead of one turn after
-- the other running out; and a waiter that gets its turn before that time never has to ask.
local function alert_near(lock)
  for place = 2, #lock.front do
    local waiter = lock.front[place]
    if life_left(lock, waiter) > NEAR_MS then -- else it was told already, or is dead
      set_life_left(lock, waiter, NEAR_MS)
      wake(lock, waiter, 'soon ' .. CLAIM_MS - 50)
    end
  end
end

-- Makes it the turn of this waiter, which first_alive() has just returned. A free lock is kept for
-- it until it claims the lock, or CLAIM_MS have passed. A lock that several hold is kept for it by
-- its place in line. Returns false if it was its turn already.
local function offer_turn(lock, token)
  local info = string.match(get_waiter(lock, token), '^%d+ %w+ (.*)')
  local keeps = not is_in_quorum(' ' .. info)
  if not lock.held then
    if keeps then
      lock.held = token .. TURN .. info .. ' since=' .. now_ms
      lock.mode, lock.turn = 'exclusive', token
      redis.call('SET', lock.key, lock.held, 'PX', CLAIM_MS)
    end
  elseif life_left(lock, token) <= CLAIM_MS then
    return false
  end
  if keeps then
    alert_near(lock)
  end
  set_life_left(lock, token, CLAIM_MS)
  wake(lock, token, 'turn') -- behind alert_near(): the server serves first who was woken last
  return true
end

-- Can the owner of this token be granted the lock as it is now? mode: x, s, or a number of slots.
local function can_have(lock, token, mode)
  if not lock.held or lock.turn == token then
    return true
  end
  if mode == 's' then
    return lock.mode == 'shared'
  end
  return lock.mode == 'slots' and mode ~= 'x' and lock.n_holders < (tonumber(mode) or 0)
end

-- The first waiter that is alive, and whether it can be granted the lock as it is now.
local function next_waiter(lock)
  local first = first_alive(lock)
  local mode = first and string.match(get_waiter(lock, first), '^%d+ (%w+)')
  return first, mode and can_have(lock, first, mode)
end

-- Makes the first waiter show that it is alive. It can't be granted the lock as it is now, but who
-- asks could, and waits for it in vain if it is dead. Once it is first it asks every 300 ms; so if
-- it was silent for longer than CLAIM_MS, or since before the clock was set back, it gets CLAIM_MS.
local function probe(lock, first)
  local left = life_left(lock, first)
  if left > CLAIM_MS and (LIFE_MS - left > CLAIM_MS or left > LIFE_MS) then
    set_life_left(lock, first, CLAIM_MS)
    wake(lock, first, 'turn')
  end
end

-- Makes it the turn of the first waiter, if it can be granted the lock as it is now, and the turn
-- isn't another's. Returns true if it is told by this call.
local function pass_on(lock)
  local first, is_its_turn = next_waiter(lock)
  return is_its_turn and not lock.turn and offer_turn(lock, first)
end
