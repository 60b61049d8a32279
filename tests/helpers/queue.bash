# shellcheck shell=bash
# queue: waiters of one lock, and in which order they were served.
#
#     queue_setup                    in setup(): an empty server, and a turn for each waiter; it
#                                    takes TURN_S seconds, 0.005 if not said
#     waiter NUMBER OPTION...        one more that waits for its turn
#     queue_up N OPTION...           waiters 1 to N, each in line before the next one starts
#     joins NUMBER OPTION...         one more, where others may leave the line meanwhile
#     all_end STATUS NUMBER...       waits for these waiters, who end so
#     served / served_all N          who was, in this order / have so many been?
#     assert_order NUMBER...         these were, in this order, nobody else, each alone
#     assert_alone / assert_clean    no two at a time / no key but the last fence, which expires
#     started_ms NUMBER              when its command did
#     longest_stall_ms DEAD...       between two turns, beyond what the dead in between may cost

queue_setup() {
    export DIR
    LINE="{$KEY}:rlock:queue"
    redis_cli flushall >/dev/null
    # A turn: who it was and when, and whether it was alone. /proc/uptime counts as rlock does.
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

# longest_stall_ms DEAD...: ms by which a gap between two turns is longer than 1 s for each of the
# dead that stood between them in line.
longest_stall_ms() {
    awk -v dead=" $* " '{
        gap = $2 * 1000 - at
        for (i = before + 1; i < $1; i++)
            if (index(dead, " " i " ")) gap -= 1000
        if (NR > 1 && gap > most) most = gap
        before = $1; at = $2 * 1000
    } END { printf "%d\n", most }' "$DIR/served"
}
