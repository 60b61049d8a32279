# shellcheck shell=bash
# lua: runs single scripts of lib/lua by redis-cli, and prints each reply as one line of words.
# lib/lua/NAME.lua explains the arguments of the script NAME; undo and leave call release.lua. A
# test sets further arguments of a script by variables of the same names.
#
#     acquire TOKEN ATTEMPT [TTL [NOT_AFTER [TICKET]]]
#                     variables: POLICY (default: try), MODE (default: x), UNLESS_DONE,
#                     HOLDER_INFO (the script's INFO), HISTORY_SIZE (the script's HISTORY),
#                     PARENTS (the PARENT tokens)
#     release TOKEN FENCE [ENDING STAY]
#                     variable: ENDED
#     undo TOKEN ATTEMPT
#     leave TOKEN
#     fence [KEY]     prints the last fence of the lock
#     key_of KIND [KEY]
#                     prints the name of the lock's helper key of this kind: fence, queue, ...
#     contents        prints all keys of the database, their values and expiry
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
    local text
    redis_script "$1"
    [[ -z ${SLOWLY:-} ]] ||
        text=$(sed '/^local LIFE_MS,CLAIM_MS,ABSENT_MS,/s/00,/000,/g' <<<"$text")
    printf '%s' "$text"
}

key_of() { echo "{${2:-$KEY}}:rlock:$1"; }

# lua NAME ARG...: run the script NAME on the lock KEY, or on all locks in LOCKS, with these ARGV.
lua() {
    local name=$1 key keys=() reply
    shift
    for key in "${LOCKS[@]:-$KEY}"; do
        keys+=("$key" "{$key}:rlock:"{fence,queue,waiters,holders,holder-info,history,wake:})
    done
    reply=$(redis_cli eval "$(script "$name")" "${#keys[@]}" "${keys[@]}" "$@" || :
        echo .) # keeps the empty lines at the end
    reply=${reply%.}
    printf '%s' "${reply//$'\n'/ }"
}

# As requests_acquire() does, this leaves out the last arguments of a first attempt if they are the
# usual ones. The usual grant then returns the fence alone, which is also the time: this function
# prints it as "1 NOW FENCE ".
acquire() {
    local reply rest=()
    [[ -z ${HISTORY_SIZE:-} ]] || rest=("$HISTORY_SIZE")
    # shellcheck disable=SC2206 # PARENTS is several words
    [[ $2 == 1 && ${4:-0}${5:-}${MODE:-x}${UNLESS_DONE:-}${PARENTS:-} == 0x ]] ||
        rest=("${HISTORY_SIZE:-}" "${4:-0}" "${5:-}" "${MODE:-x}" "${UNLESS_DONE:-}" ${PARENTS:-})
    reply=$(lua acquire "$1 v1 try=$2 ttl=${3:-30000} ${HOLDER_INFO:-pid=1}" "${3:-30000}" \
        "${POLICY:-try}" "${rest[@]}")
    [[ ! $reply =~ ^[0-9]{16}\ $ ]] || reply="1 ${reply:0:13} $reply"
    printf '%s' "$reply"
}

release() { lua release "$1 " "$2" "${ENDED:-}" '' "${3:-}" "${4:-0}" pid=1; }
undo() { lua release "$1 v1 try=$2 " ''; }
leave() { lua release "$1 " '' '' "$1"; }
fence() { redis_cli get "$(key_of fence "${1:-$KEY}")"; }
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
