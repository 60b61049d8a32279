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

# process_1: prints the pid, outside of the namespace, of the rlock that start ran as process 1.
process_1() {
    local its_pid
    for its_pid in $(descendants "$pid"); do
        [[ $(awk '/^NSpid:/ { print $3 }' "/proc/$its_pid/status") != 1 ]] || echo "$its_pid"
    done
}
@test "process 1: a command that cleans up after TERM may finish, and its status is returned" {
    # shellcheck disable=SC2016
    start rlock as_process_1 -t 30 -- sh -c 'trap "echo cleaned up; exit 7" TERM
        echo ready; while :; do sleep 0.1; done'
    eventually 10 file_has "$DIR/rlock.out" ready
    kill -TERM "$(process_1)"
    ended 7 rlock
    gone "$KEY"
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
