-- inspect: who has a lock, and who waits for it. Changes nothing.
-- ARGV: 1 ticket behind which to look ('' for the first ones), 2 how many waiters to look at
-- returns {now, view, name of the value, ticket to go on behind ('': there are no more),
--          ticket, "beat want card" of each live waiter...}
-- with shared/clock.lua
-- with shared/keys.lua
-- with shared/check.lua
-- with shared/line.lua
-- with shared/lock.lua
-- with shared/view.lua

local lock = locks[1]
local kind = redis.call('TYPE', lock.key)['ok']
if kind ~= 'string' and kind ~= 'none' then
  return redis.pcall('GET', lock.key) -- it says so
end

local after = ARGV[1] == '' and '-inf' or '(' .. ARGV[1]
local waiters = check_line(lock) and {} or
  redis.call('ZRANGEBYSCORE', lock.line, after, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local answer = {now, view(lock, now), name_of(lock), ''}
for i = 1, #waiters, 2 do
  if life(lock, waiters[i]) > 0 then
    answer[#answer + 1] = waiters[i + 1]
    answer[#answer + 1] = string.sub(redis.call('HGET', lock.waiters, waiters[i]), 1, VALUE)
  end
end
if #waiters == ARGV[2] * 2 then
  answer[4] = waiters[#waiters]
end
return answer
