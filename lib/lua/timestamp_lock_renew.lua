--!df flags=allow-undeclared-keys
-- timestamp_lock_renew: extends the lease of a lock whose value is the time of its expiry. If the
-- lock has vanished, and nobody else can have held it since, the script puts the lock back. With
-- --protocol timestamp rlock calls this script instead of renew.lua.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: those of renew.lua, but 3 is the UNIT of the time, "s" or "ms"
-- Returns what renew.lua returns, without ms left
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/check.lua
--@include shared/timestamp_lock.lua

local unit, token, ttl = ARGV[3], ARGV[5], tonumber(ARGV[6])

if tonumber(ARGV[1]) > 0 and now_ms > tonumber(ARGV[1]) then
  return {REPLY_LATE, now_ms}
end
local held = redis.pcall('GET', LOCK)
local err = type(held) == 'table' and held or check_holder_info()
if err then
  return err
end
local own_info = held and info_of(held, token)
local is_last = redis.pcall('GET', FENCE) == ARGV[7]
if held and not own_info then
  return {REPLY_HELD, now_ms, left_ms_of(held, unit), string.sub(held, 1, 500)}
end
if not held and not is_last then
  return {REPLY_GONE, now_ms}
end

local info = own_info or 'v1 try=- ttl=' .. ARGV[6] .. ' unit=' .. unit .. ' ' .. ARGV[2] ..
  ' since=' .. now_ms
-- The holder may be a parent that uses another unit than the caller. `info` has the holder's unit.
unit = string.match(info, ' unit=(%a+)') or unit
write_lock(token, time_text(now_ms + ttl, unit), info, ttl, held and 'XX' or 'NX')
if is_last then
  redis.call('PEXPIRE', FENCE, fence_life(ttl))
end
return {held and REPLY_OK or REPLY_RESTORED, now_ms}
