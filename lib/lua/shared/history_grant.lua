-- history_grant: notes a grant in the history, for acquire.lua. Included after shared/history.lua.

-- Appends the entry of a grant. `value` is what the lock's value would be if the lock were
-- exclusive. In a quorum confirm.lua notes the grant instead of acquire.lua, because a majority may
-- not have granted the lock yet when acquire.lua runs.
local function note_grant(history, most, fence, value)
  note(history, most, 'grant v1 token=' .. short(value) .. ' fence=' .. fence ..
    string.sub(value, 36)) -- the words after "TOKEN v1"
end
