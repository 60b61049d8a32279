#!/usr/bin/env bats
# guards: who is next in line has its guard ready, whatever becomes of that before its start.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}

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

# ---- what the guard and the program hear of each other ----

# deaf HOW PID: the next time that this process receives something, that happens instead; sets
# `injector`. What it is attached to goes on when it has ended.
deaf() {
    strace -qq -o "$DIR/trace" -e trace=recvfrom -e "inject=recvfrom:$1:when=1" -p "$2" 3>&- &
    injector=$!
    echo "$injector" >"$DIR/pids/injector"
    eventually 5 is_traced "$2"
}
is_traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$1/status"; }
injected() { file_has "$DIR/trace" INJECTED; }

# run_deaf HOW WHO OPTION...: a job that lasts for longer than its lease, of which WHO (program or
# guard) receives that once.
run_deaf() {
    local how=$1 who=$2
    shift 2
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 start job "$RLOCK" -k "$KEY" -t 1 "$@" -- \
        sh -c 'echo runs; read -r _ <"$0"; exit 6' "$DIR/go"
    eventually 5 file_has "$DIR/job.out" runs
    [[ $who == program ]] && deaf "$how" "$pid" || deaf "$how" "$(guard_of "$pid")"
}

@test "one EIO where guard or program listens: nothing is lost by it, and nobody is ended" {
    need strace
    local who
    mkfifo "$DIR/go"
    for who in guard program; do
        run_deaf error=EIO "$who"
        eventually 5 injected
        never 2 dead "$pid" # the lease is renewed over it
        timeout 10 tee "$DIR/go" <<<'' >/dev/null
        finish job
        assert_status 6
        assert_eq "$stderr" ''
        rm "$DIR/trace"
    done
    assert_eq "$(marked)" '' 'processes that are left'
}

@test "a command that the guard killed is never told as one that ended by itself: 76, and why" {
    need strace
    mkfifo "$DIR/go"
    run_deaf retval=0 guard --report "$DIR/report"
    finish job
    injected || fail 'nothing was injected'
    assert_status 76
    assert_line "^rlock: $KEY: lost: the guard took rlock for dead, and ended the command$"
    assert_match "$(<"$DIR/report")" '^\{"verdict":"lost","status":76,'
    gone "$KEY"
}

@test "what is said of a guard that fails is what is known: killed, stopped, or silent" {
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

# A message may wait 200 ms for whoever reads stderr, and only half a margin of the lease is left.
@test "a guard that is stopped: the command is ended first, and then that is told" {
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
