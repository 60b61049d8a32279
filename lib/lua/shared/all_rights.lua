-- all_rights: whether this user has all rights, so that shared/needs.lua is not needed.

-- Returns true for a user who most likely has all rights: the user may change the rights of users
-- (ACL SETUSER), and may run the commands without which a holder would lose its lock. pcall catches
-- the error that acl_check_cmd() raises if the server has no command ACL, as after a
-- rename-command. holders: the key of the holders of a shared lock or slots; nil or false: the lock
-- is exclusive.
local function has_all_rights(key, fence, holders)
  local may = redis.acl_check_cmd
  if not may then
    return false -- a server before Redis 7
  end
  local is_known, is_allowed = pcall(may, 'ACL', 'SETUSER', '')
  return is_known and is_allowed and may('PTTL', key) and may('PEXPIRE', key, 0) and
    may('DEL', key) and may('INCR', fence) and
    (not holders or may('ZSCORE', holders, '') and may('ZRANGEBYSCORE', holders, 0, 0) and
    may('ZADD', holders, 0, ''))
end
