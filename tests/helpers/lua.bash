# shellcheck shell=bash
# lua: runs single scripts of lib/lua by redis-cli, and prints each reply as one line of words.
# lib/lua/NAME.lua explains the arguments of the script NAME; undo and leave call release.lua. A
# variable that is set for a call is passed as another argument of the script.
#
#     acquire TOKEN ATTEMPT [TTL [NOT_AFTER [TICKET]]]
#                     QUEUE is passed as POLICY (default: try), WANT as MODE (default: x), ONCE as
#                     UNLESS_DONE, PARENTS as the PARENT tokens, HOLDER_INFO as INFO
#     renew TOKEN FENCE [TTL [NOT_AFTER]]
#                     WANT is passed as MODE, SLOT as SLOT
#     release TOKEN FENCE [ENDING STAY]
#     undo TOKEN ATTEMPT
#     leave TOKEN
#     confirm TOKEN FENCE [DRAWN]
#     fence [KEY]     prints the last fence of the lock
#     helper KIND [KEY]
#                     prints the name of the helper key
#     contents        prints all keys of the database, their values and expiry
#     endless         prints the keys that never expire
#
# The lock is KEY. For several locks LOCKS is an array of their keys. mine, yours and third are
# tokens. With SLOWLY=1 all times of the queue are ten times as long, so that none of them ends
# between two lines of a test.

mine=0123456789abcdef0123456789abcdef
yours=fedcba9876543210fedcba9876543210
third=33333333333333333333333333333333
export mine yours third

# script NAME: print the text of the script as rlock sends it, with longer times if SLOWLY is set.
script() {
    local lua=$ROOT/lib/lua
    awk -v form=lua -f "$lua/embed.awk" "$lua/reply_codes.tsv" "$lua/$1.lua" |
        sed "${SLOWLY:+/^local LIFE_MS, CLAIM_MS, ABSENT_MS/s/00,/000,/g}"
}

helper() { echo "{${2:-$KEY}}:rlock:$1"; }
FENCE() { helper fence; }
LINE() { helper queue; }
WAITERS() { helper waiters; }

# lua NAME ARG...: run the script on the locks, with these ARGV.
lua() {
    local name=$1 key keys=()
    shift
    for key in "${LOCKS[@]:-$KEY}"; do
        keys+=("$key" "{$key}:rlock:"{fence,queue,waiters,holders,holder-info})
    done
    redis_cli eval "$(script "$name")" "${#keys[@]}" "${keys[@]}" "$@" | tr '\n' ' '
}

acquire() {
    # shellcheck disable=SC2086 # PARENTS is several words
    lua acquire "$1" "$2" "${HOLDER_INFO:-pid=1}" "${3:-30000}" "${4:-0}" "${QUEUE:-try}" "${5:-}" \
        "${WANT:-x}" "${ONCE:-}" ${PARENTS:-}
}

renew() {
    local key each=()
    for key in "${LOCKS[@]:-$KEY}"; do each+=("$1" "${3:-30000}" "$2"); done
    lua renew "${4:-0}" pid=1 "${WANT:-x}" "${SLOT:-0}" "${each[@]}"
}

confirm() { lua confirm "$1" "$2" 30000 "${3:-$2}"; }
release() { lua release "$1 " "$2" '' "${3:-}" "${4:-0}" pid=1; }
undo() { lua release "$1 v1 try=$2 " '' '' ''; }
leave() { lua release "$1 " '' "$1" ''; }
fence() { redis_cli get "$(helper fence "${1:-$KEY}")"; }
server_ms() { redis_cli eval 'local t = redis.call("TIME") return t[1] * 1000' 0; }

# contents: print all keys of the database with their values and their time of expiry. The time is
# in units of 10 s, so that two calls print the same text unless a test changed the keys.
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
