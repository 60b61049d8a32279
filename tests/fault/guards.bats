#!/usr/bin/env bats
# guards: the first waiters start a guard in advance; a guard is killed, stopped, or fails to read.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}

# wait_with_guard NAME OPTION...: starts an rlock that waits for the lock; returns when it has a
# guard. Sets pid and guard.
wait_with_guard() {
    local name=$1
    shift
    start "$name" "$RLOCK" -k "$KEY" "$@" -- sh -c 'echo ran; exit 7'
    eventually 5 has_guard "$pid"
    guard=$(guard_of "$pid")
}

has_guard() { [[ -n $(guard_of "$1") ]]; }
lacks_guard() { [[ -z $(guard_of "$1") ]]; }
queue_has() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }

@test "the first two waiters of the queue have a guard ready, the third has none" {
    local pids=()
    hold holder -k "$KEY"
    for n in 1 2 3; do
        start "w$n" "$RLOCK" -k "$KEY" -- true
        pids[n]=$pid
        eventually 5 queue_has "$n"
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

@test "a waiter's guard is killed: another guard starts the command" {
    hold holder -k "$KEY"
    wait_with_guard waiter
    kill -KILL "$guard"
    let_go holder
    finish waiter
    assert_status 7
    assert_eq "$output" ran
    assert_eq "$stderr" ''
}

@test "a waiter's guard is stopped: the command is not started after the lease, status 76" {
    hold holder -k "$KEY"
    wait_with_guard waiter -t 1
    kill -STOP "$guard"
    let_go holder
    finish waiter
    assert_status 76
    assert_eq "$output" ''
    assert_match "$stderr" 'lost: '
    assert_eq "$(marked)" '' 'processes that are left'
}

@test "a waiter's guard is stopped: the waiter still ends, by -w with 75 or by TERM with 143" {
    hold holder -k "$KEY"
    wait_with_guard late -w 1
    kill -STOP "$guard"
    finish late 10
    assert_status 75
    wait_with_guard ended
    kill -STOP "$guard"
    kill -TERM "$pid"
    finish ended 10
    assert_status 143
    assert_eq "$(guard_of "$pid")" ''
}

@test "a waiter is killed: its guard ends, and the next waiter gets the lock" {
    hold holder -k "$KEY"
    wait_with_guard waiter
    kill -KILL "$pid"
    eventually 5 dead "$guard"
    let_go holder
    start next "$RLOCK" -k "$KEY" -w 5 -- true
    finish next
    assert_status 0
}

# ---- messages between the guard and the program ----

# inject_into_recv HOW PID: attaches strace to process PID. strace replaces the next recvfrom(2) of
# the process by HOW, such as error=EIO or retval=0 (end of file). Sets `injector` to the pid of
# strace. When strace is ended, the process runs on.
inject_into_recv() {
    strace -qq -o "$DIR/trace" -e trace=recvfrom -e "inject=recvfrom:$1:when=1" -p "$2" 3>&- &
    injector=$!
    echo "$injector" >"$DIR/pids/injector"
    eventually 5 is_traced "$2"
}
is_traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$1/status"; }
has_injected() { file_has "$DIR/trace" INJECTED; }

# run_with_injection HOW WHO OPTION...: starts rlock with a command that runs until the test writes
# to $DIR/go. WHO, program or guard, is the process whose next recvfrom(2) ends as HOW says.
run_with_injection() {
    local how=$1 who=$2
    shift 2
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 start job "$RLOCK" -k "$KEY" -t 1 "$@" -- \
        sh -c 'echo runs; read -r _ <"$0"; exit 6' "$DIR/go"
    eventually 5 file_has "$DIR/job.out" runs
    [[ $who == program ]] && inject_into_recv "$how" "$pid" ||
        inject_into_recv "$how" "$(guard_of "$pid")"
}

@test "one recvfrom(2) of rlock's guard or main process fails with EIO: the command runs on" {
    need strace
    local who
    mkfifo "$DIR/go"
    for who in guard program; do
        run_with_injection error=EIO "$who"
        eventually 5 has_injected
        never 2 dead "$pid" # the TTL is 1 s: rlock has renewed the lease after the error
        timeout 10 tee "$DIR/go" <<<'' >/dev/null
        finish job
        assert_status 6
        assert_eq "$stderr" ''
        rm "$DIR/trace"
    done
    assert_eq "$(marked)" '' 'processes that are left'
}

@test "the guard reads a false end of file and kills the command: a message says so, status 76" {
    need strace
    mkfifo "$DIR/go"
    run_with_injection retval=0 guard --report "$DIR/report"
    finish job
    has_injected || fail 'strace has injected nothing'
    assert_status 76
    assert_line "^rlock: $KEY: lost: the process that guards the command took rlock for dead, "
    assert_match "$(<"$DIR/report")" '^\{"verdict":"lost","status":76,'
    gone "$KEY"
}

@test "the message about a lost guard says whether the guard was killed or is stopped" {
    local said="rlock: $KEY: guard-lost: the process that guards the command"
    start job "$RLOCK" -k "$KEY" -- sleep 30
    eventually 5 has_guard "$pid"
    eventually 5 has_command "$pid"
    kill -KILL "$(guard_of "$pid")"
    finish job
    assert_status 71
    assert_match "$stderr" "$said was ended by signal 9 \(Killed\); the command was ended"
    start job "$RLOCK" -k "$KEY" -t 1 -- sleep 30
    eventually 5 has_guard "$pid"
    eventually 5 has_command "$pid"
    kill -STOP "$(guard_of "$pid")"
    finish job
    assert_status 76
    assert_match "$stderr" "$said does not answer: it is stopped; the command was ended"
    assert_eq "$(marked)" '' 'processes that are left'
}
has_command() { [[ -n $(children "$(guard_of "$1")") ]]; }

# To end what is left, rlock reads its children in /proc. The renewer's connection must not take the
# last descriptor for that.
@test "the guard is killed while few descriptors are free: nothing of the command runs on" {
    local limit
    for limit in {10..16}; do
        start job bash -c 'ulimit -n "$0"; exec "$@"' "$limit" "$RLOCK" -k "$KEY$limit" -- \
            sh -c 'setsid sleep 60 & echo up; sleep 60; true'
        eventually 5 has_renewer_or_ended "$pid"
        ! dead "$pid" || continue
        kill -KILL "$(guard_of "$pid")"
        finish job
        assert_status 71
        assert_eq "$(marked)" '' "processes that are left, limit $limit"
    done
    ((limit == 16 && status == 71)) || fail "rlock never ran: $(cat "$DIR/job.err")"
}
has_renewer_or_ended() {
    dead "$1" || { file_has "$DIR/job.out" '^up$' &&
        { has_threads "$1" 2 || file_has "$DIR/job.err" 'renewal-failed'; }; }
}
has_threads() {
    local threads=("/proc/$1/task/"*)
    ((${#threads[@]} >= $2))
}

# rlock kills the command itself if the guard has not killed it when half of the time between KILL
# and the end of the lease is over. rlock may wait 200 ms for the reader of its stderr, so it must
# not write the message before it has killed the command.
@test "the guard is stopped: rlock ends the command first, and writes its message afterwards" {
    need strace
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
        start job "$RLOCK" -k "$KEY" -t 1 -- sleep 30
    eventually 5 has_guard "$pid"
    eventually 5 has_command "$pid"
    strace -qq -s 200 -o "$DIR/trace" -e trace=kill,write -p "$pid" 3>&- &
    echo $! >"$DIR/pids/tracer"
    eventually 5 is_traced "$pid"
    kill -STOP "$(guard_of "$pid")"
    finish job
    assert_status 76
    assert_match "$(grep -oE -m1 'SIGKILL|guard-lost: ' "$DIR/trace")" '^SIGKILL'
    assert_match "$stderr" 'guard-lost: '
}
