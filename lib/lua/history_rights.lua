--!df flags=allow-undeclared-keys
-- history_rights: tries what the history of a lock needs, and removes what it writes. rlock_examine
-- calls this script if the caller keeps a history.
-- KEYS: three of one lock, see shared/keys.lua
-- ARGV: 1 TOKEN: a new one, which no owner has
-- Returns three texts, each of which may be "": the commands that the server denies, with blanks
--         between; the first error about these commands; what is wrong with the history's key
-- with shared/keys.lua
-- with shared/fence.lua
-- with shared/locks.lua

local scratch = locks[1].wake .. ARGV[1]
local history = locks[1].history
local refused, why = {}, ''

local function try(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  local err = type(reply) == 'table' and reply.err
  if err and not string.find(err, 'WRONGTYPE', 1, true) then
    refused[#refused + 1] = command
    why = why ~= '' and why or err
  end
  return reply, err
end

try('RPUSH', scratch, 'v')
try('LTRIM', scratch, 0, 0)
redis.pcall('DEL', scratch)
local _, foreign = try('LRANGE', history, 0, 0)
local is_foreign = foreign and string.find(foreign, 'WRONGTYPE', 1, true)
return {table.concat(refused, ' '), why,
  is_foreign and string.sub(history, 1, 200) .. ' is no list' or ''}
