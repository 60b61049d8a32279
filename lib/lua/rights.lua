-- rights: which of all that the other scripts do may this user do? Leaves nothing behind.
-- KEYS: as everywhere, of one lock
-- ARGV: 1 a token that is nobody's
-- returns {commands that may not be used for any lock, first complaint,
--          the same for who waits or hands a lock on to who waits, for -s and --slots, and for
--          those that only look at locks or break them,
--          keys that may not be used, first complaint,
--          what else keeps the server from writing, ''}
-- with shared/clock.lua
-- with shared/keys.lua

local scratch = locks[1].wake .. ARGV[1] -- a list that only its owner would know of
local refused, why, state = {}, '', ''

-- Before Redis 7, and in Redis 8, it is said in other words.
local function is_about_rights(complaint)
  return string.find(complaint, 'NOPERM', 1, true) or string.find(complaint, 'ACL', 1, true) or
    string.find(complaint, "can't ", 1, true) or string.find(complaint, 'nknown', 1, true)
end

-- Returns true where a command may be used, whatever the server has against it at the moment.
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  local complaint = type(reply) == 'table' and reply.err
  if complaint and not is_about_rights(complaint) then
    state = state ~= '' and state or complaint
    return false
  elseif complaint then
    refused[#refused + 1] = command
    why = why ~= '' and why or complaint
  end
  return not complaint
end

-- All that was refused since the last time.
local answer = {}
local function sum_up()
  answer[#answer + 1], answer[#answer + 2] = table.concat(refused, ' '), why
  refused, why = {}, ''
end

-- May this user use no key of ours at all? Then it says nothing of the commands.
local probe = redis.pcall('DEL', scratch)
if type(probe) == 'table' and string.find(probe.err, 'key', 1, true) and
  is_about_rights(probe.err) and not string.find(probe.err, 'command', 1, true) then
  return {'', '', '', '', '', '', '', '', scratch, probe.err, '', ''}
end

-- What is written is removed at once. What can't be removed isn't written.
local may_del, may_expire = try('DEL', scratch), try('PEXPIRE', scratch, 1000)
local function remove(key)
  if may_del then
    redis.call('DEL', key)
  else
    redis.call('PEXPIRE', key, 0)
  end
end
local may_write = may_del or may_expire
local function try_write(command, ...)
  if may_write and try(command, scratch, ...) then
    remove(scratch)
  end
end

try_write('SET', 1)
try('GET', scratch)
try('PTTL', scratch)
try('EXISTS', scratch)
try_write('INCR')
try('ZCARD', scratch)
try('HGET', scratch, 'f')
sum_up()

try_write('ZADD', 1, 'm')
try('ZRANGE', scratch, 0, 0)
try('ZRANK', scratch, 'm')
try('ZREM', scratch, 'm')
try_write('HSET', 'f', 'v')
try('HDEL', scratch, 'f')
try_write('RPUSH', 1)
sum_up()

try('ZRANGEBYSCORE', scratch, 0, 1)
try('ZSCORE', scratch, 'm')
try('HVALS', scratch)
sum_up()

try('TYPE', scratch)
try('STRLEN', scratch)
try('SCAN', 0, 'COUNT', 1)
try('GETRANGE', scratch, 0, 0)
try('ZCOUNT', scratch, 0, 1)
sum_up()

local keys = {}
for _, key in ipairs(answer[1] == '' and state == '' and KEYS or {}) do
  local may_read, made = try('PTTL', key), redis.pcall('SET', key, '', 'NX', 'PX', 1000)
  local complaint = type(made) == 'table' and made.err
  if complaint and is_about_rights(complaint) then
    why = why ~= '' and why or complaint
  elseif made and not complaint then
    remove(key)
  end
  if not may_read or complaint then
    keys[#keys + 1] = string.sub(key, 1, 60)
  end
end
sum_up()
answer[9] = table.concat(keys, ' ')
answer[11], answer[12] = state, ''
return answer
