-- release: delete the lock if it is its owner's, by the compare-and-delete of the manual of SET.
-- KEYS: 1 the lock, 2 the last fence
-- ARGV: 1 how the value starts: "TOKEN " of the owner, or "TOKEN v1 try=N " of one attempt to undo
--       2 fence of the grant ('': undoing an attempt that was never reported)
-- returns 1 released | 0 another's | -1 gone

local held = redis.pcall('GET', KEYS[1])
local is_ours = type(held) == 'string' and string.sub(held, 1, #ARGV[1]) == ARGV[1]
if is_ours then
  redis.call('DEL', KEYS[1])
end

-- From here on a late renewal of ours finds another fence, and can't put the lock back. (After
-- the DEL, which frees memory, a server that is out of it allows this, too.)
if redis.pcall('GET', KEYS[2]) == ARGV[2] then
  redis.pcall('INCR', KEYS[2])
end

if is_ours then
  return 1
end
return held and 0 or -1
