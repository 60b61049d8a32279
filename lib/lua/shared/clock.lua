-- clock: the server's time. Included first by every script that needs it.

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

-- A number as text, all its digits: Lua's own conversion keeps 14 of them.
local function digits(number)
  return string.format('%.0f', number)
end
