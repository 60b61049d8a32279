-- queue: the queue of each lock. Included after shared/leave.lua. The functions use the fields of a
-- lock that set_value() of shared/lock.lua sets.
--
-- docs/architecture.md, "A place in the queue", has a time line of what these functions do.

-- A waiter counts as dead if it hasn't asked for LIFE_MS; at the first NEAR_PLACES, if it hasn't
-- asked for NEAR_MS after alert_near(). A turn lasts CLAIM_MS.
local LIFE_MS, CLAIM_MS, NEAR_MS, NEAR_PLACES = 20000, 500, 1500, 6
local WAKE_MS = LIFE_MS / 2 -- how long a wake-up stays in the waiter's list

-- A cache of lock.waiters, as each redis.call() takes as long as many lines of Lua.
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

-- Returns for how many ms the waiter still counts as alive. The server noted a heartbeat that lies
-- in the future before its clock was set back: such a waiter may be alive, and keeps its place.
local function life_left(lock, token)
  local heartbeat = tonumber(string.match(get_waiter(lock, token), '^%d+'))
  return heartbeat and heartbeat + LIFE_MS - now_ms or 0
end

-- Returns the first waiter, and whether it is alive; nil: the queue is empty. Removes dead waiters
-- from the front, at most 128 in one call, so that no call takes long. So the first waiter may be
-- dead as well; it is returned because live waiters may stand after it, whom a newcomer must not
-- overtake. Sets lock.front to the tokens of the waiters at the first NEAR_PLACES.
local function first_waiter(lock)
  for removed = 0, 128 do
    lock.front = redis.call('ZRANGE', lock.queue, 0, NEAR_PLACES - 1)
    local first = lock.front[1]
    local is_alive = first and life_left(lock, first) > 0
    if not first or is_alive or removed == 128 then
      return first, is_alive
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

-- Wakes a waiter that blocks in BLPOP on its list. `word` is 'turn': ask for the lock; or 'soon
-- MS': your turn is near, see alert_near(). pcall catches the error of an RPUSH to a key of another
-- type, or to one that isn't in KEYS: then nothing wakes the waiter, and the waiter asks when its
-- BLPOP times out.
local function wake(lock, token, word)
  redis.pcall('RPUSH', lock.wake .. token, word)
  redis.pcall('PEXPIRE', lock.wake .. token, WAKE_MS)
end

-- Returns whether the waiter or holder with this info uses a quorum. The scripts reserve no lock
-- for such a waiter, as the server doesn't know whether the other members reserve it for the same
-- waiter.
local function is_in_quorum(info)
  return string.find(info or '', ' members=%x') ~= nil
end

-- Called when the first waiter gets its turn. Tells the waiters at places 2 to NEAR_PLACES to ask
-- again after CLAIM_MS - 50 ms, and lets them count as alive for NEAR_MS only. A live waiter asks,
-- and then counts as alive for LIFE_MS again. first_waiter() removes a dead one after NEAR_MS. Else
-- each of several dead waiters in a row would get a turn of CLAIM_MS.
local function alert_near(lock)
  for place = 2, #lock.front do
    local waiter = lock.front[place]
    if life_left(lock, waiter) > NEAR_MS then -- else the waiter was told already, or is dead
      set_life_left(lock, waiter, NEAR_MS)
      wake(lock, waiter, 'soon ' .. CLAIM_MS - 50)
    end
  end
end

-- Gives the turn to this waiter, which first_waiter() has just returned. Reserves a free lock for
-- the waiter, until it asks for the lock, or until CLAIM_MS have passed. A lock that has holders
-- and room for the waiter needs no reservation: the scripts let nobody overtake the first waiter,
-- and other programs can't take such a lock; there the waiter gets no second turn.
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
    return
  end
  if keeps then
    alert_near(lock)
  end
  set_life_left(lock, token, CLAIM_MS)
  -- This call comes after alert_near(): of all clients that a script wakes, the server serves the
  -- last one first.
  wake(lock, token, 'turn')
end

-- Returns whether the script can grant the lock to this token now. mode: x, s, or a number of
-- slots.
local function can_have(lock, token, mode)
  if not lock.held or lock.turn == token then
    return true
  end
  if mode == 's' then
    return lock.mode == 'shared'
  end
  return lock.mode == 'slots' and mode ~= 'x' and lock.n_holders < (tonumber(mode) or 0)
end

-- Returns the first waiter, as first_waiter() does, and whether that waiter is alive and the script
-- can grant it the lock now.
local function next_waiter(lock)
  local first, is_alive = first_waiter(lock)
  local mode = is_alive and string.match(get_waiter(lock, first), '^%d+ (%w+)')
  return first, mode and can_have(lock, first, mode)
end

-- Makes the first waiter prove that it is alive. The first waiter can't have the lock now, but the
-- owner that asks could, and would wait in vain behind a dead waiter. A live first waiter asks
-- about every 300 ms. If the first waiter has been silent for longer than CLAIM_MS, or if the
-- server's clock was set back, the script wakes it, and lets it count as alive for only CLAIM_MS
-- more.
local function probe(lock, first)
  local left = life_left(lock, first)
  if left > CLAIM_MS and (LIFE_MS - left > CLAIM_MS or left > LIFE_MS) then
    set_life_left(lock, first, CLAIM_MS)
    wake(lock, first, 'turn')
  end
end

-- Gives the turn to the first waiter if it can have the lock now, and no other waiter has its turn.
local function pass_on(lock)
  local first, is_its_turn = next_waiter(lock)
  if is_its_turn and not lock.turn then
    offer_turn(lock, first)
  end
end
