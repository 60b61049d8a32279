-- locks: a table for each lock. Included after shared/keys.lua.

local locks = {}
for i = 1, #KEYS, 8 do
  locks[#locks + 1] = lock_at(i)
end
