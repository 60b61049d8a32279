-- clock: the server's time. A script that needs the time includes this file before all others.

local time = redis.call('TIME')

-- The microseconds and the milliseconds since 1970.
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
