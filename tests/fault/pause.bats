#!/usr/bin/env bats
# pause: --on-lost pause freezes the command in time, and resumes it only if rlock has the lock.
#
# The command has several processes. Some, the clocks, write the time to a file every 10 ms; one
# loops without end. While the command is paused, no clock may write, and no process may get a
# processor.

load ../helpers/common
load ../helpers/pty

setup() {
    common_setup
    redis_start
    export RLOCK_URL=unix://$REDIS_SOCKET DIR TOOLS
    # rlock kills what it can't freeze in time before the lease ends. A sanitized build on a busy
    # machine is slow, so it needs a longer lease.
    ttl=2
    ! is_sanitized || ttl=5
    export ttl
    write_command
}
teardown() {
    redis_continue # a failed test may have left the server stopped
    common_teardown
}

# ---- the command of the tests ----

# write_command: writes the command, a shell that prints 1, 2, 3 and so on. The shell has a child, a
# grandchild in its own session, a daemon, and a child that loops. The shell ends when the file
# $DIR/end is there, with the status that the file contains.
write_command() {
    cat >"$DIR/tree" <<'END'
"$TOOLS/hold_clock" "$DIR/clock.child" 10 &
(exec setsid "$TOOLS/hold_clock" "$DIR/clock.grandchild" 10) &
(setsid sh -c '"$TOOLS/hold_clock" "$DIR/clock.daemon" 10 & echo $! >"$DIR/daemon"' &)
# At the lowest priority: other tests run at the same time, and need the processors.
nice -n 19 sh -c 'while :; do :; done' &
echo $! >"$DIR/loop"
n=0
until [ -e "$DIR/end" ]; do
    echo $((n += 1))
    sleep 0.05
done
kill "$!" "$(cat "$DIR/daemon")"
exit "$(cat "$DIR/end")"
END
}

tree_runs() { [[ -s $DIR/clock.child && -s $DIR/clock.grandchild && -s $DIR/clock.daemon ]]; }

# start_tree [OPTION...]: starts rlock with the command of write_command; sets pid and guard.
start_tree() {
    rm -f "$DIR"/clock.*
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause "$@" -- sh "$DIR/tree"
    eventually 5 tree_runs
    guard=$(guard_of "$pid")
}

# end_command [STATUS]: makes the command end by itself, and waits for rlock.
end_command() {
    echo "${1:-0}" >"$DIR/end.new"
    mv "$DIR/end.new" "$DIR/end"
    finish tree
}

nothing_left() { [[ -z $(marked) ]]; }
# take_lock: gives a lock that is held to another program; fails if the lock is free.
take_lock() { [[ $(redis_cli set "$KEY" other XX) == OK ]]; }
key_is_free() { [[ $(redis_cli exists "$KEY") == 0 ]]; }
# has_message WHAT [N]: rlock has written N messages "rlock: KEY: WHAT: ...".
has_message() { (($(grep -c "^rlock: $KEY: $1: " "$DIR/tree.err") >= ${2:-1})); }

# ---- moments at which the command ran ----

# await_renewal: waits until the lease was renewed just now, so that the steps that follow are done
# before the next renewal. Sets lease_end_ms, on the clock of now_ms().
await_renewal() { eventually 5 is_fresh; }
is_fresh() {
    local before left
    before=$(now_ms)
    left=$(redis_cli pttl "$KEY")
    lease_end_ms=$((before + left))
    ((left > ttl * 900)) # 90 % of the TTL
}

wait_until_ms() { while (($(now_ms) < $1)); do sleep 0.02; done; }

# pause [N]: stops the server, and waits until rlock has paused the command for the Nth time, and
# the lease is over.
pause() {
    await_renewal
    redis_pause
    eventually 5 has_message paused "${1:-1}" || fail "rlock's messages:" "$(cat "$DIR/tree.err")"
    wait_until_ms "$lease_end_ms"
}

# resume [N]: lets the server answer again, and waits until rlock has resumed the command for the
# Nth time. Sets continued_ms, the time just before the server was continued.
resume() {
    continued_ms=$(now_ms)
    redis_continue
    eventually 5 has_message resumed "${1:-1}"
}

ran_between() { sort -n "$DIR"/clock.* | awk -v a="$1" -v b="$2" 'a <= $1 && $1 < b' | grep .; }
ran_since() { ran_between "$1" 9999999999999; }
assert_never_ran_again() { assert_none_ran "$lease_end_ms" 9999999999999; }
# assert_none_ran FROM_MS TO_MS: no clock (see above) has written a time between these two.
assert_none_ran() { ! ran_between "$1" "$2" || fail "the command ran between $1 and $2"; }

# processor_use: for each thread of the command, how long it has run, and how often it got a
# processor.
processor_use() {
    local task
    for task in $(marked); do
        [[ $task == "$pid" || $task == "$guard" ]] || cat \
            /proc/"$task"/task/*/schedstat <(cut -d ' ' -f 1,14,15 /proc/"$task"/task/*/stat) \
            <(grep ctxt /proc/"$task"/task/*/status)
    done
}

# assert_frozen: for 300 ms no thread of the command gets a processor.
assert_frozen() {
    local before end
    before=$(processor_use)
    end=$(($(now_ms) + 300))
    (($(grep -c nonvol <<<"$before") >= 5)) ||
        fail "the command has fewer than five threads:" "$(cat "$DIR/tree.err")"
    wait_until_ms "$end"
    assert_eq "$(processor_use)" "$before" 'how long the threads ran'
}

# assert_counted_all: the command has printed each number once, so the pause has undone no step.
assert_counted_all() {
    assert_eq "$output" "$(seq "$(tail -n 1 <<<"$output")")" 'the numbers that the command printed'
}

# only_rlock_is_left: at most one process that the test has started is left.
only_rlock_is_left() { [[ $(marked) != *$'\n'* ]]; }

# assert_ends_without_running SECONDS STATUS: the paused command ends within SECONDS, without
# running again, and then rlock ends with STATUS. A frozen process ends only if it is killed.
assert_ends_without_running() {
    local seconds
    busy_s seconds "$1"
    eventually "$seconds" only_rlock_is_left
    redis_continue
    finish tree
    assert_never_ran_again
    assert_status "$2"
    nothing_left
}

member() { grep -oE "\"$1\":[^,}]*" "$DIR/report" | cut -d : -f 2; }

# ---- who holds the lock when the server answers again ----

@test "pause: nobody else had the lock: the command runs on, and rlock passes on its status" {
    start_tree --report "$DIR/report"
    pause
    assert_frozen
    wait_until_ms $((lease_end_ms + 4000)) # so the server was stopped for about three TTLs
    resume
    eventually 5 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    end_command 0
    assert_status 0
    assert_counted_all
    assert_match "$stderr" "paused: no renewal was confirmed in time.*; the command goes on if"
    assert_match "$stderr" "resumed: after ([4-9]|[1-9][0-9])\.[0-9] s, as rlock still has the lock"
    refute_match "$stderr" ': lost: '
    assert_eq "$(member verdict)" '"granted"'
    assert_between "$(member paused_ms)" 4000 "$(member held_ms)" 'paused_ms'
    key_is_free
}

@test "pause: the command is paused and resumed twice, then rlock passes on its status" {
    local n
    start_tree
    for n in 1 2; do
        pause $n
        resume $n
        assert_none_ran "$lease_end_ms" "$continued_ms"
    done
    end_command 7
    assert_status 7
    assert_counted_all
}

# lose_lock_while_paused COMMAND...: pauses the command, and runs COMMAND, which takes the lock.
# rlock is stopped meanwhile, as it would renew first otherwise. Expects $lost as the reason in the
# message.
lose_lock_while_paused() {
    start_tree --report "$DIR/report"
    pause
    kill -STOP "$pid"
    redis_continue
    eventually 5 key_is_free
    "$@"
    assert_frozen
    kill -CONT "$pid"
    finish tree
    assert_never_ran_again
    assert_status 76
    assert_match "$stderr" "rlock: $KEY: lost: $lost; sh is being ended: KILL at "
    assert_eq "$(grep -c ': lost: ' <<<"$stderr")" 1
    assert_eq "$(member verdict)" '"lost"'
    nothing_left
}

@test "pause: another program has had the lock: the command is killed, status 76" {
    local lost='the server no longer has the lock'
    lose_lock_while_paused rlock -k "$KEY" -n -t 5 -- true
    key_is_free
}

@test "pause: another program has the lock, and keeps it: the command is killed, status 76" {
    local lost='the lock is held by another program .*'
    lose_lock_while_paused redis_cli set "$KEY" other NX PX 60000
    assert_eq "$(redis_cli get "$KEY")" other
    assert_between "$(redis_cli pttl "$KEY")" 50000 60000
}

@test "pause: the server restarts without its data: the command is killed, status 76" {
    start_tree
    await_renewal
    redis_crash
    eventually 5 has_message paused
    wait_until_ms "$lease_end_ms"
    assert_frozen
    redis_restart
    finish tree
    assert_never_ran_again
    assert_status 76
    nothing_left
}

@test "pause: a renewal finds the lock lost: the command gets TERM and is not paused, status 76" {
    start tree "$RLOCK" -k "$KEY" -t 3 --on-lost pause -- sh -c \
        'trap "echo TERM; exit 0" TERM; while :; do sleep 0.02; done'
    eventually 5 take_lock
    finish tree
    assert_status 76
    assert_eq "$output" TERM
    refute_match "$stderr" paused
}

# ---- rlock or its guard is killed or stopped while the command is paused ----

@test "pause: rlock is killed: the paused command ends within 1 s, without running again" {
    start_tree
    pause
    kill -KILL "$pid"
    assert_ends_without_running 1 137
}

@test "pause: the guard is killed: the paused command ends within 1 s, without running again" {
    start_tree
    pause
    kill -KILL "$guard"
    assert_ends_without_running 1 71
}

@test "pause: the guard is stopped: rlock kills the command, status 76 for a lost lock, else 71" {
    start_tree
    pause
    kill -STOP "$guard"
    redis_continue
    finish tree
    assert_never_ran_again
    assert_status 71
    assert_match "$stderr" 'guard-lost'
    nothing_left

    start_tree
    pause
    kill -STOP "$guard" "$pid"
    redis_continue
    eventually 5 key_is_free
    rlock -k "$KEY" -n -- true
    kill -CONT "$pid"
    finish tree
    assert_never_ran_again
    assert_status 76
    nothing_left
}

@test "pause: the guard is stopped before it can freeze: rlock kills the command, status 76" {
    start_tree
    await_renewal
    redis_pause
    kill -STOP "$guard"
    finish tree
    assert_never_ran_again
    assert_status 76
    redis_continue
    nothing_left
}

@test "pause: rlock is stopped beyond the lease: the guard freezes the command, CONT resumes it" {
    start_tree
    await_renewal
    kill -STOP "$pid"
    wait_until_ms "$lease_end_ms"
    assert_frozen
    continued_ms=$(now_ms)
    kill -CONT "$pid"
    eventually 5 has_message resumed
    eventually 5 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    end_command 0
    assert_status 0
    assert_counted_all
}

@test "pause: rlock and guard are stopped beyond the lease: the command ran, is killed, status 76" {
    start_tree
    kill -STOP "$pid" "$guard"
    eventually 5 key_is_free
    kill -CONT "$pid" "$guard"
    finish tree
    assert_status 76
    assert_match "$stderr" ': lost: '
    nothing_left
}

# ---- signals and forks while the command is paused ----

@test "pause: CONT from others resumes no process of the paused command" {
    start_tree
    pause
    local before
    before=$(processor_use)
    # shellcheck disable=SC2046
    kill -CONT -- $(marked) "-$pid"
    assert_eq "$(processor_use)" "$before" 'how long the threads ran'
    assert_frozen
    resume
    end_command 0
    assert_status 0
}

@test "pause: a process that was stopped before the pause is still stopped after it" {
    start_tree
    local loop
    loop=$(<"$DIR/loop")
    kill -STOP "$loop"
    eventually 5 stopped "$loop"
    pause
    resume
    eventually 5 ran_since "$continued_ms"
    eventually 5 stopped "$loop"
    never 1 has_state "$loop" R
    kill -CONT "$loop"
    eventually 5 has_state "$loop" R
    end_command 0
    assert_status 0
}

@test "pause: a signal that rlock passes on is delivered when the command is resumed" {
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause -- "$TOOLS/show_signals" -e 12 -s 9
    eventually 5 file_has "$DIR/tree.out" '^ready'
    pause
    kill -USR1 "$pid"
    never 1 file_has "$DIR/tree.out" USR1
    resume
    eventually 5 file_has "$DIR/tree.out" USR1
    kill -USR2 "$pid"
    finish tree
    assert_status 9
    assert_eq "$(grep -oE '[A-Z]+[0-9]* [0-9]+$' <<<"$output" | cut -d ' ' -f 1 | xargs)" \
        'USR1 USR2' 'the signals that the command got'
}

@test "pause: TERM and INT end the paused command without running it again, status 137" {
    local signal
    for signal in TERM INT; do
        start_tree --report "$DIR/report"
        pause
        kill "-$signal" "$pid"
        assert_ends_without_running 3 137
        assert_eq "$(member verdict)" '"granted"'
        eventually 5 key_is_free
    done
}

@test "pause: the command is killed: its processes end without running again, status 137" {
    start_tree
    pause
    kill -KILL "$(children "$guard" | head -n 1)"
    assert_ends_without_running 3 137
}

@test "pause: --max-hold is over: the paused command ends without running again, status 124" {
    start_tree --max-hold $((ttl * 3))
    pause
    assert_ends_without_running 5 124
}

# The command is three chains of processes: each process writes the time to a file, starts the next
# one in a new session, and exits.
@test "pause: a command whose processes fork and exit all the time is frozen and resumed" {
    local name generations
    cat >"$DIR/chains" <<'END'
[ ! -e "$DIR/end" ] || exit
[ "$1" -ne 0 ] || for head in 1 2; do setsid sh "$0" 1 & done
"$TOOLS/hold_clock" >>"$DIR/clock.chains"
setsid sh "$0" 1 &
END
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause --wait-all -- sh "$DIR/chains" 0
    eventually 5 file_has_lines "$DIR/clock.chains" 20
    pause
    resume
    eventually 5 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    end_command
    assert_status 0
}
file_has_lines() { (($(wc -l <"$1") >= $2)); }

@test "pause: the command is an rlock that has paused its own command: all are frozen and resumed" {
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause -- \
        "$RLOCK" -k "$KEY:inner" -t 1 --on-lost pause -- sh "$DIR/tree"
    eventually 5 tree_runs
    guard=$(guard_of "$pid")
    pause
    file_has "$DIR/tree.err" "^rlock: $KEY:inner: paused: "
    assert_frozen
    resume
    eventually 5 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    end_command 0
    assert_status 0
    assert_counted_all
}

@test "pause: rlock may not trace a process, and so not freeze it: the command is killed in time" {
    need strace
    start_tree
    start strace strace -o /dev/null -p "$(<"$DIR/loop")"
    eventually 5 file_has "$DIR/strace.err" attached
    await_renewal
    redis_pause
    finish tree
    assert_never_ran_again
    assert_status 76
    assert_match "$stderr" 'lost: .*the command could not be frozen: Operation not permitted'
    only_rlock_is_left
}

# ---- a process that waits in vfork(2) while the command ends ----

# start_vforker: starts rlock with a command that leaves a process behind, which waits in vfork(2).
# The process can't stop while it waits, and so the guard can't let it go. The output of rlock goes
# to a reader, `start output`, which ends at the end of that output. Sets pid, guard and command.
start_vforker() {
    export RLOCK KEY
    mkfifo "$DIR/fifo" "$DIR/output"
    cat >"$DIR/command" <<'END'
exec >"$DIR/command.out" 2>&1
"$TOOLS/vforker" "$DIR/fifo" "$DIR/vforker" &
until [ -e "$DIR/end" ]; do sleep 0.01; done
exit "$(cat "$DIR/end")"
END
    start output cat "$DIR/output"
    start tree sh -c 'exec "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause -- \
        sh "$DIR/command" >"$DIR/output"'
    eventually 5 file_has "$DIR/vforker" '^waits'
    guard=$(guard_of "$pid")
    command=$(children "$guard" | head -n 1)
}

# assert_vforker_lives_on: the process that waits in vfork(2) runs again when its child has ended,
# and then the guard ends, as it traces no process any more.
assert_vforker_lives_on() {
    timeout 5 sh -c ': >"$DIR/fifo"'
    eventually 5 file_has "$DIR/vforker" '^runs' || fail 'the process was killed'
    eventually 5 dead "$guard"
}

@test "pause: resumed, the command leaves a process in vfork(2): rlock exits, the process lives" {
    start_vforker
    pause
    resume
    end_command 7
    assert_status 7
    key_is_free
    finish output
    assert_vforker_lives_on
}

@test "pause: the command has left a process in vfork(2), rlock is killed: the process lives" {
    start_vforker
    pause
    resume
    await_renewal
    redis_pause # so rlock waits for the reply to its release
    echo 0 >"$DIR/end.new"
    mv "$DIR/end.new" "$DIR/end"
    eventually 5 is_reaped "$command"
    kill -KILL "$pid"
    finish tree
    assert_status 137
    finish output
    assert_vforker_lives_on
}
is_reaped() { [[ ! -e /proc/$1 ]]; }

# ---- a pause at a terminal ----

# pty_job: starts a shell at a terminal, and in it rlock with a clock as its command.
pty_job() {
    local clock='"$TOOLS/hold_clock" "$DIR/clock.job" 10'

    pty_start
    pty_type '"$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause -- '"$clock"
    eventually 5 test -s "$DIR/clock.job"
}

pty_stop() {
    pty_key C-z
    pty_expect 5 'Stopped'
    pty_prompt
}

# pty_assert_runs_again: waits until rlock has resumed the command $clock, which then goes on to
# write the time. Ends the command and the shell that runs in the terminal.
pty_assert_runs_again() {
    pty_expect 5 'resumed: after'
    eventually 5 ran_since "$continued_ms"
    pty_key C-c
    pty_prompt
    pty_end
}

@test "pause: ^Z until the lease is over, then fg: the command runs on where it was" {
    pty_job
    pty_stop
    eventually 5 key_is_free
    continued_ms=$(now_ms)
    pty_type 'fg'
    pty_assert_runs_again
}

@test "pause: ^Z and fg while the command is paused do not resume it" {
    pty_job
    await_renewal
    redis_pause
    pty_expect 5 'paused: '
    wait_until_ms "$lease_end_ms"
    pty_stop
    pty_type 'fg'
    pty_expect 5 'RLOCK' # the shell prints the job that it continues
    never 1 ran_since "$lease_end_ms"
    continued_ms=$(now_ms)
    redis_continue
    pty_assert_runs_again
}
