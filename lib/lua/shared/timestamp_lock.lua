-- timestamp_lock: a lock that is the time of its own expiry; comes behind
-- shared/keys.lua, in front of the scripts that serve such locks.
-- KEYS: as everywhere, of one lock; the last fence and the cards are used besides the lock itself
-- Whoever finds the time in a lock to be over may take it. A time is no name: which owner wrote it
-- stands beside it, as "VALUE v1 try=N ttl=MS unit=s ...", and counts while VALUE is in the lock.

local LOCK, FENCE, CARDS = KEYS[1], KEYS[2], KEYS[6]

-- A time as it stands in the lock. Its last second is not over before the lease is.
local function stamp(at, unit)
  return unit == 's' and whole(math.floor(at / 1000) + 1) or whole(at + 1)
end

-- For how many ms yet a lock is somebody's, if this stands in it. What is no time is for ever.
local function left_of(value, unit)
  local at = string.match(value, '^%s*(%d+%.?%d*)%s*$')
  if not at then
    return -1
  end
  return unit == 's' and math.max(0, (at + 1) * 1000 - now) or math.max(0, at + 1 - now)
end

-- The complaint where the cards of this lock are something else.
local function check_cards()
  return is_of_type(CARDS, 'is no hash', 'HGET', CARDS, '')
end

-- What stands in the lock, and the card of the owner, if it is this one's.
local function card_of(held, token)
  local value, card = string.match(redis.call('HGET', CARDS, token) or '', '^(%d+) (.*)')
  return value and value == held and card
end

-- Nobody else's card counts any more.
local function write(token, value, card, ttl, exists)
  redis.call('SET', LOCK, value, exists, 'PX', whole(ttl + 2000))
  redis.call('DEL', CARDS)
  if token then
    redis.call('HSET', CARDS, token, value .. ' ' .. card)
    redis.call('PEXPIRE', CARDS, whole(ttl + 2000))
  end
end
