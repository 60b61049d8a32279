-- commands: the commands that the scripts call, in one list.

-- Calls ask(COMMAND, KEY, ARGUMENT...) for each command that `use` needs, until a call returns
-- false. Returns false if one did, else true. KEY is a key of the lock on which the scripts call
-- the command. The arguments are those of a valid call, because Redis 8.0.2 answers no question
-- about an invalid one. Such a call changes nothing if the key doesn't exist, unless makes_key() of
-- shared/rights.lua returns true. tests/unit/test_lua.c checks all of this, and that no command is
-- missing.
local function may_all(use, lock, ask)
  if use == 'all' then -- asks for little: who may change the rights of users most likely has all
    return ask('ACL', 'SETUSER', '') and may_all('hold', lock, ask)
  elseif use == 'hold' then -- needed by renewals and releases
    return ask('PTTL', lock.key) and
      ask('PEXPIRE', lock.key, 1000) and
      ask('DEL', lock.key) and
      ask('INCR', lock.fence)
  elseif use == 'grant' then -- a grant calls these itself, so acquire.lua need not ask before
    return ask('SET', lock.key, '', 'XX', 'PX', 1000) and
      ask('GET', lock.fence) and
      ask('EXISTS', lock.queue) and
      ask('ZCARD', lock.queue) and
      ask('HGET', lock.waiters, '')
  elseif use == 'pass on' then -- called by a release for which somebody waits
    return ask('ZRANGE', lock.queue, 0, 0) and
      ask('ZREM', lock.queue, '') and
      ask('HGET', lock.waiters, '') and
      ask('HDEL', lock.waiters, '') and
      ask('HSET', lock.waiters, '', '') and
      ask('RPUSH', lock.wake, '')
  elseif use == 'wait' then -- called by the attempt that joins the queue
    return ask('ZADD', lock.queue, 'XX', 0, '') and
      ask('ZRANK', lock.queue, '')
  elseif use == 'several' then -- shared locks and slots
    return ask('ZSCORE', lock.holders, '') and
      ask('ZRANGEBYSCORE', lock.holders, 0, 0) and
      ask('ZADD', lock.holders, 'XX', 0, '') and
      ask('ZREM', lock.holders, '') and
      ask('HVALS', lock.holder_info) and
      ask('HDEL', lock.holder_info, '') and
      ask('HSET', lock.holder_info, '', '')
  elseif use == 'timestamp' then -- a timestamp lock needs no commands for a queue
    return ask('DEL', lock.key) and
      ask('DEL', lock.holder_info) and
      ask('HDEL', lock.holder_info, '') and
      ask('HSET', lock.holder_info, '', '') and
      ask('HVALS', lock.holder_info) and
      ask('PEXPIRE', lock.holder_info, 1000) and
      ask('SET', lock.fence, '', 'XX') and
      ask('INCR', lock.fence) and
      ask('PEXPIRE', lock.fence, 1000)
  elseif use == 'history' then
    return ask('RPUSH', lock.history, '') and
      ask('LTRIM', lock.history, 0, 0) and
      ask('LRANGE', lock.history, 0, 0)
  elseif use == 'inspect' then -- status, list, history and break
    return ask('TYPE', lock.key) and
      ask('STRLEN', lock.key) and
      ask('GETRANGE', lock.key, 0, 0) and
      ask('ZCOUNT', lock.holders, 0, 0) and
      ask('LRANGE', lock.history, 0, 0) and
      ask('SCAN', nil, 0, 'COUNT', 1)
  end
end
