-- keys: the keys of each lock. Each script about locks includes this file.
-- KEYS: three for each lock, which each grant and each release needs:
--       key          the lock: a string
--       fence        the last fencing token: a string
--       queue        the queue: a sorted set; member: token, score: ticket
-- lock_at() makes the names of the other helper keys from the name of the queue: only the last word
-- differs. A request doesn't send them, because each key in KEYS costs the server a third of the
-- time of a command:
--       waiters      a hash: TOKEN -> "HEARTBEAT MODE HOLDER-INFO"; "newest" -> "TICKET TOKEN".
--       holders      of a shared lock or slots: a sorted set; member: token, score: end of its
--                    lease in ms
--       holder_info  of a shared lock or slots: a hash: TOKEN -> "v1 try=N ttl=MS ... since=MS"

-- Returns the keys of one lock. KEYS[i], KEYS[i + 1] and KEYS[i + 2] are its lock, fence and queue.
local function lock_at(i)
  local start = string.sub(KEYS[i + 2], 1, -6) -- KEYS[i + 2] ends with "queue"
  return {key = KEYS[i], fence = KEYS[i + 1], queue = KEYS[i + 2], waiters = start .. 'waiters',
    holders = start .. 'holders', holder_info = start .. 'holder-info', wake = start .. 'wake:',
    history = start .. 'history'}
end

-- Returns a number as text with all its digits: Lua's own conversion rounds it to 14 of them.
local function digits(number)
  return string.format('%.0f', number)
end
