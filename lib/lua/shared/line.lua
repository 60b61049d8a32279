-- line: the waiting line of each lock; comes behind shared/lock.lua, in front of what serves it.

-- For how many ms a waiter lives without a beat; when it is its turn; when it was woken but was
-- not there. How many are woken for one turn.
local LIFE, CLAIM, ABSENT, WOKEN = 15000, 500, 300, 2

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

local function leave(lock, token)
  entries[lock.wake .. token] = nil
  redis.call('ZREM', lock.line, token)
  redis.call('HDEL', lock.waiters, token)
  redis.call('DEL', lock.wake .. token)
end

-- For how long a waiter counts as alive yet. A beat from the future is from before the clock was
-- set back: who can't be known to be dead keeps its place, and gets no longer to claim its turn.
local function life(lock, token)
  local beat = tonumber(string.match(entry(lock, token), '^%d+'))
  return beat and beat + LIFE - now or 0
end

-- The first live waiter. The dead in front of it leave, not more of them than is quickly done.
-- Behind it `front` has those that are woken with it.
local function head(lock)
  for i = 1, 128 do
    lock.front = redis.call('ZRANGE', lock.line, 0, WOKEN - 1)
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

-- Who is woken for its turn comes at once; who is only to watch those ahead of it has a moment.
local function wake(lock, token, why)
  redis.call('RPUSH', lock.wake .. token, why)
  redis.call('PEXPIRE', lock.wake .. token, LIFE / 2)
end

-- Where several servers vote no turn is kept: one of them can't know if the others keep it, too.
local function votes(card)
  return string.find(card or '', ' members=%x') ~= nil
end

-- It is this waiter's turn. Nobody else can have a free lock until its time to claim it is over,
-- and one that several have is kept for it by the line. Those behind it are woken as well: they
-- find out if those ahead of them don't live. Comes right behind head().
local function hand_to(lock, token)
  local card = string.match(entry(lock, token), '^%d+ %w+ (.*)')
  local woken = votes(' ' .. card) and 1 or WOKEN
  if not lock.held then
    if woken == WOKEN then
      local value = token .. ' v1 try=0 ' .. card .. ' since=' .. now
      redis.call('SET', lock.key, value, 'PX', CLAIM)
      see(lock, value)
    end
  elseif life(lock, token) <= CLAIM then
    return
  end
  for place, waiter in ipairs(lock.front) do
    if place > woken then
      break
    end
    set_life(lock, waiter, place == 1 and CLAIM or CLAIM * 2)
    wake(lock, waiter, place == 1 and 'turn' or 'soon')
  end
end

-- Who is first, and whether the lock, as it stands, can be this waiter's.
local function next_turn(lock)
  local first = head(lock)
  local want = first and string.match(entry(lock, first), '^%d+ (%w+)')
  return first, want and is_open(lock, first, want)
end

-- The first can't have the lock as it stands, but who asks could. While it lives, it looks every
-- 200 ms once it knows that it is the first: if it was silent for longer, or since before the clock
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
  if is_its_turn and not lock.turn then
    hand_to(lock, first)
  end
end
