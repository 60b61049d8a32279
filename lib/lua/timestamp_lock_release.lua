-- timestamp_lock_release: give back a lock that is a time, while that time is ours and not over.
-- ARGV: as of release; 3 leaves no line, as there is none
-- returns as release
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/timestamp_lock.lua

local token = string.sub(ARGV[1], 1, 32)
local held = redis.pcall('GET', LOCK)
held = type(held) == 'string' and held
local card = held and not check_cards() and card_of(held, token)
local code = held and REPLY_HELD or REPLY_GONE

if card and string.sub(token .. ' ' .. card, 1, #ARGV[1]) == ARGV[1] then
  local unit = string.match(card, ' unit=(%a+) ')
  code = REPLY_GONE -- when its time is over it is anybody's
  if left_of(held, unit) > 0 then
    code = REPLY_OK
    if ARGV[4] ~= '' then
      write(nil, stamp(now + ARGV[5], unit), '', tonumber(ARGV[5]), 'XX')
    else
      redis.call('DEL', LOCK)
    end
  end
  redis.call('HDEL', CARDS, token)
end
if redis.pcall('GET', FENCE) == ARGV[2] then
  redis.pcall('INCR', FENCE)
end
return code
