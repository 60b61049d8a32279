-- clock: the server's time. A script that needs the time includes this file before all others.

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

-- Returns a number as text with all its digits: Lua's own conversion rounds it to 14 of them.
local function digits(number)
  return string.format('%.0f', number)
end
