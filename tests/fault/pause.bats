#!/usr/bin/env bats
# pause: --on-lost pause freezes the command in time, and resumes it only if rlock has the lock.
#
# The command has several processes. Some, the clocks, write the time to a file every 10 ms; in one
# test a process loops without end. While the command is paused, no clock may write, and no process
# may get a processor.

load ../helpers/common
load ../helpers/pty

setup() {
    common_setup
    redis_start
    export RLOCK_URL=unix://$REDIS_SOCKET ttl=4 # the lease ends in most of these tests
    need_cgroup
    write_command
}
teardown() {
    redis_continue # a failed test may have left the server stopped
    common_teardown
}

# ---- the command of the tests ----

# write_command: writes the command, a shell that prints 1, 2, 3 and so on. The shell has a child, a
# grandchild in its own session, a daemon, a child that waits in vfork(2), and another child, which
# loops if $LOOPS is set. The shell ends when the file $DIR/end is there, with the status that the
# file contains.
write_command() {
    cat >"$DIR/tree" <<'END'
"$TOOLS/hold_clock" "$DIR/clock.child" 10 &
(exec setsid "$TOOLS/hold_clock" "$DIR/clock.grandchild" 10) &
"$TOOLS/vforker" "$DIR/fifo" "$DIR/vforker" &
(setsid sh -c '"$TOOLS/hold_clock" "$DIR/clock.daemon" 10 & echo $! >"$DIR/daemon"' &)
if [ -n "$LOOPS" ]; then sh -c 'while :; do :; done' & else sleep 600 & fi
echo $! >"$DIR/other"
n=0
echo $$ >"$DIR/main"
until [ -e "$DIR/end" ]; do
    echo $((n += 1))
    sleep 0.05
done
kill "$(cat "$DIR/other")" "$(cat "$DIR/daemon")"
: >"$DIR/fifo"
exit "$(cat "$DIR/end")"
END
}

tree_runs() {
    [[ -s $DIR/clock.child && -s $DIR/clock.grandchild && -s $DIR/clock.daemon && -s $DIR/vforker ]]
}

# start_tree [OPTION...]: starts rlock with the command of write_command; sets pid and guard.
start_tree() {
    [[ -p $DIR/fifo ]] || mkfifo "$DIR/fifo"
    rm -f "$DIR"/clock.*
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause "$@" -- sh "$DIR/tree"
    eventually 20 tree_runs
    guard=$(guard_of "$pid")
}

# end_command [STATUS]: makes the command end by itself, and waits for rlock.
end_command() {
    echo "${1:-0}" >"$DIR/end.new"
    mv "$DIR/end.new" "$DIR/end"
    finish tree
}

nothing_left() { [[ -z $(marked) ]]; }
# has_message WHAT [N]: rlock has written N messages "rlock: KEY: WHAT: ...".
has_message() { (($(grep -c "^rlock: $KEY: $1: " "$DIR/tree.err") >= ${2:-1})); }

# ---- moments at which the command ran ----

# await_renewal: waits until the lease was renewed just now, so that the steps that follow are done
# before the next renewal. Sets lease_end_ms, on the clock of now_ms().
await_renewal() { eventually 20 is_fresh; }
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
    eventually 20 has_message paused "${1:-1}" || fail "rlock's messages:" "$(cat "$DIR/tree.err")"
    wait_until_ms "$lease_end_ms"
}

# resume [N]: lets the server answer again, and waits until rlock has resumed the command for the
# Nth time. Sets continued_ms, the time just before the server was continued.
resume() {
    continued_ms=$(now_ms)
    redis_continue
    eventually 20 has_message resumed "${1:-1}"
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
    local other before
    start_tree --report "$DIR/report"
    other=$(<"$DIR/other")
    kill -STOP "$other" # stopped before the pause, so it is still stopped after it
    pause
    before=$(processor_use)
    # shellcheck disable=SC2046
    kill -CONT -- $(marked | grep -vx "$other") # CONT from others resumes no frozen process
    assert_eq "$(processor_use)" "$before" 'how long the threads ran'
    assert_frozen
    resume
    eventually 20 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    stopped "$other"
    pause 2
    resume 2
    assert_none_ran "$lease_end_ms" "$continued_ms"
    kill -CONT "$other"
    end_command 7
    assert_status 7
    assert_counted_all
    eventually 20 file_has "$DIR/vforker" '^runs'
    assert_match "$stderr" "paused: no renewal was confirmed in time.*; the command goes on if"
    assert_match "$stderr" "resumed: after [1-9][0-9]*\.[0-9] s, as rlock still has the lock"
    refute_match "$stderr" ': lost: '
    assert_eq "$(member verdict)" '"granted"'
    assert_between "$(member paused_ms)" 1000 "$(member held_ms)" 'paused_ms'
    gone "$KEY"
}

# rlock is stopped while the other program takes the lock, as it would renew first otherwise.
@test "pause: another program has had the lock: the command is killed, status 76" {
    export LOOPS=1
    start_tree --report "$DIR/report"
    pause
    stop "$pid"
    redis_continue
    eventually 20 gone "$KEY"
    rlock -k "$KEY" -n -t 5 -- true
    assert_frozen
    kill -CONT "$pid"
    finish tree
    assert_never_ran_again
    assert_status 76
    assert_match "$stderr" \
        "rlock: $KEY: lost: the server no longer has the lock; sh is being ended: KILL at "
    assert_eq "$(grep -c ': lost: ' <<<"$stderr")" 1
    assert_eq "$(member verdict)" '"lost"'
    nothing_left
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

@test "pause: rlock and guard are killed: the command stays frozen until the next rlock kills it" {
    start_tree
    pause
    kill -STOP "$guard" # else it might still kill the command
    kill -KILL "$pid" "$guard"
    finish tree
    eventually 20 dead "$(<"$DIR/main")" # it gets KILL when its parent, the guard, ends
    redis_continue
    assert_frozen
    rlock -k "$KEY" --cgroup -- true
    eventually 20 nothing_left
    assert_never_ran_again
}

@test "pause: the guard is stopped, no server: TERM ends the paused command, status 71" {
    start_tree
    pause
    kill -STOP "$guard"
    kill -TERM "$pid"
    finish tree 60 # rlock asks the guard twice, for 5 s each
    redis_continue
    assert_never_ran_again
    assert_status 71
    assert_match "$stderr" 'guard-lost'
    nothing_left
}

@test "pause: rlock is stopped beyond the lease: the guard freezes the command, CONT resumes it" {
    start_tree
    await_renewal
    stop "$pid"
    wait_until_ms "$lease_end_ms"
    assert_frozen
    continued_ms=$(now_ms)
    kill -CONT "$pid"
    eventually 20 has_message resumed
    eventually 20 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    end_command 0
    assert_status 0
    assert_counted_all
}

# ---- what else can happen to a paused command ----

@test "pause: TERM ends the paused command without running it again, status 137" {
    start_tree --report "$DIR/report"
    pause
    kill -TERM "$pid"
    assert_ends_without_running 3 137
    assert_eq "$(member verdict)" '"granted"'
    eventually 20 gone "$KEY"
}

@test "pause: a process has left the control group: the command is killed in time, status 76" {
    start_tree
    echo "$(<"$DIR/other")" >"$(cgroup_of "$pid")/cgroup.procs"
    await_renewal
    redis_pause
    finish tree
    assert_never_ran_again
    assert_status 76
    assert_match "$stderr" 'lost: .*, and the command could not be frozen in time'
    redis_continue
    nothing_left
}

@test "pause: the command is an rlock that has paused its own command: all are frozen and resumed" {
    mkfifo "$DIR/fifo"
    start tree "$RLOCK" -k "$KEY" -t 6 --on-lost pause -- \
        "$RLOCK" -k "$KEY:inner" -t "$ttl" --on-lost pause -- sh "$DIR/tree"
    eventually 20 tree_runs
    guard=$(guard_of "$pid")
    ttl=6
    pause
    assert_frozen
    resume
    eventually 20 ran_since "$continued_ms"
    assert_none_ran "$lease_end_ms" "$continued_ms"
    end_command 0
    assert_status 0
    assert_counted_all
}

@test "pause: ^Z until the lease is over, then fg: the command runs on where it was" {
    local clock='"$TOOLS/hold_clock" "$DIR/clock.job" 10'
    pty_start
    pty_type '"$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause -- '"$clock"
    eventually 20 test -s "$DIR/clock.job"
    pty_key C-z
    pty_expect 20 'Stopped'
    pty_prompt
    eventually 20 gone "$KEY"
    continued_ms=$(now_ms)
    pty_type 'fg'
    pty_expect 20 'resumed: after'
    eventually 20 ran_since "$continued_ms"
    pty_key C-c
    pty_prompt
    pty_end
}
