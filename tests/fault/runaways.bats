#!/usr/bin/env bats
# runaways: rlock ends chains of processes that fork and exit as fast as they can, to get away.
#
# run: alone
# bats file_tags=long
#
# Each test starts chains of one kind, and has them ended in three ways: the guard is killed, rlock
# is killed, the lock is lost. RLOCK_TEST_RUNS is the number of runs for each way, RLOCK_TEST_HEADS
# are the numbers of chains that the runs take in turn. The defaults, 1 and '1 12', are quick; 50
# and '1 2 4 8 16 32 64' are a thorough test. A chain that gets away ends by itself after 6 s, so
# its end comes later than the test allows.

load ../helpers/common
load ../helpers/server

# A cgroup of at most 4,000 processes, if the machine lets us make one: else the chains could use up
# all pids of the machine. start_limited starts a command in this cgroup.
setup() {
    server_setup
    PIDS=/sys/fs/cgroup/pids/rlock-test-$BASHPID
    mkdir "$PIDS" 2>/dev/null || PIDS=
}
teardown() {
    common_teardown
    [[ -z ${PIDS:-} ]] || rmdir "$PIDS" || :
}

start_limited() {
    local name=$1
    shift
    start "$name" sh -c '[ -z "$0" ] || {
        echo 4000 >"$0/pids.max" && echo $$ >"$0/cgroup.procs"; }; exec "$@"' "$PIDS" "$@"
}

# last_ms: prints when a process of the command `runaway` last ran, on the clock of now_ms().
last_ms() {
    local last
    last=$("$TOOLS/runaway" last "$DIR/shown")
    echo "${last% *}"
}
# has_started_at_least N: true if the command `runaway` has started N processes so far.
has_started_at_least() {
    local last
    [[ -s $DIR/shown ]] && last=$("$TOOLS/runaway" last "$DIR/shown") && ((${last#* } >= $1))
}

# none_runs_any_more: no process of the chains has run for 300 ms.
none_runs_any_more() {
    local before
    before=$(last_ms)
    rest 0.3
    [[ $(last_ms) == "$before" ]]
}

# run_away KIND HEADS guard|program|lock: starts HEADS chains under rlock, then kills the guard,
# kills rlock or takes the lock away, and checks when the last process of the chains ran.
run_away() {
    local begin_ms limit_ms
    rm -f "$DIR/shown"
    start_limited away "$RLOCK" -k "$KEY" -t 3 -- "$TOOLS/runaway" "$1" "$2" 6 "$DIR/shown"
    eventually 10 has_started_at_least 100
    begin_ms=$(now_ms)
    # limit_ms: how long a chain may run after rlock or its guard was killed. An idle machine needs
    # at most 1 s to end all chains. By themselves the chains run for 6 s.
    limit_ms=2500
    case $3 in
    guard) kill -KILL "$(guard_of "$pid")" ;;
    program) kill -KILL "$pid" ;;
    lock)
        redis_cli set "$KEY" other PX 4000
        limit_ms=3000 # the TTL: the lease ends no later
        ;;
    esac
    finish away 15
    [[ $3 != program ]] || eventually 15 none_runs_any_more
    echo "# $* $(($(last_ms) - begin_ms)) ms" >&3
    is_sanitized ||
        assert_between $(($(last_ms) - begin_ms)) -6000 "$limit_ms" "ms until the end, $*" ||
        return 1
    eventually 2 none_runs_any_more
    redis_cli del "$KEY"
}

# each_end KIND: calls run_away RLOCK_TEST_RUNS times for each way to have the chains ended: guard,
# program and lock.
each_end() {
    local what run turn=0 heads=(1 12)
    ! is_sanitized || heads=(1) # no times are compared in such a build: one chain is enough
    [[ -z ${RLOCK_TEST_HEADS:-} ]] || read -ra heads <<<"$RLOCK_TEST_HEADS"
    for what in guard program lock; do
        for ((run = 0; run < ${RLOCK_TEST_RUNS:-1}; run++)); do
            run_away "$1" "${heads[turn++ % ${#heads[@]}]}" "$what" || return 1
        done
    done
}

@test "runaways that use fork(2) are ended" { each_end fork; }
@test "runaways that use fork(2), each in its own session, are ended" { each_end setsid-fork; }
@test "runaways that use fork(2), each in its own group, are ended" { each_end setpgid-fork; }
@test "runaways that use vfork(2) and execve(2) are ended" { each_end vfork; }
@test "runaways that use vfork(2) and execve(2), each in its own session, are ended" {
    each_end setsid-vfork
}
@test "runaways that use clone(2) with shared memory are ended" { each_end clone; }
@test "runaways that use clone(2) with shared memory, each in its own session, are ended" {
    each_end setsid-clone
}
