--!df flags=allow-undeclared-keys
-- timestamp_lock_acquire: grants a lock whose value is the time of its expiry, if the lock is free
-- or the time has passed. With --protocol timestamp rlock calls this script instead of acquire.lua.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: those of acquire.lua, but 7 is the UNIT of the time, "s" or "ms". This script ignores 3 and
--       6, as such a lock has no queue.
-- Returns what acquire.lua returns
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/check.lua
--@include shared/commands.lua
--@include shared/rights.lua
--@include shared/timestamp_lock.lua
--@include shared/history.lua

local token, attempt, words = string.match(ARGV[1], '^(%x+) v1 try=(%d+) ttl=%d+ (.*)')
local ttl, history, not_after, unit = tonumber(ARGV[2]), ARGV[4], tonumber(ARGV[5]), ARGV[7]
attempt = tonumber(attempt)

if not_after > 0 and now_ms > not_after then
  return {REPLY_LATE, now_ms}
end
local held = redis.pcall('GET', LOCK)
if type(held) == 'table' then
  return held
end
local last, err = last_fence(FENCE)
err = err or check_holder_info() or attempt == 1 and missing_right('timestamp', locks[1])
if err then
  return err
end

local own_info = held and info_of(held, token)
if own_info and tonumber(string.match(own_info, ' try=(%d+)') or 0) >= attempt then
  return {REPLY_LATE, now_ms}
end
for j = 9, #ARGV do
  local parent_info = held and info_of(held, ARGV[j])
  if parent_info then
    -- Extends the parent's lease, because the owner counts the end of the lease from the moment at
    -- which it sent this request. The parent may use another unit than the owner.
    local parent_ttl = tonumber(string.match(parent_info, ' ttl=(%d+)') or ttl)
    local fence = digits(math.max(last, 1))
    local parent_unit = string.match(parent_info, ' unit=(%a+)') or unit
    local value = time_text(now_ms + parent_ttl, parent_unit)
    write_lock(ARGV[j], value, parent_info, parent_ttl, 'XX')
    return {REPLY_OK, now_ms, fence, 0, (j - 8) .. ':' .. fence .. ':' .. digits(parent_ttl)}
  end
end

local left = held and left_ms_of(held, unit) or 0
if not own_info and left ~= 0 then
  for _, info in ipairs(redis.call('HVALS', HOLDER_INFO)) do
    if string.match(info, '^%d+') == held then
      held = string.rep('0', 32) .. string.match(info, ' .*')
    end
  end
  -- This write changes nothing. But a server that has become a replica replies READONLY to a write,
  -- so that rlock looks for the new primary.
  redis.call('HDEL', HOLDER_INFO, token)
  return {REPLY_HELD, now_ms, left, string.sub(held, 1, 500), 0, '0', 0, 1}
end

local fence = digits(math.max(now_us, last + 1))
local info = 'v1 try=' .. attempt .. ' ttl=' .. ARGV[2] .. ' unit=' .. unit .. ' ' .. words ..
  ' since=' .. now_ms
write_lock(token, time_text(now_ms + ttl, unit), info, ttl, held and 'XX' or 'NX')
redis.call('SET', FENCE, fence, 'PX', fence_life(ttl))
note(locks[1].history, history ~= '' and history,
  'grant v1 token=' .. short(token) .. ' fence=' .. fence .. string.sub(info, 3))
return {REPLY_OK, now_ms, fence}
