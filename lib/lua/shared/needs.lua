-- needs: checks that this user may run every command that the lock will need. Included after
-- shared/keys.lua.
--
-- The acquire scripts check this at an owner's first attempt. Otherwise only the first renewal
-- would find that a right is missing; then the lease would end, and rlock would kill the running
-- command. On Redis 7 and later redis.acl_check_cmd() answers for each command, faster than a call,
-- and changes nothing. On older servers the script calls commands instead, but only those that
-- change nothing.
local may = redis.acl_check_cmd

-- Returns the error reply about the first right that is missing, or nil. mode: MODE of acquire.lua,
-- or "timestamp".
local function missing_right(lock, mode, token)
  local own, err = lock.wake .. token, nil
  local function need(key, command, ...)
    if err or may and may(command, key, ...) then
      return
    end
    local reply = not may and redis.pcall(command, key, ...)
    local why = type(reply) == 'table' and reply.err or ''
    if may or string.find(why, 'NOPERM', 1, true) or
      string.find(why, "executing the script can't ", 1, true) then -- as Redis 6 words it
      err = {err = 'NOPERM no right to ' .. command .. ' for ' .. string.sub(key, 1, 100) ..
        ', which this lock will need'}
    end
  end
  if mode == 'timestamp' and may then -- a timestamp lock needs no commands for a queue
    need(lock.key, 'DEL')
    need(lock.holder_info, 'DEL')
    need(lock.holder_info, 'HDEL', '')
    need(lock.holder_info, 'HSET', '', '')
    need(lock.holder_info, 'HVALS')
    need(lock.holder_info, 'PEXPIRE', 1000)
    need(lock.fence, 'SET', '')
    need(lock.fence, 'INCR')
    need(lock.fence, 'PEXPIRE', 1000)
  else
    need(lock.key, 'PTTL')
    need(own, 'PEXPIRE', 1000)
    need(own, 'DEL')
    need(lock.queue, 'ZRANGE', 0, 0)
    need(lock.queue, 'ZREM', '')
    need(lock.waiters, 'HGET', '')
    need(lock.waiters, 'HDEL', '')
    if may then
      need(lock.fence, 'INCR')
      need(lock.waiters, 'HSET', '', '')
      need(own, 'RPUSH', '')
    end
    if mode ~= 'x' and mode ~= 'timestamp' then
      need(lock.holders, 'ZSCORE', '')
      need(lock.holders, 'ZRANGEBYSCORE', 0, 0)
      need(lock.holders, 'ZREM', '')
      need(lock.holder_info, 'HVALS')
      need(lock.holder_info, 'HDEL', '')
      if may then
        need(lock.holders, 'ZADD', 0, '')
        need(lock.holder_info, 'HSET', '', '')
      end
    end
  end
  return err
end
