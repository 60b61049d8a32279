-- list: returns the locks among the keys that one call of SCAN finds. Changes nothing. rlock_list
-- calls this script until the cursor is 0 again.
-- KEYS: none, as the script itself finds the keys
-- ARGV: 1 CURSOR, 2 PATTERN and 3 COUNT for SCAN
--       4 return at most so many locks, 5 in at most so many bytes
--       6 return at most so many holders of each lock
-- Returns {now, next CURSOR, {key, view (see shared/view.lua)}...}
--         {now}: there are more locks than ARGV 4 or 5 allow, and the caller must ask again with a
--         smaller COUNT. If COUNT is 1, the script leaves out the locks that don't fit instead.
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/view.lua

local most, room = tonumber(ARGV[4]), tonumber(ARGV[5])

-- Returns the name of a helper key, as keys_helper_name() of lib/lock/keys.c makes it. Returns nil
-- for the rare keys whose helper keys need a number that puts them into the same hash slot: to find
-- that number takes too long here.
local function helper(kind, key)
  if not string.find(key, '}', 1, true) then
    return '{' .. key .. '}:rlock:' .. kind
  elseif string.find(key, '^{[^}]+}$') then
    return key .. ':rlock:{}:' .. kind
  elseif string.find(key, '^[^{]*{[^}]+}') then
    return key .. ':rlock:' .. kind
  end
end

local function is_helper(key)
  return string.sub(key, 1, 6) == 'rlock:' or string.find(key, ':rlock:', 1, true)
end

-- Returns the name of the lock whose fence this key is, if the lock is free and the key holds no
-- valid fence. Nobody can acquire such a lock, so rlock_list shows it with what is wrong.
local function lock_of_broken_fence(key)
  local lock = string.match(key, '^(.*):rlock:fence$') or string.match(key, '^(.*):rlock:{}:fence$')
  if lock and helper('fence', lock) ~= key then
    lock = string.match(lock, '^{(.*)}$')
  end
  return lock and helper('fence', lock) == key and redis.call('EXISTS', lock) == 0 and
    not last_fence({fence = key}) and lock
end

-- Returns whether this key is a lock: a string that rlock wrote, or a string of another program if
-- rlock keeps a fence or a queue for the same key.
local function is_lock(key)
  if #key > 65536 or string.find(key, '%z') or is_helper(key) or
    redis.call('TYPE', key)['ok'] ~= 'string' then
    return false
  end
  if string.match(redis.call('GETRANGE', key, 0, 35), '^%x+ v1 ') then
    return true
  end
  local fence = helper('fence', key)
  return fence and redis.call('EXISTS', fence, helper('queue', key)) > 0
end

local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local answer, bytes = {now_ms, step[1]}, 0
for _, key in ipairs(step[2]) do
  -- pcall, because a command on a key that the user may not read raises an error; such keys are
  -- left out.
  local may_read, is = pcall(is_lock, key)
  if may_read and not is and is_helper(key) then
    may_read, key = pcall(lock_of_broken_fence, key)
    is = may_read and key
  end
  if may_read and is then
    local seen = view({key = key, fence = helper('fence', key), queue = helper('queue', key),
      waiters = helper('waiters', key), holders = helper('holders', key),
      holder_info = helper('holder-info', key)}, ARGV[6])
    bytes = bytes + #key + #(seen[1] or '') + 200
    for _, info in ipairs(seen[7]) do
      bytes = bytes + #tostring(info) + 20
    end
    if #answer - 2 < most and bytes <= room then
      answer[#answer + 1] = {key, seen}
    elseif ARGV[3] ~= '1' then
      return {now_ms}
    end
  end
end
return answer
