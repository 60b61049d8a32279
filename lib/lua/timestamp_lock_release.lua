--!df flags=allow-undeclared-keys
-- timestamp_lock_release: frees a lock whose value is a time that the owner wrote, if the time has
-- not passed. With --protocol timestamp rlock calls this script instead of release.lua.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: those of release.lua. This script ignores 4, 8 and 9, as such a lock has no queue.
-- Returns what release.lua returns
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/check.lua
--@include shared/timestamp_lock.lua
--@include shared/history.lua
--@include shared/history_end.lua

local token = string.sub(ARGV[1], 1, 32)
local held = redis.pcall('GET', LOCK)
held = type(held) == 'string' and held
local info = held and not check_holder_info() and info_of(held, token)
local code = held and REPLY_HELD or REPLY_GONE

if info and string.sub(token .. ' ' .. info, 1, #ARGV[1]) == ARGV[1] then
  local unit = string.match(info, ' unit=(%a+) ')
  code = REPLY_GONE -- the result if the time in the lock has passed: any client may take the lock
  if left_ms_of(held, unit) > 0 then
    code = REPLY_OK
    if (ARGV[5] or '') ~= '' then
      write_lock(nil, time_text(now_ms + ARGV[6], unit), '', tonumber(ARGV[6]), 'XX')
    else
      redis.call('DEL', LOCK)
    end
  end
  redis.call('HDEL', HOLDER_INFO, token)
end
if redis.pcall('GET', FENCE) == ARGV[2] then
  redis.pcall('INCR', FENCE)
end
note_end(KEYS[7], code == REPLY_OK and info, digits(now_ms))
return code
