-- timestamp_lock_acquire: take a lock that is a time, where it is free or its time is over.
-- ARGV: as of acquire; 8 the unit of the time, s or ms; there is no line
-- returns as acquire
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/needs.lua
-- with shared/timestamp_lock.lua

local token, attempt, ttl, unit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4]), ARGV[8]

if tonumber(ARGV[5]) > 0 and now > tonumber(ARGV[5]) then
  return {REPLY_LATE, now}
end
local held = redis.pcall('GET', LOCK)
if type(held) == 'table' then
  return held
end
local last, complaint = last_fence(locks[1])
complaint = complaint or check_cards() or attempt == 1 and missing_right(locks[1], 'x', token)
if complaint then
  return complaint
end

local mine = held and card_of(held, token)
if mine and tonumber(string.match(mine, ' try=(%d+)') or 0) >= attempt then
  return {REPLY_LATE, now}
end
for j = 10, #ARGV do
  local of = held and card_of(held, ARGV[j])
  if of then
    -- Extended as by a renewal, in the unit that stands in it: whoever is granted this counts the
    -- end of the lease from the request.
    local its_ttl = tonumber(string.match(of, ' ttl=(%d+)') or ttl)
    local fence = whole(math.max(last, 1))
    write(ARGV[j], stamp(now + its_ttl, string.match(of, ' unit=(%a+)') or unit), of, its_ttl, 'XX')
    return {REPLY_OK, now, fence, 0, (j - 9) .. ':' .. fence .. ':' .. whole(its_ttl)}
  end
end

local left = held and left_of(held, unit) or 0
if not mine and left ~= 0 then
  for _, card in ipairs(redis.call('HVALS', CARDS)) do
    if string.match(card, '^%d+') == held then
      held = string.rep('0', 32) .. string.match(card, ' .*')
    end
  end
  redis.call('HDEL', CARDS, token) -- a write, which a server that has become a replica refuses
  return {REPLY_HELD, now, left, string.sub(held, 1, 500), 0, '0', 0, 1}
end

local fence = whole(math.max(us, last + 1))
local card = 'v1 try=' .. ARGV[2] .. ' ttl=' .. ARGV[4] .. ' unit=' .. unit .. ' ' .. ARGV[3] ..
  ' since=' .. now
write(token, stamp(now + ttl, unit), card, ttl, held and 'XX' or 'NX')
redis.call('SET', FENCE, fence, 'PX', whole(math.max(604800000, ttl * 10)))
return {REPLY_OK, now, fence}
