# shellcheck shell=bash
# pids: for tests that start thousands of processes. A process that has ended keeps its pid until
# its parent has reaped it. Such tests could use up all pids of the machine, and then no other
# program could start a process.
#
#     pids_setup          waits until init has reaped the processes of earlier tests, and makes a
#                         cgroup of at most 4,000 processes, if the machine lets the test make one
#     pids_teardown       removes this cgroup
#     start_limited NAME COMMAND...
#                         runs the command in the background, as `start` does, but in this cgroup

pids_setup() {
    until_reaped
    PIDS=/sys/fs/cgroup/pids/rlock-test-$BASHPID
    mkdir "$PIDS" 2>/dev/null || PIDS=
}

pids_teardown() {
    [[ -z ${PIDS:-} ]] || rmdir "$PIDS" || :
}

# until_reaped: waits until init has reaped nearly all processes that have ended. After a minute the
# test begins nevertheless: the processes may have a parent that never reaps them.
until_reaped() {
    local end=$((SECONDS + 60))
    until few_zombies || ((SECONDS >= end)); do sleep 0.1; done
}

# If no pid is left for ps, few_zombies fails as well.
few_zombies() {
    local states
    states=$(ps -eo stat=) && (($(grep -c '^Z' <<<"$states") < 100))
}

start_limited() {
    local name=$1
    shift
    start "$name" sh -c '[ -z "$0" ] || {
        echo 4000 >"$0/pids.max" && echo $$ >"$0/cgroup.procs"; }; exec "$@"' "$PIDS" "$@"
}
