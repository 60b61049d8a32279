-- next_fence: draws a fence. Included after shared/keys.lua, by scripts that grant a lock.

-- Returns the next fence: the server's time in microseconds, or the last fence plus one if that is
-- greater (a hybrid clock). So fences grow even if the server has lost its data, and with them the
-- last fence.
local function fence_behind(last)
  return digits(math.max(now_us - 1, last) + 1)
end
