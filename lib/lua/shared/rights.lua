-- rights: which commands this user may not call. Included after shared/commands.lua.

local function makes_key(command)
  return command == 'INCR' or command == 'HSET' or command == 'RPUSH'
end

-- Returns whether this error says that the user lacks a right, or that the server doesn't have the
-- command. Redis 6, 7 and 8 use different words.
local function is_about_rights(err)
  return string.find(err, 'NOPERM') or string.find(err, 'ACL') or
    string.find(err, "can't ") or string.find(err, 'nknown')
end

-- Returns the error reply about the first right that the user lacks for `use`, or nil. The acquire
-- scripts call this at an owner's first attempt. Otherwise only the first renewal would find that a
-- right is missing; then the lease would end, and rlock would kill the running command.
--
-- redis.acl_check_cmd() answers faster than a call. It raises an error about a command that the
-- server lacks. Redis 6 lacks this function: there the script calls those commands that make no
-- key, on a key that only this owner uses (KEYS[8]).
local function missing_right(use, lock)
  local may, err = redis.acl_check_cmd, nil
  local is_known, is_allowed = pcall(may_all, use, lock, may)
  if is_known and is_allowed then
    return nil
  end
  may_all(use, lock, function(command, key, ...)
    local is_missing
    if may then
      is_known, is_allowed = pcall(may, command, key, ...)
      is_missing = not (is_known and is_allowed)
    elseif not makes_key(command) then
      local reply = redis.pcall(command, KEYS[8], ...)
      is_missing = type(reply) == 'table' and reply.err and is_about_rights(reply.err)
    end
    err = is_missing and {err = 'NOPERM no right to ' .. command .. ' for ' ..
      string.sub(key, 1, 100) .. ', which this lock will need'}
    return not err
  end)
  return err
end

-- Returns the error reply about the first right that a lock of acquire.lua will need after the
-- grant, or nil.
local function missing_right_to_hold(lock)
  local is_known, is_allowed = pcall(may_all, 'all', lock, redis.acl_check_cmd)
  if not (is_known and is_allowed) then
    return missing_right('hold', lock) or missing_right('pass on', lock)
  end
end
