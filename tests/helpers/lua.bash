# shellcheck shell=bash
# lua: runs single scripts of lib/lua by redis-cli; prints each reply as one line of words.
#
#     acquire TOKEN ATTEMPT [TTL [LIMIT [TICKET]]]    QUEUE: fifo, newest, none or try (default);
#                                                     WANT: x, s or a number of slots; ONCE=1;
#                                                     PARENTS: tokens; CARD: the holder_info
#     renew TOKEN FENCE [TTL [LIMIT]]                 WANT as for acquire; SLOT: its number
#     release TOKEN FENCE [ENDING MS]
#     undo TOKEN ATTEMPT / leave TOKEN
#     confirm TOKEN FENCE                             note FENCE as the last one of a quorum
#     fence [KEY]                                     print the last fence of the lock
#     helper KIND [KEY]                               print the name of a helper key
#     contents / endless                              print all keys / those without an expiry
#
# LOCKS names the keys, if they are others than KEY; mine, yours and third are tokens. With SLOWLY=1
# all times of the queue are ten times as long, so that none ends between two lines of a test.

mine=0123456789abcdef0123456789abcdef
yours=fedcba9876543210fedcba9876543210
third=33333333333333333333333333333333
export mine yours third

# script NAME: print a script as rlock sends it; SLOWLY makes all times of the queue longer.
script() {
    local lua=$ROOT/lib/lua
    awk -v form=lua -f "$lua/embed.awk" "$lua/reply_codes.tsv" "$lua/$1.lua" |
        sed "${SLOWLY:+/^local LIFE_MS, CLAIM_MS, ABSENT_MS/s/00,/000,/g}"
}

helper() { echo "{${2:-$KEY}}:rlock:$1"; }
FENCE() { helper fence; }
LINE() { helper queue; }
WAITERS() { helper waiters; }

lua() { # NAME ARGUMENT...
    local name=$1 key keys=()
    shift
    for key in "${LOCKS[@]:-$KEY}"; do
        keys+=("$key" "{$key}:rlock:"{fence,queue,waiters,holders,holder-info})
    done
    redis_cli eval "$(script "$name")" "${#keys[@]}" "${keys[@]}" "$@" | tr '\n' ' '
}

acquire() {
    # shellcheck disable=SC2086 # words
    lua acquire "$1" "$2" "${CARD:-pid=1}" "${3:-30000}" "${4:-0}" "${QUEUE:-try}" "${5:-}" \
        "${WANT:-x}" "${ONCE:-}" ${PARENTS:-}
}

renew() {
    local key each=()
    for key in "${LOCKS[@]:-$KEY}"; do each+=("$1" "${3:-30000}" "$2"); done
    lua renew "${4:-0}" pid=1 "${WANT:-x}" "${SLOT:-0}" "${each[@]}"
}

confirm() { lua confirm "$1" "$2" 30000 "${3:-$2}"; } # TOKEN FENCE [DRAWN]
release() { lua release "$1 " "$2" '' "${3:-}" "${4:-0}" pid=1; }
undo() { lua release "$1 v1 try=$2 " '' '' ''; }
leave() { lua release "$1 " '' "$1" ''; }
fence() { redis_cli get "$(helper fence "${1:-$KEY}")"; }
server_ms() { redis_cli eval 'local t = redis.call("TIME") return t[1] * 1000' 0; }

# Print all keys of the database with their values, and their expiry in units of 10 s, which is the
# same in a fast and in a slow test.
contents() {
    redis_cli eval 'local all, now = {}, redis.call("TIME")
        now = now[1] * 1000 + now[2] / 1000
        for _, key in ipairs(redis.call("KEYS", "*")) do
            local left = redis.call("PTTL", key)
            local ends = left < 0 and "never" or math.floor((now + left) / 10000)
            table.insert(all, key .. " " .. ends .. " " ..
                string.gsub(redis.call("DUMP", key), "[^%w]", "."))
        end
        table.sort(all)
        return all' 0
}

endless() {
    redis_cli eval 'local all = {}
        for _, key in ipairs(redis.call("KEYS", "*")) do
            if redis.call("PTTL", key) == -1 then table.insert(all, key) end
        end
        return all' 0
}
