-- release: delete the lock if it is its owner's, by the compare-and-delete of the manual of SET.
-- KEYS: 1 the lock, 2 the last fence
-- ARGV: 1 how the value starts: "TOKEN " of the owner, or "TOKEN v1 try=N " of one attempt to undo
--       2 fence of the grant ('': undoing an attempt that was never reported)
-- returns 1 released | 0 another's | -1 gone

-- From here on a late renewal of ours finds another fence, and can't put the lock back.
if redis.call('GET', KEYS[2]) == ARGV[2] then
  redis.call('INCR', KEYS[2])
end
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then -- another type: not ours
  return 0
end
if not held then
  return -1
end
if string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
