--!df flags=allow-undeclared-keys
-- list: returns the locks among the keys that one call of SCAN finds. Changes nothing. rlock_list
-- calls this script until the cursor is 0 again.
-- KEYS: none, as the script itself finds the keys
-- ARGV: 1 CURSOR, 2 PATTERN and 3 COUNT for SCAN
--       4 return at most this many locks, 5 in at most this many bytes
--       6 return at most this many holders of each lock
--       7 "ends": read the histories, and return also the free locks that have one; "": don't
-- Returns {now, next CURSOR, {key, view (see shared/view.lua), last end...}...}
--         last end: three numbers, with "ends" and if the lock's history tells an end: when the
--         last one was noted, in ms since 1970; the status of that holder (-1: not known); 1 if the
--         holder no longer had the lock, else 0
--         {now}: there are more locks than ARGV 4 or 5 allow, and the caller must ask again with a
--         smaller COUNT. If COUNT is 1, the script leaves out the locks that don't fit instead.
-- with shared/clock.lua
-- with shared/constants.lua
-- with shared/keys.lua
-- with shared/fence.lua
-- with shared/check.lua
-- with shared/view.lua
-- with shared/history_time.lua

local most, room, reads_ends = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[7] == 'ends'

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

-- If `key` is the helper key of this kind of a free lock, returns the name of the lock.
local function free_lock_of(kind, key)
  local lock = string.match(key, '^(.*):rlock:' .. kind .. '$') or
    string.match(key, '^(.*):rlock:{}:' .. kind .. '$')
  if lock and helper(kind, lock) ~= key then
    lock = string.match(lock, '^{(.*)}$')
  end
  return lock and helper(kind, lock) == key and not string.find(lock, '%z') and
    redis.call('EXISTS', lock) == 0 and lock
end

-- Returns the name of the free lock that rlock_list must show because this helper key exists:
-- - the key is that of the fence, and holds no valid fence: nobody can acquire such a lock, so
--   rlock_list shows it with what is wrong;
-- - with "ends", the key is that of the history.
local function free_lock_to_list(key)
  local lock = free_lock_of('fence', key)
  return lock and not last_fence(key) and lock or reads_ends and free_lock_of('history', key)
end

-- Returns the last end of a lock as three values of the reply. Returns nothing without "ends", if
-- the last 200 entries of the history tell no end, or if the history can't be read. Most often one
-- of the last two entries is an end, so the first LRANGE asks for these only.
local function last_end(key)
  local history = reads_ends and helper('history', key)
  for _, count in ipairs(history and {2, 200} or {}) do
    local entries = redis.pcall('LRANGE', history, -count, -1)
    for i = #entries, 1, -1 do
      local entry = entries[i]
      local kind = string.match(entry, '^(%a+) v1 ')
      if kind == 'end' or kind == 'break' then
        return tonumber(ms_of(entry)), tonumber(string.match(entry, ' status=(%d+)') or -1),
          string.find(entry, ' missing=1 ', 1, true) and 1 or 0
      end
    end
  end
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
  -- pcall catches the error of a command on a key that the user may not read; such keys are left
  -- out.
  local may_read, is = pcall(is_lock, key)
  if may_read and not is and is_helper(key) then
    may_read, key = pcall(free_lock_to_list, key)
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
      answer[#answer + 1] = {key, seen, last_end(key)}
    elseif ARGV[3] ~= '1' then
      return {now_ms}
    end
  end
end
return answer
