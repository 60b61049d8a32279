-- acquire: take a key for one owner, or stand in line for it, or say who holds it.
-- KEYS and ARGV[1]: those of the line
-- ARGV: 2 token, 3 attempt, 4 card, 5 ttl in ms
--       6 not-after in ms of server time (0: not known)
--       7 how to wait: fifo, newest, none (take it when it is free), try (the same, after the line)
--       8 ticket from an earlier attempt ('': none)
-- returns {1, now, fence} granted
--         {0, now, ms left, value, ms to block, ticket, place} held, or reserved for another
--         {-2, now} this request comes too late: it was given up, or a later one was served
--         {-3, now} a newer waiter came
-- with shared/line.lua

local token, attempt, ttl = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local not_after = tonumber(ARGV[6])
local waits = ARGV[7] == 'fifo' or ARGV[7] == 'newest'

if not_after > 0 and now > not_after then
  return {-2, now}
end

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then -- another type: say so instead of looking busy for ever
  return held
end

-- An attempt of ours that was executed though its reply was lost, or our turn in the line (0).
local earlier
if held and string.sub(held, 1, 33) == token .. ' ' then
  earlier = tonumber(string.match(held, '^%x+ v1 try=(%d+) ')) or 0
  if earlier >= attempt then
    return {-2, now}
  end
end

-- A ticket is the moment of its first attempt, and later than all in line. Its owner keeps it, so
-- the order outlives the line's data.
local ticket = tonumber(ARGV[8])
if waits and not earlier then
  if not ticket then
    local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
    ticket = math.max(us, (tonumber(last) or 0) + 1)
  end
  -- Who brings a ticket to a server that knows of no line is the first to be back after its data
  -- were lost: the others, who may come before it in line, get the time to come back, too.
  if not held and ARGV[8] ~= '' and redis.call('EXISTS', KEYS[3]) == 0 then
    held = string.rep('0', 32) .. ' v1 try=0 since=' .. now
    redis.call('SET', KEYS[1], held, 'PX', CLAIM)
  end
  if ARGV[7] == 'newest' then
    local newest, whose = string.match(redis.call('HGET', KEYS[4], 'newest') or '', '^(%d+) (%x+)')
    if newest and tonumber(newest) > ticket then
      leave(token)
      return {-3, now}
    end
    redis.call('HSET', KEYS[4], 'newest', string.format('%.0f ', ticket) .. token)
    if whose and whose ~= token then
      leave(whose)
      wake(whose)
    end
  end
  redis.call('ZADD', KEYS[3], string.format('%.0f', ticket), token)
  redis.call('HSET', KEYS[4], token, now .. ' ' .. ARGV[4])
  redis.call('PEXPIRE', KEYS[3], LIFE * 4)
  redis.call('PEXPIRE', KEYS[4], LIFE * 4)
end

if not held and ARGV[7] ~= 'none' then
  local first = head()
  if first and first ~= token then
    hand_to(first)
    held = redis.call('GET', KEYS[1])
  end
end

if held and not earlier then
  local block = 2500
  local place = (redis.call('ZRANK', KEYS[3], token) or -1) + 1
  local is_reserved = string.match(held, '^%x+ v1 try=0 ')
  if place > 1 and place <= WOKEN and is_reserved then
    -- A wake-up that is still there woke nobody: its owner is dead, or will find it at once.
    block = 2
    for ahead, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, place - 2)) do
      local absent = redis.call('EXISTS', WAKE .. waiter) == 1
      if absent then
        set_life(waiter, ABSENT)
      end
      if ahead == 1 then
        if absent and redis.call('PTTL', KEYS[1]) > ABSENT then
          redis.call('PEXPIRE', KEYS[1], ABSENT)
        end
        block = block + redis.call('PTTL', KEYS[1])
      elseif not absent then
        block = block + CLAIM
      end
    end
  end
  local left = redis.call('PTTL', KEYS[1])
  if place == 1 then -- watches for expiry, and for a DEL that wakes nobody
    block = left >= 0 and math.min(200, left + 2) or 200
  end
  return {0, now, left, string.sub(held, 1, 500), block, string.format('%.0f', ticket or 0), place}
end

-- The hybrid clock: greater than every fence before it, also after the data were lost.
local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
local fence = string.format('%.0f', math.max(us, last + 1))

local value = token .. ' v1 try=' .. ARGV[3] .. ' ' .. ARGV[4] .. ' since=' .. now
local exclusive = earlier and 'XX' or 'NX'
if ttl % 1000 == 0 then
  redis.call('SET', KEYS[1], value, exclusive, 'EX', ttl / 1000)
else
  redis.call('SET', KEYS[1], value, exclusive, 'PX', ARGV[5])
end
redis.call('SET', KEYS[2], fence, 'PX', string.format('%.0f', math.max(604800000, ttl * 10)))
if waits then
  leave(token)
  if string.match(redis.call('HGET', KEYS[4], 'newest') or '', ' (%x+)') == token then
    redis.call('HDEL', KEYS[4], 'newest')
  end
end
return {1, now, fence}
