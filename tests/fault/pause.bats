#!/usr/bin/env bats
# pause: a command that is frozen when its lease can't be confirmed runs never without the lock.
#
# The tree of each command has clocks that write down when they run, and a loop that never waits.
# While it is paused none of them may write, and none may have been given a processor.

load ../helpers/common
load ../helpers/pty

setup() {
    common_setup
    redis_start
    export RLOCK_URL=unix://$REDIS_SOCKET DIR TOOLS
    # What can't be frozen in the last moments of its lease is killed, as it must be. A sanitized
    # build on a busy machine needs a longer lease to be frozen in time.
    ttl=2
    ! is_sanitized || ttl=5
    export ttl
    write_tree
}
teardown() {
    redis_continue # whatever went wrong while it was stopped
    common_teardown
}

# ---- a command ----

# A shell that counts, with a child, a grandchild in a session of its own, a daemon that forked
# twice and a loop. It ends with the status it finds in the file `end`.
write_tree() {
    cat >"$DIR/tree" <<'END'
"$TOOLS/hold_clock" "$DIR/clock.child" 10 &
(exec setsid "$TOOLS/hold_clock" "$DIR/clock.grandchild" 10) &
(setsid sh -c '"$TOOLS/hold_clock" "$DIR/clock.daemon" 10 & echo $! >"$DIR/daemon"' &)
(while :; do :; done) &
echo $! >"$DIR/loop"
n=0
until [ -e "$DIR/end" ]; do
    echo $((n += 1))
    sleep 0.01
done
kill "$!" "$(cat "$DIR/daemon")"
exit "$(cat "$DIR/end")"
END
}

tree_runs() { [[ -s $DIR/clock.child && -s $DIR/clock.grandchild && -s $DIR/clock.daemon ]]; }

# start_tree [OPTION...]: rlock with that command; sets pid and guard.
start_tree() {
    rm -f "$DIR"/clock.*
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause "$@" -- sh "$DIR/tree"
    eventually 5 tree_runs
    guard=$(guard_of "$pid")
}

let_end() { # [STATUS]: the command, by itself
    echo "${1:-0}" >"$DIR/end.new"
    mv "$DIR/end.new" "$DIR/end"
    finish tree
}

nothing_left() { [[ -z $(marked) ]]; }
is_taken_over() { [[ $(redis_cli set "$KEY" other XX) == OK ]]; } # once it is held
key_is_free() { [[ $(redis_cli exists "$KEY") == 0 ]]; }
said() { (($(grep -c "^rlock: $KEY: $1: " "$DIR/tree.err") >= ${2:-1})); }

# ---- time ----

# Sets lease_end, on the clock of the stamps. The next renewal is far enough away for what comes
# now to happen before it.
fresh_lease() { eventually 5 is_fresh; }
is_fresh() {
    local before left
    before=$(now_ms)
    left=$(redis_cli pttl "$KEY")
    lease_end=$((before + left))
    ((left > ttl * 900)) # 90 % of it
}

wait_until_ms() { while (($(now_ms) < $1)); do sleep 0.02; done; }

# pause [N]: the server stops, and the command is paused, for the Nth time.
pause() {
    fresh_lease
    redis_pause
    eventually 5 said paused "${1:-1}" || fail "rlock said:" "$(cat "$DIR/tree.err")"
    wait_until_ms "$lease_end"
}

# resume [N]: the server answers, and the command goes on; sets continued.
resume() {
    continued=$(now_ms)
    redis_continue
    eventually 5 said resumed "${1:-1}"
}

ran_between() { sort -n "$DIR"/clock.* | awk -v a="$1" -v b="$2" 'a <= $1 && $1 < b' | grep .; }
ran_since() { ran_between "$1" 9999999999999; }
never_ran() { assert_still "$lease_end" 9999999999999; }
assert_still() { ! ran_between "$1" "$2" || fail "ran between $1 and $2"; } # FROM TO

# What each thread of the tree has used of a processor, and how often it was given one.
usage() {
    local task
    for task in $(marked); do
        [[ $task == "$pid" || $task == "$guard" ]] || cat \
            /proc/"$task"/task/*/schedstat <(cut -d ' ' -f 1,14,15 /proc/"$task"/task/*/stat) \
            <(grep ctxt /proc/"$task"/task/*/status)
    done
}

# assert_frozen: for a while nothing of the tree is given a processor.
assert_frozen() {
    local before end
    before=$(usage)
    end=$(($(now_ms) + 300))
    (($(grep -c nonvol <<<"$before") >= 5)) || fail "too few threads:" "$(cat "$DIR/tree.err")"
    wait_until_ms "$end"
    assert_eq "$(usage)" "$before" 'what the tree has used of processors'
}

counted_all() { # the command lost nothing of what it did, and did nothing twice
    assert_eq "$output" "$(seq "$(tail -n 1 <<<"$output")")" 'what was counted'
}

has_no_clocks() { [[ $(marked) != *$'\n'* ]]; } # but rlock itself

# ends_without_running SECONDS STATUS: the tree, in so long, and then rlock. It is paused: what
# nobody kills stays.
ends_without_running() {
    eventually "$(busy_s "$1")" has_no_clocks
    redis_continue
    finish tree
    never_ran
    assert_status "$2"
    nothing_left
}

member() { grep -oE "\"$1\":[^,}]*" "$DIR/report" | cut -d : -f 2; }

# ---- whose lock it is afterwards ----

@test "pause: nobody else in between: it goes on where it was, and its status counts" {
    start_tree --report "$DIR/report"
    pause
    assert_frozen
    wait_until_ms $((lease_end + 4000)) # 3 x TTL since the server stopped
    resume
    eventually 5 ran_since "$continued"
    assert_still "$lease_end" "$continued"
    let_end 0
    assert_status 0
    counted_all
    assert_match "$stderr" "paused: no renewal was confirmed in time.*; the command goes on if"
    assert_match "$stderr" "resumed: after ([4-9]|[1-9][0-9])\.[0-9] s, as rlock still has the lock"
    refute_match "$stderr" ': lost: '
    assert_eq "$(member verdict)" '"granted"'
    assert_between "$(member paused_ms)" 4000 "$(member held_ms)" 'paused_ms'
    key_is_free
}

@test "pause: again and again, and the status of the command's own is passed on" {
    local n
    start_tree
    for n in 1 2; do
        pause $n
        resume $n
        assert_still "$lease_end" "$continued"
    done
    let_end 7
    assert_status 7
    counted_all
}

# The program is stopped, so that the other one is sooner.
another_in_between() {
    start_tree --report "$DIR/report"
    pause
    kill -STOP "$pid"
    redis_continue
    eventually 5 key_is_free
    "$@"
    assert_frozen
    kill -CONT "$pid"
    finish tree
    never_ran
    assert_status 76
    assert_match "$stderr" "rlock: $KEY: lost: $lost; the command is being ended"
    assert_eq "$(grep -c ': lost: ' <<<"$stderr")" 1
    assert_eq "$(member verdict)" '"lost"'
    nothing_left
}

@test "pause: another holder in between: it is killed, 76" {
    local lost='it is gone from the server'
    another_in_between rlock -k "$KEY" -n -t 5 -- true
    key_is_free
}

@test "pause: another holder still: it is killed, 76, and the lock is not touched" {
    local lost='it is held by another program .*'
    another_in_between redis_cli set "$KEY" other NX PX 60000
    assert_eq "$(redis_cli get "$KEY")" other
    assert_between "$(redis_cli pttl "$KEY")" 50000 60000
}

@test "pause: a server that is back without its data: it is killed, 76" {
    start_tree
    fresh_lease
    redis_crash
    eventually 5 said paused
    wait_until_ms "$lease_end"
    assert_frozen
    redis_restart
    finish tree
    never_ran
    assert_status 76
    nothing_left
}

@test "pause: a lock that is lost before its end is no reason to wait: TERM, KILL, 76" {
    start tree "$RLOCK" -k "$KEY" -t 3 --on-lost pause -- sh -c \
        'trap "echo TERM; exit 0" TERM; while :; do sleep 0.02; done'
    eventually 5 is_taken_over
    finish tree
    assert_status 76
    assert_eq "$output" TERM
    refute_match "$stderr" paused
}

# ---- what happens to rlock meanwhile ----

@test "pause: KILL of the program: the tree is gone within 1 s, and has not run" {
    start_tree
    pause
    kill -KILL "$pid"
    ends_without_running 1 137
}

@test "pause: KILL of the guard: the tree is gone within 1 s, and has not run" {
    start_tree
    pause
    kill -KILL "$guard"
    ends_without_running 1 71
}

@test "pause: STOP of the guard, whatever the lock proves to be: nothing runs, and all ends" {
    start_tree
    pause
    kill -STOP "$guard"
    redis_continue
    finish tree
    never_ran
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
    never_ran
    assert_status 76
    nothing_left
}

@test "pause: STOP of the guard before: the program ends the tree in time, 76" {
    start_tree
    fresh_lease
    redis_pause
    kill -STOP "$guard"
    finish tree
    never_ran
    assert_status 76
    redis_continue
    nothing_left
}

@test "pause: STOP of the program until the lease is over: frozen, and goes on after CONT" {
    start_tree
    fresh_lease
    kill -STOP "$pid"
    wait_until_ms "$lease_end"
    assert_frozen
    continued=$(now_ms)
    kill -CONT "$pid"
    eventually 5 said resumed
    eventually 5 ran_since "$continued"
    assert_still "$lease_end" "$continued"
    let_end 0
    assert_status 0
    counted_all
}

@test "pause: STOP of both until the lease is over: what ran meanwhile is not taken for proven" {
    start_tree
    kill -STOP "$pid" "$guard"
    eventually 5 key_is_free
    kill -CONT "$pid" "$guard"
    finish tree
    assert_status 76
    assert_match "$stderr" ': lost: '
    nothing_left
}

# ---- what happens to the tree meanwhile ----

@test "pause: CONT from others lets nothing go on" {
    start_tree
    pause
    local before
    before=$(usage)
    # shellcheck disable=SC2046
    kill -CONT -- $(marked) "-$pid"
    assert_eq "$(usage)" "$before" 'what the tree has used of processors'
    assert_frozen
    resume
    let_end 0
    assert_status 0
}

@test "pause: what somebody else had stopped is still stopped afterwards" {
    start_tree
    local loop
    loop=$(<"$DIR/loop")
    kill -STOP "$loop"
    eventually 5 stopped "$loop"
    pause
    resume
    eventually 5 ran_since "$continued"
    eventually 5 stopped "$loop"
    never 1 alive_and_running "$loop"
    kill -CONT "$loop"
    eventually 5 alive_and_running "$loop"
    let_end 0
    assert_status 0
}
alive_and_running() { [[ $(state "$1") == R ]]; }

@test "pause: a signal that doesn't end is delivered when the command goes on" {
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
        'USR1 USR2' 'signals that came'
}

@test "pause: TERM and INT end what is paused, without running it: 137" {
    local signal
    for signal in TERM INT; do
        start_tree --report "$DIR/report"
        pause
        kill "-$signal" "$pid"
        ends_without_running 3 137
        assert_eq "$(member verdict)" '"granted"'
        eventually 5 key_is_free
    done
}

@test "pause: KILL of the command: its tree ends without running again, 137" {
    start_tree
    pause
    kill -KILL "$(children "$guard" | head -n 1)"
    ends_without_running 3 137
}

@test "pause: --max-hold is over: it ends without running again, 124" {
    start_tree --max-hold $((ttl * 2))
    pause
    ends_without_running 5 124
}

# Three chains: each time one has started itself anew, in a session of its own, it ends.
@test "pause: a tree that forks while it is frozen" {
    local name generations
    cat >"$DIR/hydra" <<'END'
[ ! -e "$DIR/end" ] || exit
[ "$1" -ne 0 ] || for head in 1 2; do setsid sh "$0" 1 & done
"$TOOLS/hold_clock" >>"$DIR/clock.hydra"
setsid sh "$0" 1 &
END
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause --wait-all -- sh "$DIR/hydra" 0
    eventually 5 file_has_lines "$DIR/clock.hydra" 20
    pause
    resume
    eventually 5 ran_since "$continued"
    assert_still "$lease_end" "$continued"
    let_end
    assert_status 0
}
file_has_lines() { (($(wc -l <"$1") >= $2)); }

@test "pause: an rlock inside is frozen with what it has frozen, and both go on" {
    start tree "$RLOCK" -k "$KEY" -t "$ttl" --on-lost pause -- \
        "$RLOCK" -k "$KEY:inner" -t 1 --on-lost pause -- sh "$DIR/tree"
    eventually 5 tree_runs
    guard=$(guard_of "$pid")
    pause
    file_has "$DIR/tree.err" "^rlock: $KEY:inner: paused: "
    assert_frozen
    resume
    eventually 5 ran_since "$continued"
    assert_still "$lease_end" "$continued"
    let_end 0
    assert_status 0
    counted_all
}

@test "pause: what can't be frozen is killed in time, 76, and why is said" {
    need strace
    start_tree
    start strace strace -o /dev/null -p "$(<"$DIR/loop")"
    eventually 5 file_has "$DIR/strace.err" attached
    fresh_lease
    redis_pause
    finish tree
    never_ran
    assert_status 76
    assert_match "$stderr" 'lost: .*the command could not be frozen: Operation not permitted'
    has_no_clocks
}

# ---- at a terminal ----

pty_job() { # a shell that runs a clock under rlock
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

pty_goes_on() { # it does from now on; then it is ended
    pty_expect 5 'resumed: after'
    eventually 5 ran_since "$continued"
    pty_key C-c
    pty_prompt
    pty_end
}

@test "pause: ^Z until the lease is over, then fg: it goes on where it was" {
    pty_job
    pty_stop
    eventually 5 key_is_free
    continued=$(now_ms)
    pty_type 'fg'
    pty_goes_on
}

@test "pause: ^Z and fg while it is paused let nothing go on" {
    pty_job
    fresh_lease
    redis_pause
    pty_expect 5 'paused: '
    wait_until_ms "$lease_end"
    pty_stop
    pty_type 'fg'
    pty_expect 5 'RLOCK' # the shell says what it continues
    never 1 ran_since "$lease_end"
    continued=$(now_ms)
    redis_continue
    pty_goes_on
}
