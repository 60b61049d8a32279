-- list: the locks among the keys of one step of SCAN. Changes nothing.
-- ARGV: 1 cursor, 2 pattern, 3 how many keys to look at
--       4 how many locks may be returned, 5 how many bytes of them
-- returns {now, next cursor, {key, view}...} or {now} if these are too many: ask for fewer keys
-- Where there are no fewer to ask for, those beyond the bounds are left out.
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/view.lua

local most, room = tonumber(ARGV[4]), tonumber(ARGV[5])

-- As lib/lock/keys.c names helper keys, but where that takes the key's hash slot: nil.
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

-- The lock that this is the last fence of, if nobody has the lock, but nobody can have it either.
local function lock_of_odd_fence(key)
  local lock = string.match(key, '^(.*):rlock:fence$') or string.match(key, '^(.*):rlock:{}:fence$')
  if lock and helper('fence', lock) ~= key then
    lock = string.match(lock, '^{(.*)}$')
  end
  return lock and helper('fence', lock) == key and redis.call('EXISTS', lock) == 0 and
    not last_fence({fence = key}) and lock
end

-- A string that rlock wrote; or of another program, where rlock has had this lock or waits for it.
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
local answer, bytes = {now, step[1]}, 0
for _, key in ipairs(step[2]) do
  -- Keys that this user may not read are not for it to see, either.
  local may_read, is = pcall(is_lock, key)
  if may_read and not is and is_helper(key) then
    may_read, key = pcall(lock_of_odd_fence, key)
    is = may_read and key
  end
  if may_read and is then
    local seen = view({key = key, fence = helper('fence', key), line = helper('queue', key),
      waiters = helper('waiters', key), holders = helper('holders', key),
      cards = helper('holder-info', key)}, now)
    bytes = bytes + #key + #(seen[1] or '') + 200
    for _, card in ipairs(seen[7]) do
      bytes = bytes + #tostring(card) + 20
    end
    if #answer - 2 < most and bytes <= room then
      answer[#answer + 1] = {key, seen}
    elseif ARGV[3] ~= '1' then
      return {now}
    end
  end
end
return answer
