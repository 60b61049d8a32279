--!df flags=allow-undeclared-keys
-- history: returns what the history of a lock says, and what is needed to tell whether a grant
-- without an end still holds the lock. Changes nothing. rlock_history calls this script once for
-- each page of entries.
-- KEYS: those of one lock, see shared/keys.lua
-- ARGV: 1 START: how many of the oldest entries to leave out
--       2 COUNT: return at most this many entries
-- Returns {now, START for the next call ("": the history ends here),
--          what is wrong with the history's key ("": nothing),
--          last fence, ms until the server forgets this fence,
--          the first 12 digits of the holders' tokens, with commas between; "*": the newest grant
--            holds the lock (--protocol timestamp),
--          and for each entry: "MS FIELD WORDS", see shared/history.lua; MS: when it was written}
--@include shared/clock.lua
--@include shared/constants.lua
--@include shared/keys.lua
--@include shared/fence.lua
--@include shared/locks.lua
--@include shared/check.lua
--@include shared/view.lua
--@include shared/history_time.lua

local lock = locks[1]
local history = lock.history
local kind = redis.call('TYPE', history)['ok']
if kind ~= 'list' and kind ~= 'none' then
  return {now_ms, '', string.sub(history, 1, 200) .. ' is no list', '0', -2, ''}
end

-- Returns the text about the holders, which is the sixth element of the reply.
local function holders()
  if redis.call('TYPE', lock.key)['ok'] ~= 'string' then
    return ''
  end
  local value, held = redis.call('GETRANGE', lock.key, 0, 63), {}
  if string.find(value, '^%d+$') and redis.call('TYPE', lock.holder_info)['ok'] == 'hash' then
    -- shared/timestamp_lock.lua lets the key exist for 2 s longer than the lease. So a key that
    -- expires within 2 s has no holder any more.
    local info = redis.call('HVALS', lock.holder_info)[1] or ''
    return string.find(info, value .. ' ', 1, true) == 1 and
      redis.call('PTTL', lock.key) > 2000 and '*' or ''
  end
  if is_of_several(value) and not check_holders(lock) then
    held = redis.call('ZRANGEBYSCORE', lock.holders, '(' .. digits(now_ms), '+inf', 'LIMIT', 0, 999)
  elseif string.find(value, '^%x+ v1 try=[1-9-]') then
    held = {value}
  end
  for i, token in ipairs(held) do
    held[i] = string.sub(token, 1, 12)
  end
  return table.concat(held, ',')
end

local answer = {now_ms, '', '', digits(last_fence(lock.fence) or 0), redis.call('PTTL', lock.fence),
  holders()}
local start, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local entries = kind == 'list' and
  redis.call('LRANGE', history, start, start + count - 1) or {}
for i, entry in ipairs(entries) do
  answer[6 + i] = ms_of(entry) .. ' ' .. string.sub(entry, 1, VALUE)
  answer[2] = i == count and digits(start + count) or ''
end
return answer
