-- view: the state of a lock, for the scripts that show it, and for break, which compares it with
-- what somebody has seen. Included after shared/check.lua.

-- The scripts return at most this many bytes of a value: more than a token and a holder info
-- together have (HOLDER_INFO_BYTES of lib/lock/holder_info.h).
local VALUE = 1200

local function mode_of(value)
  return string.match(value, '^0+ v1 mode=(%a+) ')
end

local function is_of_several(value)
  return mode_of(value) == 'shared' or mode_of(value) == 'slots'
end

-- Returns, in the order of enum view_part (lib/lock/view.c):
--   {value (false: the lock is free), ms left, last fence,
--    number of waiters (-1: not known),
--    1 if the lock is reserved for the next waiter, else 0,
--    number of holders (-1: the lock is neither shared nor has slots),
--    {ms left, holder info, ... of at most max_holders holders},
--    text about what is wrong with the helper keys; "": nothing}
-- The caller has checked that lock.key is a string, or doesn't exist.
local function view(lock, max_holders)
  local value, left = redis.call('GETRANGE', lock.key, 0, VALUE - 1), redis.call('PTTL', lock.key)
  local n_holders, shown, problems = -1, {}, {}
  local function is_well(err)
    problems[#problems + 1] = err and string.match(err.err, '^FOREIGN (.*)') or nil
    return not err
  end
  local last, err = last_fence(lock.fence)
  is_well(err)
  local n_waiting = is_well(check_queue(lock)) and redis.call('ZCARD', lock.queue) or -1
  if left == -2 then
    value = false
  end
  local is_shared = value and is_of_several(value)
  if is_shared and not is_well(check_holders(lock)) then
    n_holders = 0
  elseif is_shared then
    local from = '(' .. digits(now_ms)
    n_holders = redis.call('ZCOUNT', lock.holders, from, '+inf')
    local some = redis.call('ZRANGEBYSCORE', lock.holders, from, '+inf', 'WITHSCORES',
      'LIMIT', 0, max_holders)
    for i = 1, #some, 2 do
      shown[i] = math.floor(some[i + 1] - now_ms)
      shown[i + 1] = string.sub(redis.call('HGET', lock.holder_info, some[i]) or '', 1, VALUE)
    end
    value = n_holders > 0 and value -- shared locks and slots are free without holders
  end
  local is_turn = value and string.match(value, '^%x+ v1 try=0 ')
  return {value, left, (last or 0) > 0 and digits(last) or '', n_waiting, is_turn and 1 or 0,
    n_holders, shown, string.sub(table.concat(problems, ', '), 1, VALUE)}
end

-- Returns a short name for the value of a lock. Two equal names mean that the same owner holds the
-- lock, or the same owners do: at two times, or on two members of a quorum. So the name leaves out
-- what differs between members (the time of the grant, the attempt, the TTL).
local function name_of(lock)
  local value = redis.call('GETRANGE', lock.key, 0, 65535)
  local length = redis.call('STRLEN', lock.key)
  if is_of_several(value) then
    local tokens = check_holders(lock) and {} or redis.call('ZRANGE', lock.holders, 0, 999)
    table.sort(tokens)
    value, length = mode_of(value) .. table.concat(tokens), 0
  elseif mode_of(value) then
    value, length = string.gsub(value, ' since=%d+$', ''), 0
  elseif string.find(value, '^' .. string.rep('%x', 32) .. ' v1 ') then
    for _, varies in ipairs({' try=%S+', ' ttl=%d+', ' since=%d+'}) do
      value = string.gsub(value, varies, '', 1)
    end
    length = 0
  end
  return redis.sha1hex(value) .. ':' .. length
end
