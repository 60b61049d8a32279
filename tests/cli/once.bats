#!/usr/bin/env bats
# once: work that is marked as done isn't repeated; and a lock is kept for a minimum time.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    need python3
}

# jobs N OPTION... -- COMMAND...: starts N rlocks at the same moment, each with --json.
jobs() {
    local n=$1 each
    shift
    for ((each = 1; each <= n; each++)); do
        start "j$each" "$RLOCK" --json -k "$KEY" --report "$DIR/report.$each" "$@"
    done
}

# count FILES REGEX: prints how many lines of the files match.
count() { cat "$DIR"/$1 | grep -cE "$2"; }

# ---- --once ----

# bats test_tags=long
@test "--once: of 50 rlocks one runs the command; all exit with 0, and the others name that one" {
    local n each
    n=$(is_sanitized && echo 20 || echo 50)
    redis_cli set "$KEY" other px 60000 >/dev/null
    # shellcheck disable=SC2016
    jobs "$n" --once 1h --label one -- sh -c 'echo $PPID >>"$DIR/ran"; sleep 0.1'
    eventually 10 in_line "$n"
    redis_cli del "$KEY" >/dev/null
    for ((each = 1; each <= n; each++)); do
        ended 0 "j$each"
    done
    assert_eq "$(wc -l <"$DIR/ran")" 1 runs
    assert_eq "$(count 'report.*' '"verdict":"granted","status":0')" 1 granted
    assert_eq "$(count 'report.*' '"verdict":"done","status":0')" $((n - 1)) 'done'
    assert_between "$(ttl_ms "$KEY")" 3500000 3600000
    cat "$DIR"/j*.err >"$DIR/told"
    assert_valid "$DIR/told"
    assert_eq "$(count told '"event":"done".*"mode":"done".*"done_by":.*"label":"one"')" $((n - 1))
    run -0 --separate-stderr rlock -k "$KEY" --once 1s -n -- touch "$DIR/again"
    assert_line "^rlock: $KEY: done: by sh of .* \(one\), at 20[0-9-]*T[0-9:]*[+-][0-9:]{5}$"
    [[ ! -e $DIR/again ]]
    run -75 rlock -q -n -k "$KEY" -- true # for an rlock without --once the lock is taken
}

@test "only status 0 marks the work as done: no signal, loss, --max-hold or missing command does" {
    run -137 rlock -k "$KEY" --once 1m -- sh -c 'kill -9 $$'
    run -124 rlock -q -k "$KEY" --once 1m --max-hold 0.1 -- sleep 20
    run -127 rlock -q -k "$KEY" --once 1m --min-hold 1m -- "$DIR/none"
    run -76 rlock -q -k "$KEY" --once 1m -c "$(asking) del '$KEY'"
    hold worker -k "$KEY" --once 1m
    kill -TERM "$(<"$DIR/pids/worker")"
    ended 143 worker
    assert_only_fences
    run -0 rlock -k "$KEY" --once 1s -- true
    run -0 --separate-stderr rlock -k "$KEY" -w 10 -- touch "$DIR/ran"
    [[ -e $DIR/ran ]] # the mark has expired, so the command ran
}

# ---- --min-hold ----

# measure_rest OPTION...: runs a command of 10 ms with --min-hold 2. rlock must end with its
# command. Then starts an rlock that waits for the same lock. Sets RESTED to the time in ms from the
# start of the first rlock until the second is granted the lock.
measure_rest() {
    local from
    from=$(now_ms)
    run -3 --separate-stderr rlock -k "$KEY" --min-hold 2 "$@" -- sh -c 'sleep 0.01; exit 3'
    start next "$RLOCK" -k "$KEY" "$@" -- "$TOOLS/hold_clock"
    ended 0 next
    # shellcheck disable=SC2034
    RESTED=$((output - from))
}

@test "--min-hold: rlock ends with its command, but the key stays, and the next rlock waits" {
    local ttl
    for ttl in 1 30; do
        measure_rest -t "$ttl"
        assert_between "$RESTED" 1990 $((2300 + SLACK)) 'ms until the next rlock had the lock'
    done
    run -0 rlock -k "$KEY" --min-hold 2 -- sleep 0.01
    assert_between "$(ttl_ms "$KEY")" 1 2000 'ms until the key expires'
    eventually 5 assert_only_fences
}

@test "--min-hold keeps the lock after a signal, but not after a loss or KILL" {
    hold job -k "$KEY" --min-hold 1m
    kill -TERM "$(<"$DIR/pids/job")"
    ended 143 job
    assert_match "$(value "$KEY")" '^0{32} v1 mode=rest .*command=sh '
    assert_between "$(ttl_ms "$KEY")" 50000 60000
    redis_cli set "$KEY" other px 60000 >/dev/null
    hold job -k "$KEY:2" --min-hold 1m -t 4
    redis_cli set "$KEY:2" other px 60000 >/dev/null
    ended 76 job
    assert_eq "$(value "$KEY:2")" other
    hold job -k "$KEY:3" --min-hold 1m -t 3
    kill -KILL "$(<"$DIR/pids/job")"
    eventually 5 gone "$KEY:3"
    run -0 rlock -k "$KEY:5" --min-hold 0.1 -- sleep 0.2
    gone "$KEY:5"
}
