#!/usr/bin/env bats
# guards: who is next in line has its guard ready, whatever becomes of that before its start.

load ../helpers/common
load ../helpers/redis
load ../helpers/hold

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}
teardown() { common_teardown; }

# wait_for_turn NAME OPTION...: waits behind the holder; sets pid, and guard once it is there.
wait_for_turn() {
    local name=$1
    shift
    start "$name" "$RLOCK" -k "$KEY" "$@" -- sh -c 'echo ran; exit 7'
    eventually 5 has_guard "$pid"
    guard=$(guard_of "$pid")
}

has_guard() { [[ -n $(guard_of "$1") ]]; }
lacks_guard() { [[ -z $(guard_of "$1") ]]; }
in_line() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }

@test "who is next in line has a guard ready, who is further behind has none" {
    local pids=()
    hold holder -k "$KEY"
    for n in 1 2 3; do
        start "w$n" "$RLOCK" -k "$KEY" -- true
        pids[n]=$pid
        eventually 5 in_line "$n"
    done
    eventually 5 has_guard "${pids[1]}"
    eventually 5 has_guard "${pids[2]}"
    eventually 5 lacks_guard "${pids[3]}"
    kill -TERM "${pids[1]}" "${pids[2]}"
    finish w1
    finish w2
    let_go holder
    finish w3
    assert_status 0
    assert_eq "$(marked)" '' 'processes that are left'
}

@test "KILL of the guard before its start: another one takes its place" {
    hold holder -k "$KEY"
    wait_for_turn waiter
    kill -KILL "$guard"
    let_go holder
    finish waiter
    assert_status 7
    assert_eq "$output" ran
    assert_eq "$stderr" ''
}

@test "STOP of the guard before its start: the command is not started after the lease, 76" {
    hold holder -k "$KEY"
    wait_for_turn waiter -t 1
    kill -STOP "$guard"
    let_go holder
    finish waiter
    assert_status 76
    assert_eq "$output" ''
    assert_match "$stderr" 'lost: '
    assert_eq "$(marked)" '' 'processes that are left'
}

@test "STOP of the guard before its start, and time is over or a signal comes: no hang, 75 or 143" {
    hold holder -k "$KEY"
    wait_for_turn late -w 1
    kill -STOP "$guard"
    finish late 10
    assert_status 75
    wait_for_turn ended
    kill -STOP "$guard"
    kill -TERM "$pid"
    finish ended 10
    assert_status 143
    assert_eq "$(guard_of "$pid")" ''
}

@test "KILL of one who waits ends its guard, and its place in line is free" {
    hold holder -k "$KEY"
    wait_for_turn waiter
    kill -KILL "$pid"
    eventually 5 dead "$guard"
    let_go holder
    start next "$RLOCK" -k "$KEY" -w 5 -- true
    finish next
    assert_status 0
}
