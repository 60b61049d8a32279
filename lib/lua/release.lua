-- release: give back the lock if it is its owner's, and pass it on to the first in line.
-- KEYS and ARGV[1]: those of the line
-- ARGV: 2 how the value starts: "TOKEN " of the owner, or "TOKEN v1 try=N " of one attempt to undo
--       3 fence of the grant ('': undoing an attempt that was never reported)
--       4 token of a waiter who leaves the line ('': nobody does)
-- returns 1 released | 0 another's | -1 gone
-- with shared/line.lua

local held = redis.pcall('GET', KEYS[1])
local is_ours = type(held) == 'string' and string.sub(held, 1, #ARGV[2]) == ARGV[2]
if is_ours then
  redis.call('DEL', KEYS[1])
end

-- From here on a late renewal of ours finds another fence, and can't put the lock back. (After
-- the DEL, which frees memory, a server that is out of it allows this, too.)
if redis.pcall('GET', KEYS[2]) == ARGV[3] then
  redis.pcall('INCR', KEYS[2])
end

if ARGV[4] ~= '' then
  leave(ARGV[4])
end
if is_ours or not held then -- free: who leaves may have been the one that was woken for it
  local first = head()
  if first then
    hand_to(first)
  end
end
if is_ours then
  return 1
end
return held and 0 or -1
