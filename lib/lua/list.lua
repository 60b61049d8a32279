-- list: tells the locks among the keys of one step of SCAN. Changes nothing. Called by rlock_list.
-- KEYS: none; which keys there are is what this finds out
-- ARGV: 1 CURSOR of SCAN, 2 PATTERN of keys, 3 COUNT: how many keys to look at
--       4 how many locks a reply may have, 5 how many bytes
--       6 how many holders of each lock to tell at most
-- Returns {now, next CURSOR, {key, view (see shared/view.lua)}...}
--         {now}: these are too many: ask again with a smaller COUNT; of COUNT 1 what is beyond the
--         bounds is left out instead
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/view.lua

local most, room = tonumber(ARGV[4]), tonumber(ARGV[5])

-- The name of a helper key, as keys_helper_name() of lib/lock/keys.c makes it; nil where that has
-- to know the hash slot of the key, which is not worth its time here.
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

-- If this key is a fence that holds no number: the lock that it belongs to, if that is free. Nobody
-- can acquire that lock, so it is shown with what is wrong.
local function lock_of_broken_fence(key)
  local lock = string.match(key, '^(.*):rlock:fence$') or string.match(key, '^(.*):rlock:{}:fence$')
  if lock and helper('fence', lock) ~= key then
    lock = string.match(lock, '^{(.*)}$')
  end
  return lock and helper('fence', lock) == key and redis.call('EXISTS', lock) == 0 and
    not last_fence({fence = key}) and lock
end

-- Is this key a lock: a string that an rlock wrote, or another program's, for which rlock keeps a
-- fence or a line?
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
  -- pcall: keys that this user may not read are left out.
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
