-- history_end: notes the end of a hold, for the scripts that release a lock. Included after
-- shared/history.lua.

-- Notes in the history how the hold of a lock ended. `info` is the holder info of the grant; nil or
-- false: the token didn't hold the lock. `at` is the server's time in ms, in digits; nil: the
-- script doesn't know the time, and ENDED tells for how long the owner has held the lock. An undo
-- removes the entry of its grant instead: no command ran under this grant, because the owner has
-- not received the reply, or has rejected the grant. A release that is repeated notes nothing.
local function note_end(history, info, at)
  local ended = ARGV[3] or ''
  local most, held = string.match(ended, '^history=(%d+).* held=(%d+)')
  most = most or string.match(' ' .. (ended ~= '' and ended or info or ''), ' history=(%d+)')
  local begin = 'v1 token=' .. short(ARGV[1]) .. ' fence=' .. ARGV[2]
  local last = most and redis.pcall('LRANGE', history, -1, -1)[1] or ''
  if most and ARGV[2] == '' then
    if string.find(last, 'grant ' .. begin, 1, true) == 1 then
      redis.pcall('LTRIM', history, 0, -2)
    end
  elseif most and string.find(last, 'end ' .. begin .. ' ', 1, true) ~= 1 then
    -- After a hold of less than 28 hours (8 digits) the list's expiry, set by the grant, will do.
    note(history, most, 'end ' .. begin .. (at and ' at=' .. at or '') ..
      (info and ' ' or ' missing=1 ') ..
      (ended == '' and ARGV[2] == '0' and 'by=1 ' .. ARGV[7] or ended), held and #held < 9)
  end
end
