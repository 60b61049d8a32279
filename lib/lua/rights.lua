--!df flags=allow-undeclared-keys
-- rights: tries all commands of the other scripts, and returns which of them the server denies this
-- user. Removes each key that it writes. rlock_examine calls this script.
-- KEYS: three of one lock, see shared/keys.lua
-- ARGV: 1 TOKEN: a new one, which no owner has
-- Returns twelve texts. Ten of them are five pairs: what is denied, with blanks between the names,
-- and the first error about it. The pairs are about
--           commands that every lock needs,
--           commands for waiters, and for a release that wakes a waiter,
--           commands for shared locks and slots,
--           commands of inspect.lua, list.lua, break.lua and history.lua,
--           keys.
-- The eleventh text is an error that isn't about rights but keeps the server from writing, such as
-- a full memory; the twelfth is "".
-- with shared/clock.lua
-- with shared/constants.lua
-- with shared/keys.lua
-- with shared/fence.lua
-- with shared/locks.lua

-- A key that the script may write: no other client uses it, as its name contains the token.
local scratch = locks[1].wake .. ARGV[1]
local refused, why, state = {}, '', ''

-- Returns whether this error says that the user lacks a right. Redis before 7, Redis 7 and Redis 8
-- use different words.
local function is_about_rights(err)
  return string.find(err, 'NOPERM', 1, true) or string.find(err, 'ACL', 1, true) or
    string.find(err, "can't ", 1, true) or string.find(err, 'nknown', 1, true)
end

-- Returns true if the server executed the command. If the user lacks a right, adds the command to
-- `refused`, and keeps the first such error in `why`. Keeps the first error of another kind in
-- `state`.
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  local err = type(reply) == 'table' and reply.err
  if err and not is_about_rights(err) then
    state = state ~= '' and state or err
    return false
  elseif err then
    refused[#refused + 1] = command
    why = why ~= '' and why or err
  end
  return not err
end

-- Appends a pair to the reply: the commands that were refused since the last sum_up(), and why.
local answer = {}
local function sum_up()
  answer[#answer + 1], answer[#answer + 2] = table.concat(refused, ' '), why
  refused, why = {}, ''
end

-- Returns whether this error says that the user lacks the right to use a key. Redis 6 and 7.0 name
-- "the keys mentioned in the command arguments"; any other error with the word "command" is about
-- the right to run a command.
local function is_about_keys(err)
  return is_about_rights(err) and (string.find(err, 'keys mentioned', 1, true) or
    string.find(err, 'key', 1, true) and not string.find(err, 'command', 1, true))
end

-- The key `scratch` doesn't exist, so this SET with XX changes nothing. The script calls SET first,
-- so that it sees whether the server is out of memory: such a server refuses a SET only before a
-- script's first write, and Redis counts each DEL below as a write. If the user may not use
-- `scratch` at all, every command on it fails. Then the script reports that the key is denied, and
-- reports no command.
local probe = redis.pcall('SET', scratch, '', 'XX', 'PX', 1000)
local probe_err = type(probe) == 'table' and probe.err
if probe_err and is_about_keys(probe_err) then
  return {'', '', '', '', '', '', '', '', scratch, probe_err, '', ''}
elseif probe_err and not is_about_rights(probe_err) then
  state = probe_err
end

-- The script removes each key right after it has written it, by DEL or PEXPIRE. If the user may
-- call neither, the script writes nothing, as it could not remove the key.
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
try('LRANGE', scratch, 0, 0)
sum_up()

local lock, keys = locks[1], {}
local all = {lock.key, lock.fence, lock.queue, lock.waiters, lock.holders, lock.holder_info}
for _, key in ipairs(answer[1] == '' and state == '' and all or {}) do
  local may_read, made = try('PTTL', key), redis.pcall('SET', key, '', 'NX', 'PX', 1000)
  local err = type(made) == 'table' and made.err
  if err and is_about_rights(err) then
    why = why ~= '' and why or err
  elseif made and not err then
    remove(key)
  end
  if not may_read or err then
    keys[#keys + 1] = string.sub(key, 1, 60)
  end
end
sum_up()
answer[9] = table.concat(keys, ' ')
answer[11], answer[12] = state, ''
return answer
