#!/usr/bin/env bats
# containers: rlock as process 1 of a container, in a PID namespace of its own. recipes.bats stops
# such a container by TERM.

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

@test "process 1: rlock reaps what the command's children leave behind" {
    # 50 processes whose parent has ended become children of process 1: none stays a zombie.
    # shellcheck disable=SC2016
    run -7 as_process_1 -t 5 -- sh -c '
        for i in $(seq 50); do (sleep 0.05 & :); done
        end=$(($(date +%s) + 10))
        while grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null ||
            pgrep -x sleep; do [ "$(date +%s)" -lt "$end" ] || exit 9; done >/dev/null
        exit 7'
}
