-- needs: may this user do all that a lock will need? Comes behind shared/keys.lua, in front of the
-- scripts that take locks.
-- KEYS and ARGV: none of its own

-- What is needed to renew the lock, to give it back and to hand it on is tried with the grant: a
-- right that is missing is told before anything runs under the lock. acl_check_cmd, since Redis 7,
-- costs less than a call and changes nothing; before, what changes nothing is called.
local may = redis.acl_check_cmd

-- To save time, a user who may give rights to users is asked for those alone that a holder can't do
-- without. A server whose ACL command has another name raises an error for that question.
local function has_all_rights(lock, want)
  return may and may('PTTL', lock.key) and may('PEXPIRE', lock.key) and may('DEL', lock.key) and
    may('INCR', lock.fence) and (want == 'x' or may('ZSCORE', lock.holders, '') and
    may('ZRANGEBYSCORE', lock.holders, 0, 0) and may('ZADD', lock.holders, 0, '')) and
    select(2, pcall(may, 'ACL', 'SETUSER', '')) == true
end

-- The complaint about the first of the rights that is missing.
local function missing_right(lock, want, token)
  local own, needed = lock.wake .. token, {}
  local function need(key, command, ...)
    needed[#needed + 1] = {command, key, ...}
  end
  need(lock.key, 'PTTL')
  need(own, 'PEXPIRE', 1000)
  need(own, 'DEL')
  need(lock.line, 'ZRANGE', 0, 0)
  need(lock.line, 'ZREM', '')
  need(lock.waiters, 'HGET', '')
  need(lock.waiters, 'HDEL', '')
  if may then
    need(lock.fence, 'INCR')
    need(lock.waiters, 'HSET', '', '')
    need(own, 'RPUSH', '')
  end
  if want ~= 'x' then
    need(lock.holders, 'ZSCORE', '')
    need(lock.holders, 'ZRANGEBYSCORE', 0, 0)
    need(lock.holders, 'ZREM', '')
    need(lock.cards, 'HVALS')
    need(lock.cards, 'HDEL', '')
    if may then
      need(lock.holders, 'ZADD', 0, '')
      need(lock.cards, 'HSET', '', '')
    end
  end
  for _, each in ipairs(needed) do
    local reply = not may and redis.pcall(unpack(each))
    local why = type(reply) == 'table' and reply.err or ''
    if may and not may(unpack(each)) or string.find(why, 'NOPERM', 1, true) or
      string.find(why, "executing the script can't ", 1, true) then -- before Redis 7
      return {err = 'NOPERM no right to ' .. each[1] .. ' for ' .. string.sub(each[2], 1, 100) ..
        ', which this lock will need'}
    end
  end
end
