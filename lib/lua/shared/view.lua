-- view: what can be seen of a lock; comes in front of the scripts that only look.
-- KEYS and ARGV: none of its own

-- More of a value than our own ever have: a token, and a card of at most 1023 bytes. How many of
-- several holders are shown.
local VALUE, HOLDERS = 1200, 20

local function mode_of(value)
  return string.match(value, '^0+ v1 mode=(%a+) ')
end

local function is_of_several(value)
  return mode_of(value) == 'shared' or mode_of(value) == 'slots'
end

-- {value (false: free), ms left, last fence, how many in line (-1: not known),
--  1 if it is kept for the next in line, how many hold it at once (-1: it isn't of this kind),
--  {ms left, card of each of these...}, what is wrong with its helper keys}
-- What lies under `lock.key` is a string or nothing. A helper key that isn't known is nil.
local function view(lock, now)
  local value, left = redis.call('GETRANGE', lock.key, 0, VALUE - 1), redis.call('PTTL', lock.key)
  local several, cards, odd = -1, {}, {}
  local function is_well(complaint)
    odd[#odd + 1] = complaint and string.match(complaint.err, '^FOREIGN (.*)') or nil
    return not complaint
  end
  local last, complaint = 0
  if lock.fence then
    last, complaint = last_fence(lock)
    is_well(complaint)
  end
  local line = lock.line and is_well(check_line(lock)) and redis.call('ZCARD', lock.line) or -1
  if left == -2 then
    value = false
  end
  local is_several = value and lock.holders and is_of_several(value)
  if is_several and not is_well(check_holders(lock)) then
    several = 0
  elseif is_several then
    local from = '(' .. whole(now)
    several = redis.call('ZCOUNT', lock.holders, from, '+inf')
    local some = redis.call('ZRANGEBYSCORE', lock.holders, from, '+inf', 'WITHSCORES',
      'LIMIT', 0, HOLDERS)
    for i = 1, #some, 2 do
      cards[i] = math.floor(some[i + 1] - now)
      cards[i + 1] = string.sub(redis.call('HGET', lock.cards, some[i]) or '', 1, VALUE)
    end
    value = several > 0 and value -- where all leases are over the marker counts for nothing
  end
  local is_kept = value and string.match(value, '^%x+ v1 try=0 ')
  return {value, left, (last or 0) > 0 and whole(last) or '', line, is_kept and 1 or 0, several,
    cards, string.sub(table.concat(odd, ', '), 1, VALUE)}
end

-- What a value is known by, however long it is: who holds the lock. Where several servers vote it
-- is the same with all of them, though each says in its own time since when, and by which attempt.
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
