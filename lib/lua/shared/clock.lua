-- clock: the server's time. Included before the files whose functions use the time.

local time = redis.call('TIME')

-- The microseconds and the milliseconds since 1970.
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
