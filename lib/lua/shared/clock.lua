-- clock: the server's time; comes in front of all that goes by it.
-- KEYS and ARGV: none of its own

local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)

-- A number as an argument: Lua's own way would round it.
local function whole(number)
  return string.format('%.0f', number)
end
