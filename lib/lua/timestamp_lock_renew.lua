-- timestamp_lock_renew: extend a lock that is a time, or put it back where only we had it.
-- ARGV: as of renew; 3 the unit of the time, s or ms
-- returns as renew
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/timestamp_lock.lua

local unit, token, ttl = ARGV[3], ARGV[5], tonumber(ARGV[6])

if tonumber(ARGV[1]) > 0 and now > tonumber(ARGV[1]) then
  return {REPLY_LATE, now}
end
local held = redis.pcall('GET', LOCK)
local complaint = type(held) == 'table' and held or check_cards()
if complaint then
  return complaint
end
local mine = held and card_of(held, token)
local is_last = redis.pcall('GET', FENCE) == ARGV[7]
if held and not mine then
  return {REPLY_HELD, now, left_of(held, unit), string.sub(held, 1, 500)}
end
if not held and not is_last then
  return {REPLY_GONE, now}
end

local card = mine or 'v1 try=- ttl=' .. ARGV[6] .. ' unit=' .. unit .. ' ' .. ARGV[2] ..
  ' since=' .. now
-- an rlock under another one may have been given another unit than stands in the lock
unit = string.match(card, ' unit=(%a+)') or unit
write(token, stamp(now + ttl, unit), card, ttl, held and 'XX' or 'NX')
if is_last then
  redis.call('PEXPIRE', FENCE, whole(math.max(604800000, ttl * 10)))
end
return {held and REPLY_OK or REPLY_RESTORED, now}
