#!/usr/bin/env bats
# containers: rlock as process 1 of a container, in a PID namespace of its own.

load ../helpers/common

setup() {
    common_setup
    redis_start
    export RLOCK_URL=unix://$REDIS_SOCKET
    ((EUID == 0)) || skip 'only root can make a PID namespace'
    need unshare
}

# as_process_1 OPTION...: runs rlock as process 1 of a new PID namespace, which has its own /proc.
as_process_1() {
    "${AS_PROCESS_1[@]}" "$RLOCK" -k "$KEY" "$@" 3>&-
}

@test "process 1: rlock runs the command, passes its status on, and releases the lock" {
    run -3 as_process_1 -t 5 -- sh -c 'cat /proc/1/comm; exit 3'
    assert_eq "$output" "${RLOCK##*/}"
    assert_eq "$(redis_cli exists "$KEY")" 0 'keys of the lock that are left'
}

# process_1: prints the pid, outside of the namespace, of the rlock that start ran as process 1.
process_1() {
    local its_pid
    for its_pid in $(descendants "$pid"); do
        [[ $(awk '/^NSpid:/ { print $3 }' "/proc/$its_pid/status") != 1 ]] || echo "$its_pid"
    done
}
term_process_1() {
    # shellcheck disable=SC2016
    start rlock as_process_1 -t 30 -- sh -c "$1; echo ready; while :; do sleep 0.1; done"
    eventually 10 file_has "$DIR/rlock.out" ready
    kill -TERM "$(process_1)"
    finish rlock
    assert_eq "$(redis_cli exists "$KEY")" 0 'keys of the lock that are left'
}

@test "process 1: a command that cleans up after TERM may finish, and its status is returned" {
    term_process_1 'trap "echo cleaned up; exit 7" TERM'
    assert_eq "$status" 7
    file_has "$DIR/rlock.out" 'cleaned up' || fail 'the command got no TERM'
}

@test "process 1: rlock reaps what the command's children leave behind" {
    # 50 processes whose parent has ended become children of process 1: none stays a zombie.
    # shellcheck disable=SC2016
    run -0 as_process_1 -t 5 -- sh -c '
        for i in $(seq 50); do (sleep 0.05 & :); done
        end=$(($(date +%s) + 10))
        while grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null ||
            pgrep -x sleep; do [ "$(date +%s)" -lt "$end" ] || exit 9; done >/dev/null'
}

@test "process 1: when the lock is lost, rlock ends the command, and the status is 76" {
    start rlock as_process_1 -t 3 -- sleep 60
    eventually 10 exists "$KEY"
    redis_cli set "$KEY" another >/dev/null
    finish rlock
    assert_eq "$status" 76
}
