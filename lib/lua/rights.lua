-- rights: which of all that the other scripts do may this user do? Leaves nothing behind.
-- KEYS: as everywhere, of one lock
-- ARGV: 1 a token that is nobody's
-- returns {commands that may not be used for a lock, first complaint,
--          the same of those that only look at locks or break them,
--          keys that may not be used, first complaint}
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/lock.lua

local scratch = locks[1].wake .. ARGV[1] -- a list that only its owner would know of
local refused, why = {}, ''

local function try(command, ...)
  local reply = redis.pcall(command, ...)
  local complaint = type(reply) == 'table' and reply.err
  if complaint then
    refused[#refused + 1] = command
    why = why ~= '' and why or complaint
  end
  return not complaint and {reply}
end

-- All that was refused since the last time.
local function sum_up()
  local all, first = table.concat(refused, ' '), why
  refused, why = {}, ''
  return all, first
end

local may_del = try('DEL', scratch)
if not may_del and string.find(why, 'access') then
  return {'', '', '', '', 'rlock:wake:...', why}
end
try('SET', scratch, 1, 'PX', 1000)
try('GET', scratch)
try('PTTL', scratch)
try('PEXPIRE', scratch, 1000)
try('EXISTS', scratch)
try('INCR', scratch)
if may_del then
  redis.call('DEL', scratch)
  if try('RPUSH', scratch, 1) then
    redis.call('DEL', scratch)
  end
  if try('HSET', scratch, 'f', 'v') then
    redis.call('DEL', scratch)
  end
  if try('ZADD', scratch, 1, 'm') then
    redis.call('DEL', scratch)
  end
  try('HGET', scratch, 'f')
  try('HVALS', scratch)
  try('HDEL', scratch, 'f')
  try('ZREM', scratch, 'm')
  try('ZRANGE', scratch, 0, 0)
  try('ZRANGEBYSCORE', scratch, 0, 1)
  try('ZRANK', scratch, 'm')
  try('ZCARD', scratch)
end
local needed, needed_why = sum_up()

try('TYPE', scratch)
try('STRLEN', scratch)
try('SCAN', 0, 'COUNT', 1)
if may_del then
  try('GETRANGE', scratch, 0, 0)
  try('ZCOUNT', scratch, 0, 1)
end
local looking, looking_why = sum_up()

local keys = {}
for _, key in ipairs(needed == '' and KEYS or {}) do
  local may_read, made = try('PTTL', key), try('SET', key, '', 'NX', 'PX', 1000)
  if made and made[1] then
    redis.call('DEL', key)
  end
  if not (may_read and made) then
    keys[#keys + 1] = string.sub(key, 1, 60)
  end
end
local _, keys_why = sum_up()
return {needed, needed_why, looking, looking_why, table.concat(keys, ' '), keys_why}
