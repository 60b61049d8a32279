--!df flags=allow-undeclared-keys
-- histories: returns the keys of histories among the keys that one call of SCAN finds. Changes
-- nothing. rlock_history_keys calls this script until the cursor is 0 again.
-- KEYS: none, as the script itself finds the keys
-- ARGV: 1 CURSOR and 2 COUNT for SCAN
-- Returns {next CURSOR, text}. The text consists of "LENGTH:KEY" for each key. It is one text,
--         because there may be more keys than the 64 elements of a reply that rlock accepts.

local step, names = redis.call('SCAN', ARGV[1], 'MATCH', '*:rlock:*history', 'COUNT', ARGV[2]), {}
for _, key in ipairs(step[2]) do
  -- pcall catches the error of TYPE for a key that the user may not read; such keys are left out.
  local kind = redis.pcall('TYPE', key)
  if kind['ok'] == 'list' and not string.find(key, '%z') then
    names[#names + 1] = #key .. ':' .. key
  end
end
return {step[1], table.concat(names)}
