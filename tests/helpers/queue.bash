# shellcheck shell=bash
# queue: starts waiters for one lock, and checks in which order they got the lock.
#
#     queue_setup                    in setup(): empty the server, and write the command that each
#                                    waiter runs; it takes TURN_S seconds, 0.005 by default
#     waiter NUMBER OPTION...        start an rlock that waits for the lock
#     queue_up N OPTION...           start waiters 1 to N, each when the one before has queued
#     joins NUMBER OPTION...         start a waiter; return when it is the last in the queue.
#                                    Unlike queue_up, works while other waiters leave the queue
#     all_end STATUS NUMBER...       wait for these waiters, and check that they exit with STATUS
#     served / served_all N          print who had the lock, in order / true if N have had it
#     assert_order NUMBER...         check that these waiters had the lock in this order, and that
#                                    no two commands ran at the same time
#     assert_alone                   check that no two commands ran at the same time
#     assert_clean                   check that no key is left but the last fence, which expires
#     started_ms NUMBER              print when the waiter's command started

queue_setup() {
    export DIR
    LINE="{$KEY}:rlock:queue"
    redis_cli flushall >/dev/null
    # The command writes down its waiter's number, the start time, and whether another command runs
    # at the same time. /proc/uptime shows the clock that rlock uses.
    cat >"$DIR/turn" <<'TURN'
exec 9>>"$DIR/alone"
flock -n 9 || echo "$1" >>"$DIR/overlaps"
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/served"
exec sleep "${TURN_S:-0.005}"
TURN
    : >"$DIR/served"
}

in_line() { [[ $(redis_cli zcard "$LINE") == "$1" ]]; }

waiter() {
    local number=$1
    shift
    start "w$number" "$RLOCK" -k "$KEY" "$@" -- sh "$DIR/turn" "$number"
}

queue_up() {
    local n=$1 each
    shift
    for ((each = 1; each <= n; each++)); do
        waiter "$each" "$@"
        eventually 10 in_line "$each" || return 1
    done
}

all_end() {
    local wanted=$1 each
    shift
    for each; do
        finish "w$each" 30 || fail "waiter $each; served: $(served)" || return 1
        assert_status "$wanted" || return 1
    done
}

pid_of() { cat "$DIR/pids/w$1"; }
served() { cut -d' ' -f1 "$DIR/served" | tr '\n' ' '; }
served_all() { (($(wc -l <"$DIR/served") >= $1)); }
assert_alone() { [[ ! -e $DIR/overlaps ]] || fail "not alone: $(<"$DIR/overlaps")"; }
assert_order() {
    assert_eq "$(served)" "$* " 'order of service' && assert_alone
}

started_ms() { awk -v n="$1" '$1 == n { printf "%d\n", $2 * 1000 }' "$DIR/served"; }

assert_clean() {
    assert_eq "$(redis_cli --scan)" "{$KEY}:rlock:fence" 'keys left'
    assert_between "$(ttl_ms "{$KEY}:rlock:fence")" 1 604800000 'its PTTL'
}

joins() {
    local last
    last=$(redis_cli zrange "$LINE" -1 -1)
    waiter "$@"
    eventually 10 is_last_other_than "$last"
}
is_last_other_than() {
    local last
    last=$(redis_cli zrange "$LINE" -1 -1)
    [[ -n $last && $last != "$1" ]]
}
