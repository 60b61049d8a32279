--!df flags=allow-undeclared-keys
-- rights: tries all commands of the other scripts, and returns which of them the server denies this
-- user. Removes each key that it writes. rlock_examine calls this script.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: none; the owner's token, in KEYS, is a new one
-- Returns 13 texts. The first ten are pairs: the names of denied commands, with blanks between
--         them, and the first error about these commands.
--          1 commands that every lock needs
--          3 commands for waiters, and for a release that wakes a waiter
--          5 commands for shared locks and slots
--          7 commands of inspect.lua, break.lua and history.lua, and of lists
--          9 commands for the history
--         11 an error not about rights that keeps the server from writing, such as a full memory
--         12 what is wrong with the history's key
--         13 the error about the lock's key, if it has another type
--       The server doesn't run this script if the user may not use one of the keys.
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/commands.lua
--@include shared/rights.lua

-- A key that the script may write: no other client uses it, as its name contains the token.
local lock, scratch = locks[1], KEYS[8]
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

-- The key `scratch` doesn't exist, so this SET with XX changes nothing. The script calls SET first,
-- so that it sees whether the server is out of memory: such a server refuses a SET only before a
-- script's first write, and Redis counts each DEL below as a write.
local probe = redis.pcall('SET', scratch, '', 'XX', 'PX', 1000)
local probe_err = type(probe) == 'table' and probe.err
if probe_err and not is_about_rights(probe_err) then
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

local entries = redis.pcall('LRANGE', lock.history, 0, 0)
local is_foreign = entries.err and string.find(entries.err, 'WRONGTYPE', 1, true)
local held = redis.pcall('GET', lock.key)
answer[11], answer[12], answer[13] = state,
  is_foreign and string.sub(lock.history, 1, 200) .. ' is no list' or '',
  type(held) == 'table' and string.find(held.err, 'WRONGTYPE', 1, true) and held.err or ''
return answer
