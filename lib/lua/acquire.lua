-- acquire: take a key for one owner, or say who holds it.
-- KEYS: 1 the lock, 2 the last fence
-- ARGV: 1 token, 2 attempt, 3 card, 4 ttl in ms, 5 not-after in ms of server time (0: not known)
-- returns {1, now, fence} granted | {0, now, ms left, value} held by another
--         {-2, now} this request comes too late: it was given up, or a later one was served

local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)
local attempt, ttl, not_after = tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5])

if not_after > 0 and now > not_after then
  return {-2, now}
end

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then -- another type: say so instead of looking busy for ever
  return held
end

local earlier -- an attempt of ours that was executed though its reply was lost
if held then
  if string.sub(held, 1, 33) ~= ARGV[1] .. ' ' then
    return {0, now, redis.call('PTTL', KEYS[1]), string.sub(held, 1, 500)}
  end
  earlier = tonumber(string.match(held, '^%x+ v1 try=(%d+) ')) or 0
  if earlier >= attempt then
    return {-2, now}
  end
end

-- The hybrid clock: greater than every fence before it, also after the data were lost.
local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
local fence = string.format('%.0f', math.max(us, last + 1))

local value = ARGV[1] .. ' v1 try=' .. ARGV[2] .. ' ' .. ARGV[3] .. ' since=' .. now
local exclusive = earlier and 'XX' or 'NX'
if ttl % 1000 == 0 then
  redis.call('SET', KEYS[1], value, exclusive, 'EX', ARGV[4] / 1000)
else
  redis.call('SET', KEYS[1], value, exclusive, 'PX', ARGV[4])
end

redis.call('SET', KEYS[2], fence, 'PX', string.format('%.0f', math.max(604800000, ttl * 10)))
return {1, now, fence}
