# shellcheck shell=bash
# hold: a command that holds a lock until it is told to end.
#
#     hold NAME OPTION...        rlock with these options; returns when its command runs
#     let_go NAME [STATUS]       ends that command with STATUS; the rest is `finish`
#     guard_of PID               the guard of that rlock
#     assert_turns NUMBER        w1 to wNUMBER end well, after a turn each on $DIR/sum, in order
#     env_of NAME VARIABLE       from the environment of that command
#     exists KEY / gone KEY / value KEY / ttl_ms KEY     as the server sees it
#     asking                     redis_cli, as words for a shell that rlock runs
#     assert_line REGEX          stderr is exactly one line, and it matches
#     without_leaks COMMAND...   for what leak detection can't bear: strace, few descriptors

hold() {
    local name=$1
    shift
    rm -f "$DIR/$name".*
    mkfifo "$DIR/$name.go"
    # the shell itself would tidy its environment up
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
