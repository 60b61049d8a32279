-- SPDX-License-Identifier: MIT
-- redis: the keys of the simulated servers, the commands of Redis that rlock uses, and scripts.
--
-- redis.c calls the functions of `asked`. A command gets its words and returns what redis.call()
-- returns to a script: a string, a number, false (nil), {ok =}, {err =} or an array. replay.c
-- compares each command with that of a real server. Source: redis/src/script_lua.c, release 7.0.

local sha1_of, checked = sha1_of, checked     -- functions of redis.c
local refuses_lists = false                   -- servers refuse the lists of waiters to scripts
local stores, saved, known = {}, {}, {}       -- of each server: keys, copies, the SHA1s of scripts
local by_sha1 = {}                            -- the scripts, compiled
local store, now_us, now_ms                   -- of the server that is asked, and its clock
local declared                                -- the keys of the script that runs
local may_serve = false                       -- a list has grown, or another client was served
local changes, change_of = {}, {}             -- the keys that commands have changed, in their order

local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local NOT_AN_INTEGER = 'ERR value is not an integer or out of range'
local SYNTAX_ERROR = 'ERR syntax error'

local function refuse(text) error({err = text}, 0) end

-- ---- keys ----

-- A key has a type and, if it expires, expires_ms. The items of a list, hash or sorted set are an
-- array {name =, value =, score =} in the order in which Redis shows them, and `named` has them by
-- their names.
local function find(name, kind)
    local key = store[name]
    if key and key.expires_ms and key.expires_ms < now_ms then
        key, store[name] = nil, nil
    end
    if key and kind and key.kind ~= kind then refuse(WRONG_TYPE) end
    return key
end

local function note(name, key)
    if change_of[name] == nil then changes[#changes + 1] = name end
    change_of[name] = key or false
end

local function delete(name)
    if not find(name) then return false end
    store[name] = nil
    note(name, nil)
    return true
end

local function changed(name, key)
    if key.items and #key.items == 0 then delete(name) else note(name, key) end
end

local function find_or_add(name, kind)
    local key = find(name, kind)
    if not key then
        key = {kind = kind, items = kind ~= 'string' and {} or nil, named = {}}
        store[name] = key
    end
    return key
end

-- Finds by halves the first of the items that isn't before the wanted place.
local function first_not(items, is_before)
    local low, high = 1, #items + 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        if is_before(items[middle]) then low = middle + 1 else high = middle end
    end
    return low
end

local function place_of(key, score, name)
    return first_not(key.items, function(item)
        return item.score < score or (item.score == score and item.name < name)
    end)
end

local function item_of(key, name) return key and key.named[name] end

local function remove_item(key, item)
    local at = 1
    if item.score then
        at = place_of(key, item.score, item.name)
    else
        while key.items[at] ~= item do at = at + 1 end
    end
    key.named[item.name] = nil
    return table.remove(key.items, at)
end

local function copy(keys)
    local copied = {}
    for name, key in pairs(keys) do
        copied[name] = {kind = key.kind, value = key.value, expires_ms = key.expires_ms,
                        is_foreign = key.is_foreign, items = key.items and {}, named = {}}
        for i, item in ipairs(key.items or {}) do
            local new = {name = item.name, value = item.value, score = item.score}
            copied[name].items[i] = new
            if new.name then copied[name].named[new.name] = new end
        end
    end
    return copied
end

-- ---- the words of a command ----

local function to_int(text)
    if text ~= '0' and not text:find('^%-?[1-9]%d*$') then refuse(NOT_AN_INTEGER) end
    return tonumber(text)
end

local function to_score(text, otherwise)
    local score = not text:find('^%s') and tonumber(text)
    if not score or score ~= score then refuse(otherwise) end
    return score
end

local function from_score(score) return ('%.17g'):format(score) end

-- The first of n elements between two indexes, from 0, and how many. -1 is the last element.
local function range(n, first, last)
    first = math.max(first < 0 and first + n or first, 0)
    last = math.min(last < 0 and last + n or last, n - 1)
    return first, math.max(last - first + 1, 0)
end

local function count(names, is_counted)
    local n = 0
    for _, name in ipairs(names) do n = n + (is_counted(name) and 1 or 0) end
    return n
end

-- HDEL and ZREM
local function remove(kind)
    return function(name, ...)
        local key = find(name, kind)
        local n = count({...}, function(named)
            local item = item_of(key, named)
            return item and remove_item(key, item)
        end)
        if n > 0 then changed(name, key) end
        return n
    end
end

local function members(key, from, n, with_scores)
    local reply = {}
    for i = from + 1, from + n do
        reply[#reply + 1] = key.items[i].name
        if with_scores then reply[#reply + 1] = from_score(key.items[i].score) end
    end
    return reply
end

-- The first of the members, from 0, whose scores are between the bounds, and how many. A bound
-- with "(" before it is not included.
local function between(name, low, high)
    local low_open, low_text = low:match('^(%(?)(.*)')
    local high_open, high_text = high:match('^(%(?)(.*)')
    low = to_score(low_text, 'ERR min or max is not a float')
    high = to_score(high_text, 'ERR min or max is not a float')
    local key = find(name, 'zset')
    local items = key and key.items or {}
    local from = first_not(items, function(item)
        return item.score < low or (low_open == '(' and item.score == low)
    end)
    local behind = first_not(items, function(item)
        return item.score < high or (high_open == '' and item.score == high)
    end)
    return key, from - 1, math.max(behind - from, 0)
end

-- ---- commands ----

-- Of each command the fewest words behind its name, the most, and its function.
local commands = {
    DEL = {1, 99, function(...) return count({...}, delete) end},
    EXISTS = {1, 99, function(...) return count({...}, find) end},
    TYPE = {1, 1, function(name) return {ok = (find(name) or {kind = 'none'}).kind} end},
    TIME = {0, 0, function()
        return {('%d'):format(now_us / 1000000), ('%d'):format(now_us % 1000000)}
    end},
    PTTL = {1, 1, function(name)
        local key = find(name)
        return not key and -2 or key.expires_ms and key.expires_ms - now_ms or -1
    end},
    PEXPIRE = {2, 2, function(name, ms)
        local key = find(name)
        ms = to_int(ms)
        if key and ms <= 0 then
            delete(name)
        elseif key then
            key.expires_ms = now_ms + ms
            note(name, key)
        end
        return key and 1 or 0
    end},
    GET = {1, 1, function(name)
        local key = find(name, 'string')
        return key and key.value or false
    end},
    SET = {2, 99, function(name, value, ...)
        local options, i, if_absent, if_present, ttl_ms = {...}, 1, false, false, nil
        while options[i] do
            local word = options[i]:upper()
            if word == 'NX' and not if_present then
                if_absent = true
            elseif word == 'XX' and not if_absent then
                if_present = true
            elseif (word == 'PX' or word == 'EX') and options[i + 1] and not ttl_ms then
                i = i + 1
                ttl_ms = to_int(options[i]) * (word == 'PX' and 1 or 1000)
                if ttl_ms <= 0 then refuse("ERR invalid expire time in 'set' command") end
            else
                refuse(SYNTAX_ERROR)
            end
            i = i + 1
        end
        local key = find(name)
        if (if_absent and key) or (if_present and not key) then return false end
        if key and key.kind ~= 'string' then delete(name) end
        key = find_or_add(name, 'string')
        key.value, key.expires_ms = value, ttl_ms and now_ms + ttl_ms
        note(name, key)
        return {ok = 'OK'}
    end},
    INCR = {1, 1, function(name)
        local key = find(name, 'string')
        local number = key and to_int(key.value) or 0
        if number >= 2 ^ 63 then refuse('ERR increment or decrement would overflow') end
        key = find_or_add(name, 'string')
        key.value = ('%.0f'):format(number + 1)
        note(name, key)
        return number + 1
    end},
    GETRANGE = {3, 3, function(name, first, last)
        first, last = to_int(first), to_int(last)
        local key = find(name, 'string')
        if not key or (first < 0 and last < 0 and first > last) then return '' end
        local from, n = range(#key.value, first, last < -#key.value and 0 or last)
        return key.value:sub(from + 1, from + n)
    end},
    STRLEN = {1, 1, function(name)
        local key = find(name, 'string')
        return key and #key.value or 0
    end},
    HSET = {3, 99, function(name, ...)
        local words, n_new = {...}, 0
        if #words % 2 ~= 0 then refuse("ERR wrong number of arguments for 'hset' command") end
        local key = find_or_add(name, 'hash')
        for i = 1, #words, 2 do
            local item = item_of(key, words[i])
            if not item then
                item, n_new = {name = words[i]}, n_new + 1
                key.items[#key.items + 1], key.named[item.name] = item, item
            end
            item.value = words[i + 1]
        end
        changed(name, key)
        return n_new
    end},
    HGET = {2, 2, function(name, field)
        local item = item_of(find(name, 'hash'), field)
        return item and item.value or false
    end},
    HVALS = {1, 1, function(name)
        local key, values = find(name, 'hash'), {}
        for i, item in ipairs(key and key.items or {}) do values[i] = item.value end
        return values
    end},
    HDEL = {2, 99, remove('hash')},
    RPUSH = {2, 99, function(name, ...)
        local key = find_or_add(name, 'list')
        for _, value in ipairs({...}) do key.items[#key.items + 1] = {value = value} end
        may_serve = true
        changed(name, key)
        return #key.items
    end},
    ZADD = {3, 99, function(name, ...)
        local words, scores, n_new = {...}, {}, 0
        if #words % 2 ~= 0 then refuse(SYNTAX_ERROR) end
        for i = 1, #words, 2 do scores[i] = to_score(words[i], 'ERR value is not a valid float') end
        local key = find_or_add(name, 'zset')
        for i = 1, #words, 2 do
            local item = item_of(key, words[i + 1])
            if item then remove_item(key, item) else n_new = n_new + 1 end
            item = {name = words[i + 1], score = scores[i]}
            table.insert(key.items, place_of(key, item.score, item.name), item)
            key.named[item.name] = item
        end
        changed(name, key)
        return n_new
    end},
    ZREM = {2, 99, remove('zset')},
    ZCARD = {1, 1, function(name)
        local key = find(name, 'zset')
        return key and #key.items or 0
    end},
    ZSCORE = {2, 2, function(name, member)
        local item = item_of(find(name, 'zset'), member)
        return item and from_score(item.score) or false
    end},
    ZRANK = {2, 2, function(name, member)
        local key = find(name, 'zset')
        local item = item_of(key, member)
        return item and place_of(key, item.score, item.name) - 1 or false
    end},
    ZCOUNT = {3, 3, function(...)
        local _, _, n = between(...)
        return n
    end},
    ZRANGE = {3, 4, function(name, first, last, with_scores)
        first, last = to_int(first), to_int(last)
        local key = find(name, 'zset')
        local from, n = range(key and #key.items or 0, first, last)
        return members(key, from, n, with_scores)
    end},
    ZRANGEBYSCORE = {3, 99, function(name, low, high, ...)
        local words, i, with_scores, offset, limit = {...}, 1, false, 0, math.huge
        while words[i] do
            if words[i]:upper() == 'WITHSCORES' then
                with_scores, i = true, i + 1
            elseif words[i]:upper() == 'LIMIT' and words[i + 2] then
                offset, limit, i = to_int(words[i + 1]), to_int(words[i + 2]), i + 3
            else
                refuse(SYNTAX_ERROR)
            end
        end
        local key, from, n = between(name, low, high)
        n = math.max(n - offset, 0)
        return members(key, from + offset, limit < 0 and n or math.min(n, limit), with_scores)
    end},
}

-- Executes a command; returns its reply, or nil: there is no such command. rlock and its scripts
-- write the names in upper case.
local function run(name, ...)
    local command, n = commands[name], select('#', ...)
    if not command then return nil end
    if n < command[1] or n > command[2] then
        refuse("ERR wrong number of arguments for '" .. name:lower() .. "' command")
    end
    return command[3](...)
end

-- Calls a function, and returns the error of refuse() as its reply.
local function protected(run_it, ...)
    local done, reply = pcall(run_it, ...)
    if not done and type(reply) ~= 'table' then error(reply, 0) end
    return reply
end

local function encode(value)
    local kind = type(value)
    if kind == 'string' then return '$' .. #value .. '\r\n' .. value .. '\r\n' end
    if kind == 'number' then
        return (':%.0f\r\n'):format(value < 0 and math.ceil(value) or math.floor(value))
    end
    if kind ~= 'table' then return value and ':1\r\n' or '$-1\r\n' end
    if value.err or value.ok then
        return (value.err and '-' .. value.err or '+' .. value.ok) .. '\r\n'
    end
    local parts = {}
    for i, each in ipairs(value) do parts[i] = encode(each) end -- up to the first nil, as Redis
    return '*' .. #parts .. '\r\n' .. table.concat(parts)
end

-- ---- scripts ----

local function call_checked(name, ...)
    local reply = run(name, ...)
    if reply == nil then refuse('ERR Unknown Redis command called from script') end
    return reply
end

local function call(...) return call_checked(checked(declared, refuses_lists, ...)) end

redis = {
    call = call,
    pcall = function(...) return protected(call, ...) end,
    sha1hex = sha1_of,
    acl_check_cmd = function() return true end,
}

-- As in Redis, a script that reads an undefined global variable, or sets a new one, fails.
setmetatable(_G, {
    __index = function(_, name)
        error("Script attempted to access nonexistent global variable '" .. name .. "'", 2)
    end,
    __newindex = function() error('Attempt to modify a readonly table', 2) end,
})

local function eval(server, verb, script, n_keys, ...)
    local sha1 = verb == 'EVALSHA' and script or sha1_of(script)
    if verb == 'EVALSHA' and not known[server][sha1] then
        return {err = 'NOSCRIPT No matching script. Please use EVAL.'}
    end
    known[server][sha1] = true
    by_sha1[sha1] = by_sha1[sha1] or assert(loadstring(script, '@user_script'))
    rawset(_G, 'KEYS', {unpack({...}, 1, n_keys)})
    rawset(_G, 'ARGV', {select(n_keys + 1, ...)})
    declared = {}
    for _, name in ipairs(KEYS) do declared[name] = true end
    local done, reply = pcall(by_sha1[sha1])
    if done then return reply end
    return {err = (type(reply) == 'table' and reply.err or 'ERR ' .. tostring(reply)):sub(1, 300) ..
                ' script: ' .. sha1 .. ', on @user_script:0.'}
end

-- ---- what redis.c asks ----

-- Each function gets the number of the server and words; what it returns becomes a string of C.
local asked = {}

-- A command or script of a client; its reply.
function asked.run(server, name, ...)
    local reply
    if name == 'EVAL' or name == 'EVALSHA' then
        reply = eval(server, name, ...)
    else
        reply = protected(run, name, ...)
    end
    return reply ~= nil and encode(reply) or nil
end

-- The names of all lists, each between line feeds, if clients that wait may have to be served now.
function asked.lists()
    local names = {}
    if not may_serve then return nil end
    may_serve = false
    for name, key in pairs(store) do
        if key.kind == 'list' and find(name) then names[#names + 1] = name end
    end
    return names[1] and '\n' .. table.concat(names, '\n') .. '\n'
end

-- BLPOP: the first element of the first of these lists; nil: there is none.
function asked.pop(_, ...)
    for _, name in ipairs({...}) do
        local key = find(name)
        if key and key.kind ~= 'list' then return encode({err = WRONG_TYPE}) end
        if key then
            local first = table.remove(key.items, 1)
            if #key.items == 0 then store[name] = nil end
            may_serve = true
            return encode({name, first.value})
        end
    end
end

-- What WATCH compares: the string of a key, and its expiry.
function asked.look(_, name)
    local key = find(name)
    return key and (key.expires_ms or 0) .. ' ' .. (key.value or '')
end

-- Creates a key of another program, which no client may change, and which needs no expiry.
function asked.plant(_, name)
    store[name] = {kind = 'string', value = "another program's", is_foreign = true}
end

function asked.save(server) saved[server] = copy(store) end
function asked.restore(server) stores[server] = copy(saved[server] or {}) end
function asked.clear(server) stores[server] = {} end
function asked.forget_scripts(server) known[server] = {} end
function asked.refuse_lists() refuses_lists = true end

-- The tokens that hold the lock of this name, each behind a line feed. With try=0 the lock is only
-- kept for a token.
function asked.holders(_, name)
    local lock, tokens = find(name), ''
    if not lock then return nil end
    if not (lock.value or ''):find('^%x+ v1 try=0 ') then
        tokens = '\n' .. (lock.value or ''):match('^[^ ]*')
    end
    local holders = find('{' .. name .. '}:rlock:holders')
    for _, item in ipairs(holders and holders.items or {}) do
        if item.score > now_ms then tokens = tokens .. '\n' .. item.name end
    end
    return tokens
end

-- A script may change the keys that it was called with, and the lists of all waiters for their
-- locks. Without such keys, commands have changed the key.
local function may_change(keys, name)
    for i = 1, #keys do
        if keys[i] == name then return true end
    end
    for i = 3, #keys, 8 do
        local lists = keys[i]:gsub('queue$', 'wake:')
        if name:sub(1, #lists) == lists then return true end
    end
    return #keys == 0
end

-- Says what is wrong with a key that was changed since the last call, if anything is. The words are
-- the keys that the script was called with.
function asked.check_changes(_, ...)
    local changed_keys, states, keys = changes, change_of, {...}
    if #changes == 0 then return nil end
    changes, change_of = {}, {}
    for _, name in ipairs(changed_keys) do
        local key = states[name]
        if key and key.is_foreign then
            return 'foreign: ' .. name .. ", which is another program's, was changed"
        elseif key and not key.expires_ms then
            return 'expiry: ' .. name .. ' has none'
        elseif not may_change(keys, name) then
            return 'foreign: ' .. name .. " was changed, which isn't a key of the script"
        end
    end
end

return function(what, server, at_us, ...)
    if not stores[server] then stores[server], known[server] = {}, {} end
    store, now_us, now_ms = stores[server], at_us, math.floor(at_us / 1000)
    return asked[what](server, ...)
end
