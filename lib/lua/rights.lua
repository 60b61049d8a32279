--!df flags=allow-undeclared-keys
-- rights: tries all commands of the other scripts, and returns which of them the server denies this
-- user. Removes each key that it writes. rlock_examine calls this script.
-- KEYS: three of one lock, see shared/keys.lua
-- ARGV: 1 TOKEN: a new one, which no owner has
-- Returns fourteen texts. Twelve of them are six pairs: what is denied, with blanks between the
-- names, and the first error about it. The pairs are about
--           commands that every lock needs,
--           commands for waiters, and for a release that wakes a waiter,
--           commands for shared locks and slots,
--           commands of inspect.lua, break.lua and history.lua, and of lists,
--           commands for the history,
--           keys.
-- The 13th text is an error that isn't about rights but keeps the server from writing, such as a
-- full memory. The 14th says what is wrong with the history's key.
-- with shared/clock.lua
-- with shared/constants.lua
-- with shared/keys.lua
-- with shared/fence.lua
-- with shared/locks.lua
-- with shared/commands.lua
-- with shared/rights.lua

-- A key that the script may write: no other client uses it, as its name contains the token.
local lock, scratch = locks[1], locks[1].wake .. ARGV[1]
local answer, refused, why, state = {}, {}, '', ''

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

-- Appends a pair to the reply: what was refused since the last sum_up(), and why.
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
  return {'', '', '', '', '', '', '', '', '', '', scratch, probe_err, '', ''}
elseif probe_err and not is_about_rights(probe_err) then
  state = probe_err
end

-- The script removes each key right after it has made it, by DEL or PEXPIRE. If the user may call
-- neither, the script makes no key, as it could not remove it.
local may = {} -- which commands the server has executed
local function remove(key)
  if may.DEL then
    redis.call('DEL', key)
  else
    redis.call('PEXPIRE', key, 0)
  end
end

-- Tries the commands for these uses on `scratch`, each command once in all pairs, and appends a
-- pair to the reply.
local tried = {}
local function try_all(...)
  for _, use in ipairs({...}) do
    may_all(use, lock, function(command, key, ...)
      if not tried[command] and (not makes_key(command) or may.DEL or may.PEXPIRE) then
        tried[command] = true
        may[command] = key and try(command, scratch, ...) or not key and try(command, ...)
        if may[command] and makes_key(command) then
          remove(scratch)
        end
      end
      return true
    end)
  end
  sum_up()
end

try_all('hold', 'grant')
try_all('pass on', 'wait')
try_all('several')
try_all('inspect')
tried = {} -- doctor reports on the history apart from the other uses
try_all('history')

local keys = {}
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
answer[11] = table.concat(keys, ' ')
local entries = redis.pcall('LRANGE', lock.history, 0, 0)
local is_foreign = entries.err and string.find(entries.err, 'WRONGTYPE', 1, true)
answer[13], answer[14] = state,
  is_foreign and string.sub(lock.history, 1, 200) .. ' is no list' or ''
return answer
