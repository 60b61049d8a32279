-- history: notes in a list who was granted a lock, and how each hold ended. Without --history no
-- script writes the list.
--
-- An entry is a text that begins with its kind and "v1 token=ID". ID is the first 12 digits of the
-- holder's token: they tell the holders apart, and nobody can release a lock by them. The kinds:
--   grant  then "fence=N waited=MS" and the holder info; shared=1: others may hold the lock, too
--   end    then "fence=N" and what the holder tells of the end: "status=N reason=WORD held=MS
--          renewals=N". missing=1: the token didn't hold the lock any more. by=1: a process that
--          knows only the token has released the lock; the words after by=1 are its holder info.
--   break  then the holder info of who has broken the lock; ID may be several, with commas between
-- at=MS (in a grant: since=MS) is when the entry was written, by the server's clock. If an end has
-- neither word (the usual release doesn't read the clock), the time is that of the grant, which is
-- the fence in microseconds, plus held=MS.

-- The list expires 30 days after the last grant, or after the end of a hold of more than a day.
local HISTORY_LIFE = '2592000000'

local function short(token)
  return string.sub(token, 1, 12)
end

-- Appends an entry. If the list then has more than `most` entries, removes the oldest eighth of
-- them at once, so that most calls remove nothing and take less time. Does nothing if `most` is nil
-- or false. is_recent: the grant of this hold has set the list's expiry a short time ago, so this
-- call doesn't set it.
--
-- A script calls this after its other writes: a server that is out of memory refuses an RPUSH only
-- before a script's first write. pcall catches the error of an RPUSH to a key that another program
-- uses: the script then grants or releases the lock all the same, and leaves the key as it is. If
-- the user may not call LTRIM, the list would grow for ever, so the script deletes the list.
local function note(history, most, entry, is_recent)
  if not most then
    return
  end
  local n = redis.pcall('RPUSH', history, entry)
  if type(n) ~= 'number' then
    return
  end
  most = tonumber(most)
  if n == 1 or n > most then
    local reply = redis.pcall('LTRIM', history, math.floor(most / 8) - most, -1)
    if reply.err then
      redis.call('DEL', history)
      return
    end
  end
  if n == 1 or not is_recent then
    redis.pcall('PEXPIRE', history, HISTORY_LIFE)
  end
end
