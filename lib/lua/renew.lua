-- renew: extend the lease of its owner; put it back where nobody else can have had it.
-- KEYS: 1 the lock, 2 the last fence
-- ARGV: 1 token, 2 ttl in ms, 3 fence of the grant, 4 card
--       5 not-after in ms of server time (0: not known)
-- returns {1, now} renewed | {2, now} had vanished, put back
--         {0, now, ms left, value} another's | {-1, now} gone
--         {-2, now} this request comes too late

local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local ttl, not_after = tonumber(ARGV[2]), tonumber(ARGV[5])

if not_after > 0 and now > not_after then
  return {-2, now}
end

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
  return held
end
if held and string.sub(held, 1, 33) ~= ARGV[1] .. ' ' then
  return {0, now, redis.call('PTTL', KEYS[1]), string.sub(held, 1, 500)}
end

-- The fence moves with every other grant and with our own release: while it stands still,
-- nobody has had the lock since, and a late renewal can't bring back what was released.
local ours = redis.pcall('GET', KEYS[2]) == ARGV[3]
if not held and not ours then
  return {-1, now}
end
if ours then
  redis.call('PEXPIRE', KEYS[2], string.format('%.0f', math.max(604800000, ttl * 10)))
end
if held then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, now}
end
local value = ARGV[1] .. ' v1 try=0 ' .. ARGV[4] .. ' since=' .. now
redis.call('SET', KEYS[1], value, 'NX', 'PX', ARGV[2])
return {2, now}
