# shellcheck shell=bash
# hold: a command that holds a lock until it is told to end.
#
#     hold NAME OPTION...        start rlock with these options; returns when its command runs
#     let_go NAME [STATUS]       end the command of `hold NAME` with STATUS, wait until rlock ends
#     let_pass NAME [STATUS]     the same, and check that rlock ends with STATUS
#     guard_of PID               print the pid of the guard of the rlock with this PID
#     assert_turns NUMBER        wait for the rlocks w1 to wNUMBER, whose command is `turn
#                                $DIR/sum N`; check that each ran once, in this order
#     env_of NAME VARIABLE       print a variable that the command of `hold NAME` received
#     exists KEY / gone KEY      true if the server has the key / doesn't have it
#     in_line N [KEY]            true if N waiters are in the queue of KEY
#     queued NAME ARG...         start an rlock for $KEY with these arguments; returns when it has
#                                joined the queue
#     waits                      true if a client of the server waits, or a script runs
#     assert_only_fences         check that no key is left but the fences, and that these expire
#     value KEY / ttl_ms KEY     print the key's value / its time to live in ms
#     asking                     print `redis-cli -s SOCKET` for the server in use, for a script
#     assert_line REGEX          check that $stderr is exactly one line, and matches REGEX

hold() {
    local name=$1
    shift
    rm -f "$DIR/$name".*
    mkfifo "$DIR/$name.go"
    # cat reads the environment that rlock gave the shell: `env` would also print what sh changed
    start "$name" "$RLOCK" "$@" -- sh -c 'cat "/proc/$$/environ" >"$0.env"; echo running
        read -r status <"$0.go"; exit "$status"' "$DIR/$name"
    eventually 10 file_has "$DIR/$name.out" '^running$' || fail "$(cat "$DIR/$name.err")"
}

guard_of() {
    local child name
    for child in $(children "$1"); do
        read -r name <"/proc/$child/comm"
        [[ $name != rlock-guard ]] || echo "$child"
    done
}

let_go() {
    timeout 10 tee "$DIR/$1.go" <<<"${2:-0}" >/dev/null
    finish "$1"
}

let_pass() { let_go "$@" && assert_status "${2:-0}"; }

assert_turns() {
    local each
    for ((each = 1; each <= $1; each++)); do
        finish "w$each" 20
        assert_status 0 || return 1
    done
    assert_eq "$(<"$DIR/sum")" "$1" 'turns taken' &&
        assert_eq "$(xargs <"$DIR/sum.names")" "$(seq -s ' ' "$1")" 'order of service'
}

env_of() {
    local entry
    while IFS= read -rd '' entry; do
        [[ $entry != "$2="* ]] || printf '%s\n' "${entry#*=}"
    done <"$DIR/$1.env"
}

exists() { [[ $(redis_cli exists "$1") == 1 ]]; }
gone() { [[ $(redis_cli exists "$1") == 0 ]]; }
asking() { echo "$(type -p redis-cli || type -p valkey-cli) -s '$REDIS_SOCKET'"; }
in_line() { [[ $(redis_cli zcard "{${2:-$KEY}}:rlock:queue") == "$1" ]]; }
queued() {
    local before
    before=$(redis_cli zcard "{$KEY}:rlock:queue")
    start "$1" "$RLOCK" -k "$KEY" "${@:2}"
    eventually 10 in_line $((before + 1))
}
waits() { redis_cli client list | grep -Eq 'cmd=(eval|evalsha|blpop) '; }
assert_only_fences() {
    local key
    for key in $(redis_cli --scan); do
        assert_match "$key" ':rlock:fence$' 'a key that is left'
        assert_between "$(ttl_ms "$key")" 1 604800000 'its PTTL'
    done
}
value() { redis_cli get "$1"; }
ttl_ms() { redis_cli pttl "$1"; }

assert_line() {
    [[ -n $stderr && $stderr != *$'\n'* ]] || fail "not one line:" "$stderr"
    assert_match "$stderr" "$1" "the line"
}
