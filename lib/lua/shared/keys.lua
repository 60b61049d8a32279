-- keys: the keys of each lock. Each script about locks includes this file.
-- KEYS: for each lock all keys that a script uses, as some servers refuse scripts that use others:
--       key          the lock: a string
--       fence        the last fence: a string
--       queue        the queue: a sorted set; member: token, score: ticket
--       waiters      a hash: TOKEN -> "HEARTBEAT MODE HOLDER-INFO"; "newest" -> "TICKET TOKEN".
--       holders      of a shared lock or slots: a sorted set; member: token, score: end of its
--                    lease in ms
--       holder_info  of a shared lock or slots: a hash: TOKEN -> "v1 try=N ttl=MS ... since=MS"
--       history      a list, see shared/history.lua
--       wake:TOKEN   of the owner that asks: the list from which it reads its wake-ups; once
--                    somebody else has ended its lease, a string: "released" or "broken ...".
--                    Scripts without an owner don't have this key
-- The lists of other owners aren't in KEYS, as the client doesn't know who waits. Scripts use them
-- by pcall, and do without them where the server refuses that: see block_ms() in acquire.lua.

-- Returns the keys of one lock, the first of which is KEYS[i]. The name of an owner's list is
-- `wake`, followed by the owner's token.
local function lock_at(i)
  return {key = KEYS[i], fence = KEYS[i + 1], queue = KEYS[i + 2], waiters = KEYS[i + 3],
    holders = KEYS[i + 4], holder_info = KEYS[i + 5], history = KEYS[i + 6],
    wake = string.sub(KEYS[i + 2], 1, -6) .. 'wake:'} -- KEYS[i + 2] ends with "queue"
end

-- Returns a number as text with all its digits: Lua's own conversion rounds it to 14 of them.
local function digits(number)
  return string.format('%.0f', number)
end
