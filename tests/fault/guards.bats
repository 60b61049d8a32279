#!/usr/bin/env bats
# guards: the first waiters start a guard in advance, and it is killed or stopped before the grant.
# In tests/fault/processes.bats the command runs; tests/inject fails the guard's system calls.

load ../helpers/common
load ../helpers/server

# wait_with_guard NAME OPTION...: starts an rlock that waits for the lock; returns when it has a
# guard. Sets pid and guard.
wait_with_guard() {
    local name=$1
    shift
    start "$name" "$RLOCK" -k "$KEY" "$@" -- sh -c 'echo ran; exit 7'
    eventually 10 has_guard "$pid"
    guard=$(guard_of "$pid")
}

has_guard() { [[ -n $(guard_of "$1") ]]; }

@test "a waiter's guard is killed: another guard starts the command" {
    hold holder -k "$KEY"
    wait_with_guard waiter
    kill -KILL "$guard"
    let_go holder
    ended 7 waiter
    assert_eq "$output" ran
    assert_eq "$stderr" ''
}

@test "a waiter's guard is stopped: the command is not started after the lease, status 76" {
    hold holder -k "$KEY"
    wait_with_guard waiter -t 3
    kill -STOP "$guard"
    let_go holder
    ended 76 waiter 30
    assert_eq "$output" ''
    assert_match "$stderr" 'lost: '
    assert_eq "$(marked)" '' 'processes that are left'
}

@test "a waiter's guard is stopped: the waiter still ends, by -w with 75 or by TERM with 143" {
    hold holder -k "$KEY"
    wait_with_guard late -w 3
    kill -STOP "$guard"
    ended 75 late 10
    wait_with_guard ended
    kill -STOP "$guard"
    kill -TERM "$pid"
    ended 143 ended 10
    assert_eq "$(guard_of "$pid")" ''
}

@test "a waiter is killed: its guard ends, and the next waiter gets the lock" {
    hold holder -k "$KEY"
    wait_with_guard waiter
    kill -KILL "$pid"
    eventually 10 dead "$guard"
    let_go holder
    start next "$RLOCK" -k "$KEY" -w 60 -- true
    ended 0 next
}
