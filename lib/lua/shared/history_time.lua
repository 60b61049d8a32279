-- history_time: when an entry of a history was written. Included after shared/keys.lua.

-- Returns the time in ms since 1970, as text; shared/history.lua says which words tell it.
local function ms_of(entry)
  local at = string.match(entry, ' at=(%d+)') or string.match(entry, ' since=(%d+)')
  local fence, held = string.match(entry, ' fence=(%d+)'), string.match(entry, ' held=(%d+)')
  return at or digits(math.floor(tonumber(fence or 0) / 1000) + tonumber(held or 0))
end
