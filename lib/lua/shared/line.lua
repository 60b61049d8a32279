-- line: the waiting line of each lock; comes behind shared/keys.lua, in front of what serves it.
-- KEYS and ARGV: none of its own
-- Of a lock it knows what shared/lock.lua sees there.

-- For how many ms a waiter lives without a beat; when it is its turn; when it was woken but was
-- not there; when it was told that its turn is near. How many are near.
local LIFE, CLAIM, ABSENT, TOLD, NEAR = 20000, 500, 300, 1500, 6

-- What a waiter left of itself, "beat want card": read once, since each call costs the server as
-- much as a page of this.
local entries = {}

local function entry(lock, token)
  local of = lock.wake .. token
  entries[of] = entries[of] or redis.call('HGET', lock.waiters, token) or ''
  return entries[of]
end

local function note(lock, token, text)
  entries[lock.wake .. token] = text
  redis.call('HSET', lock.waiters, token, text)
end

-- For how long a waiter counts as alive yet. A beat from the future is from before the clock was
-- set back: who can't be known to be dead keeps its place, and gets no longer to claim its turn.
local function life(lock, token)
  local beat = tonumber(string.match(entry(lock, token), '^%d+'))
  return beat and beat + LIFE - now or 0
end

-- The first live waiter. The dead in front of it leave, not more of them than is quickly done.
-- Behind it `front` has those that are near their turn as well.
local function head(lock)
  for i = 1, 128 do
    lock.front = redis.call('ZRANGE', lock.line, 0, NEAR - 1)
    local first = lock.front[1]
    if not first or life(lock, first) > 0 then
      return first
    end
    leave(lock, first)
  end
end

local function set_life(lock, token, ms)
  local rest = string.match(entry(lock, token), ' .*')
  if rest then
    note(lock, token, (now - LIFE + ms) .. rest)
  end
end

local function wake(lock, token, why)
  redis.pcall('RPUSH', lock.wake .. token, why) -- of another type: its owner looks without it, too
  redis.call('PEXPIRE', lock.wake .. token, LIFE / 2)
end

-- Where several servers vote no turn is kept: one of them can't know if the others keep it, too.
local function votes(card)
  return string.find(card or '', ' members=%x') ~= nil
end

-- Who is near its turn gets ready, and watches those ahead of it: it is back just before the next
-- one's time to claim its turn can be over. So if some die beside each other, one behind them is
-- there to find out; and who has its turn before that never had to ask.
local function tell_near(lock)
  for place = 2, #lock.front do
    local waiter = lock.front[place]
    if life(lock, waiter) > TOLD then -- else it watches already, or is dead
      set_life(lock, waiter, TOLD)
      wake(lock, waiter, 'soon ' .. CLAIM - 50)
    end
  end
end

-- It is this waiter's turn. Nobody else can have a free lock until its time to claim it is over,
-- and one that several have is kept for it by the line. Comes right behind head(). Returns if it
-- is told so now.
local function hand_to(lock, token)
  local card = string.match(entry(lock, token), '^%d+ %w+ (.*)')
  local keeps = not votes(' ' .. card)
  if not lock.held then
    if keeps then
      lock.held = token .. TURN .. card .. ' since=' .. now
      lock.mode, lock.turn = 'exclusive', token
      redis.call('SET', lock.key, lock.held, 'PX', CLAIM)
    end
  elseif life(lock, token) <= CLAIM then
    return false
  end
  if keeps then
    tell_near(lock)
  end
  set_life(lock, token, CLAIM)
  wake(lock, token, 'turn') -- last: who is woken last is told first
  return true
end

-- Can this be granted as the lock stands? What is wanted: x, s, or the number of slots.
local function is_open(lock, token, want)
  if not lock.held or lock.turn == token then
    return true
  end
  if want == 's' then
    return lock.mode == 'shared'
  end
  return lock.mode == 'slots' and want ~= 'x' and lock.several < (tonumber(want) or 0)
end

-- Who is first, and whether the lock, as it stands, can be this waiter's.
local function next_turn(lock)
  local first = head(lock)
  local want = first and string.match(entry(lock, first), '^%d+ (%w+)')
  return first, want and is_open(lock, first, want)
end

-- The first can't have the lock as it stands, but who asks could. While it lives, it looks every
-- 300 ms once it knows that it is the first: if it was silent for longer, or since before the clock
-- was set back, it is to show that.
local function probe(lock, first)
  local left = life(lock, first)
  if left > CLAIM and (LIFE - left > CLAIM or left > LIFE) then
    set_life(lock, first, CLAIM)
    wake(lock, first, 'turn')
  end
end

local function pass_on(lock)
  local first, is_its_turn = next_turn(lock)
  return is_its_turn and not lock.turn and hand_to(lock, first)
end
