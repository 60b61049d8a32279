# shellcheck shell=bash
# hold: a command that holds a lock until it is told to end.
#
#     hold NAME OPTION...        start rlock with these options; returns when its command runs
#     let_go NAME [STATUS]       let that command end with STATUS, and wait until rlock has ended
#     guard_of PID               print the pid of the guard of that rlock
#     assert_turns NUMBER        wait for w1 to wNUMBER; each has added 1 to $DIR/sum, in order
#     env_of NAME VARIABLE       print a variable of that command's environment
#     exists KEY / gone KEY      true if the server has the key / doesn't have it
#     value KEY / ttl_ms KEY     print the key's value / its time to live in ms
#     asking                     print a redis-cli command line, for a shell that rlock runs
#     assert_line REGEX          check that stderr is exactly one line, which matches
#     without_leaks COMMAND...   run without leak detection, which fails under strace or without
#                                free descriptors

hold() {
    local name=$1
    shift
    rm -f "$DIR/$name".*
    mkfifo "$DIR/$name.go"
    # by cat, as the shell itself changes its environment
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
gone() { ! exists "$1"; }
asking() { echo "$(type -p redis-cli || type -p valkey-cli) -s '$REDIS_SOCKET'"; }
value() { redis_cli get "$1"; }
ttl_ms() { redis_cli pttl "$1"; }

assert_line() {
    [[ -n $stderr && $stderr != *$'\n'* ]] || fail "not one line:" "$stderr"
    assert_match "$stderr" "$1" "the line"
}

without_leaks() { ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$@"; }
