#!/usr/bin/env bats
# queue: waiters are served first come, first served, whatever happens to other waiters.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    # The command of each waiter writes down the waiter's number, the start time on the clock that
    # rlock uses, and whether another command runs at the same time.
    cat >"$DIR/turn" <<'TURN'
exec 9>>"$DIR/alone"
flock -n 9 || echo "$1" >>"$DIR/overlaps"
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/served"
exec sleep 0.005
TURN
    : >"$DIR/served"
}

waiter() { start "w$1" "$RLOCK" -k "$KEY" "${@:2}" -- sh "$DIR/turn" "$1"; } # NUMBER OPTION...
pid_of() { cat "$DIR/pids/w$1"; }

# queue_up N OPTION...: starts waiters 1 to N, each when the one before has queued.
queue_up() {
    local each
    for ((each = 1; each <= $1; each++)); do
        waiter "$each" "${@:2}"
        eventually 10 in_line "$each" || return 1
    done
}

# joins NUMBER OPTION...: starts a waiter, and returns when it is the last in the queue. Unlike
# queue_up, it works while other waiters leave the queue.
joins() {
    local last
    last=$(last_in_line)
    waiter "$@"
    eventually 10 is_last_other_than "$last"
}
last_in_line() { redis_cli zrange "{$KEY}:rlock:queue" -1 -1; }
is_last_other_than() { [[ $(last_in_line) != @("$1"|'') ]]; }

# all_end STATUS NUMBER...: waits for these waiters, and checks that they exit with STATUS.
all_end() {
    local each
    for each in "${@:2}"; do
        ended "$1" "w$each" 30 || fail "waiter $each; served: $(served)" || return 1
    done
}

served() { cut -d' ' -f1 "$DIR/served" | tr '\n' ' '; }
served_all() { (($(wc -l <"$DIR/served") >= $1)); }
started_ms() { awk -v n="$1" '$1 == n { printf "%d\n", $2 * 1000 }' "$DIR/served"; }

# assert_order NUMBER...: these waiters had the lock in this order, and one at a time.
assert_order() {
    assert_eq "$(served)" "$* " 'order of service'
    [[ ! -e $DIR/overlaps ]] || fail "not alone: $(<"$DIR/overlaps")"
}

# heartbeats FROM: prints about how many heartbeats the waiters have sent. From the time FROM (in
# ms) until it is served, each waiter sends two heartbeats in 15 s.
heartbeats() {
    awk -v from="$1" '{ n += 2 * ($2 * 1000 - from) / 15000 } END { printf "%d\n", n }' \
        "$DIR/served"
}

requests() { # requests: prints how many requests of waiters the server has executed so far
    redis_cli info commandstats |
        awk -F '[=,]' '/^cmdstat_(eval|evalsha|blpop):/ { n += $2 } END { print n + 0 }'
}

# bats test_tags=long
@test "many waiters are served in order, one at a time, at a few requests for each" {
    local n=300 before from per
    ! is_sanitized || n=20
    hold holder -k "$KEY"
    queue_up "$n"
    before=$(requests)
    from=$(now_ms)
    let_go holder
    # shellcheck disable=SC2046
    all_end 0 $(seq "$n")
    # Without the heartbeats, which another test limits, and with the two requests of the last
    # release, which wakes no waiter.
    per=$((($(requests) - before + 2 - $(heartbeats "$from")) * 100 / n))
    is_sanitized || assert_between "$per" 200 800 'requests per grant, in hundredths'
    # shellcheck disable=SC2046
    assert_order $(seq "$n")
    assert_only_fences
}

@test "when the holder is killed, the first waiter starts as soon as the lease has ended" {
    local lease_end
    hold holder -k "$KEY" -t 2
    queue_up 2
    kill -KILL "$(<"$DIR/pids/holder")"
    lease_end=$(($(now_ms) + $(ttl_ms "$KEY")))
    all_end 0 1 2
    assert_order 1 2
    assert_between $(($(started_ms 1) - lease_end)) -20 $((300 + SLACK)) 'ms after the lease'
}

@test "another program's lock is waited for and not overwritten, and its DEL is noticed" {
    local from
    from=$(now_ms)
    redis_cli set "$KEY" foreign nx px 4000 >/dev/null
    queue_up 2
    while exists "$KEY" && (($(now_ms) < from + 2000)); do
        assert_eq "$(value "$KEY")" foreign
    done
    all_end 0 1 2
    assert_order 1 2
    assert_between $(($(started_ms 1) - from)) 3990 $((4300 + SLACK)) \
        "ms from before the other program's SET"

    redis_cli set "$KEY" foreign nx px 60000 >/dev/null
    queue_up 1
    from=$(now_ms)
    redis_cli del "$KEY" >/dev/null
    all_end 0 1
    assert_between $(($(awk 'END { printf "%d", $2 * 1000 }' "$DIR/served") - from)) \
        0 $((400 + SLACK)) 'ms from the DEL'
    assert_only_fences
}

@test "a waiter keeps its place after CONT, WINCH and a short stop" {
    local before
    hold holder -k "$KEY"
    queue_up 2
    before=$(redis_cli zrange "{$KEY}:rlock:queue" 0 -1)
    kill -CONT "$(pid_of 1)"
    kill -WINCH "$(pid_of 1)"
    never 1 line_is_not "$before"
    kill -STOP "$(pid_of 1)"
    eventually 5 stopped "$(pid_of 1)"
    kill -CONT "$(pid_of 1)"
    never 1 line_is_not "$before"
    let_go holder
    all_end 0 1 2
    assert_order 1 2
    assert_only_fences
}
line_is_not() { [[ $(redis_cli zrange "{$KEY}:rlock:queue" 0 -1) != "$1" ]]; }

@test "--queue none: a waiter joins no queue" {
    redis_cli set "$KEY" other PX 60000
    redis_cli config resetstat
    run -75 --separate-stderr rlock --queue none -w 2 -k "$KEY" -- true
    assert_line ': timeout: '
    refute_match "$(redis_cli info commandstats)" 'cmdstat_(zadd|blpop)'
}

@test "--queue newest: a newer waiter ends the older with 75 or -E's status, but no fifo waiters" {
    hold holder -k "$KEY"
    queue_up 1
    waiter 2 --queue newest --report "$DIR/report"
    eventually 5 in_line 2
    joins 3 --queue newest -E 9
    all_end 75 2
    assert_match "$(<"$DIR/report")" '"verdict":"superseded","status":75'
    joins 4 --queue newest
    all_end 9 3
    in_line 2
    joins 5
    let_go holder
    all_end 0 1 4 5
    assert_order 1 4 5
    assert_only_fences
}

@test "the server restarts without its data while rlocks wait: they keep their order" {
    redis_start empty
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_cli set "$KEY" foreign >/dev/null
    queue_up 5
    redis_crash
    never 1 served_all 1 # the server stays away for a second
    redis_restart
    all_end 0 {1..5}
    assert_order {1..5}
    assert_only_fences
}
