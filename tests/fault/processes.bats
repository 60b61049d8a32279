#!/usr/bin/env bats
# processes: rlock, its guard or the command is killed or stopped: no process outlives the lease.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET DIR TOOLS
    write_tree
}
teardown() {
    redis_continue # a failed test may have left the server stopped
    common_teardown
}

# write_tree: writes a command that is hard to end: a shell with a child, a grandchild in its own
# session, and a daemon. Each of these three writes the time to its own file, $DIR/clock.*, every 10
# ms. If $IGNORING is set, they ignore TERM.
write_tree() {
    cat >"$DIR/tree" <<'END'
[ -z "$IGNORING" ] || trap '' TERM
"$TOOLS/hold_clock" "$DIR/clock.child" 10 &
(setsid "$TOOLS/hold_clock" "$DIR/clock.grandchild" 10 & wait) &
(setsid sh -c '"$TOOLS/hold_clock" "$DIR/clock.daemon" 10 &' &)
wait
END
}

tree_runs() { [[ -s $DIR/clock.child && -s $DIR/clock.grandchild && -s $DIR/clock.daemon ]]; }

# start_tree [OPTION...]: starts rlock with the command of write_tree; sets pid and guard.
start_tree() {
    start tree "$RLOCK" -k "$KEY" "$@" -- sh "$DIR/tree"
    eventually 5 tree_runs
    guard=$(guard_of "$pid")
}

# nothing_left: no process of the test is left, except those in $other, which rlock must not end.
nothing_left() { [[ $(marked) == "${other:-}" ]]; }
key_is_free() { [[ $(redis_cli exists "$KEY") == 0 ]]; }
# last_run_ms: when a process of the command last ran, on the clock of now_ms().
last_run_ms() { tail -qn 1 "$DIR"/clock.* | sort -n | tail -n 1; }

# assert_tree_ends_when_killed PID|-GROUP: kills this process or process group; then all processes
# of the command end within 1 s.
assert_tree_ends_when_killed() {
    local killed
    kill -KILL -- "$1"
    killed=$(now_ms)
    eventually 5 nothing_left
    assert_between $(($(last_run_ms) - killed)) -60000 1000 'ms that the command ran on after KILL'
}

# assert_expires_within MS: the lock was not released, and its TTL ends within MS milliseconds.
assert_expires_within() { assert_between "$(redis_cli pttl "$KEY")" 1 "$1" 'PTTL'; }

# ---- rlock, the guard or the command is killed ----

# bats test_tags=smoke
@test "rlock is killed: all processes end within 1 s, the lock is free when its TTL is over" {
    start_tree -t 3
    assert_tree_ends_when_killed "$pid"
    assert_expires_within 3000
    finish tree
    assert_status 137
    assert_match "$stderr" \
        'rlock was killed, so [a-z]+ was ended: KILL at 20[^ ]*, ended at [0-9:]{8}; '
}

# bats test_tags=smoke
@test "the guard is killed: all processes end within 1 s, the lock is released, status 71" {
    start_tree -t 3
    assert_tree_ends_when_killed "$guard"
    finish tree
    key_is_free
    assert_status 71
    assert_match "$stderr" 'guard-lost'
}

@test "the process group of rlock is killed: the grandchild in its own session ends as well" {
    start_tree -t 3
    assert_tree_ends_when_killed "-$pid"
    assert_expires_within 3000
    finish tree
    assert_status 137
}

@test "the command is killed: its descendants end before the lock is released, status 137" {
    export IGNORING=1
    start_tree -t 5 --kill-after 300ms
    kill -KILL "$(children "$guard" | head -n 1)"
    local killed
    killed=$(now_ms)
    eventually 5 key_is_free
    assert_eq "$(pgrep_clocks)" '' 'pids that still run without the lock'
    # the descendants ignore TERM, and ran until KILL came, 300 ms later
    assert_between $(($(last_run_ms) - killed)) 250 3000 'ms from the end of the command to KILL'
    finish tree
    assert_status 137
}

# pgrep_clocks: prints the pids of the processes that write the time.
pgrep_clocks() {
    local its_pid name
    for its_pid in $(marked); do
        read -r name <"/proc/$its_pid/comm" && [[ $name == hold_clock ]] && echo "$its_pid"
    done
    return 0
}

# no_key_left: all locks of the test are free. Each round takes another lock, because the lock of a
# killed rlock is only free when its TTL is over.
no_key_left() { [[ -z $(redis_cli --scan --pattern "$KEY:*") ]]; }

# write_short_command: writes a command that starts a clock, waits until the clock has run, and
# kills it.
write_short_command() {
    cat >"$DIR/short" <<'END'
setsid "$TOOLS/hold_clock" "$DIR/clock.$1" 10 &
until [ -s "$DIR/clock.$1" ]; do :; done
kill $!
END
}

# The system calls of rlock from before it asks for the lock until after it has released it.
rlock_calls=(getrandom socket connect poll getsockopt sendto recvfrom read timerfd_create waitid
    socketpair prctl clone close timerfd_settime wait4 exit_group)

@test "rlock is killed at each of its system calls: no process runs on, and no lock stays" {
    need strace
    local call n kills=0
    is_sanitized && export ASAN_OPTIONS=detect_leaks=0 && rlock_calls=(sendto recvfrom clone)
    write_short_command
    for call in "${rlock_calls[@]}"; do
        for n in {1..12}; do
            start "$call$n" strace -o /dev/null -e "inject=$call:signal=SIGKILL:when=$n" \
                "$RLOCK" -k "$KEY:$call:$n" -t 1 -- sh "$DIR/short" "$call$n"
            finish "$call$n"
            eventually 5 nothing_left
            [[ $status != 0 ]] || break
            assert_status 137
            kills=$((kills + 1))
        done
    done
    is_sanitized || assert_between "$kills" 25 400 'how often rlock was killed'
    eventually 5 no_key_left
}

# await_child PID: waits until PID has a child whose name begins with rlock; sets child.
await_child() {
    local each name
    child=
    until [[ $child ]] || dead "$1"; do
        read -ra each <"/proc/$1/task/$1/children" || :
        for each in "${each[@]}"; do
            read -r name <"/proc/$each/comm" || continue
            [[ $name != rlock* ]] || child=$each
        done
    done 2>/dev/null
}

busy_wait_us() {
    local end=$((${EPOCHREALTIME/[.,]/} + $1))
    while ((${EPOCHREALTIME/[.,]/} < end)); do :; done
}

@test "the guard is killed at 30 moments of its start: no process runs on, and no lock stays" {
    need strace
    local moment failures=0
    is_sanitized && export ASAN_OPTIONS=detect_leaks=0
    write_short_command
    for moment in {0..29}; do
        # strace delays the guard's system calls by 1 ms each, so the 30 moments fall between them
        start "g$moment" strace -f -o /dev/null -e inject=prctl,rt_sigprocmask,signalfd4,\
timerfd_create,pipe2,close,read,close_range,setsid,execve,getppid:delay_enter=1000 \
            "$RLOCK" -k "$KEY:$moment" -t 30 -- sh "$DIR/short" "g$moment"
        await_child "$pid"
        await_child "$child"
        busy_wait_us $((moment * 3000))
        kill -KILL "$child" || : # the guard may have ended already
        finish "g$moment"
        eventually 5 nothing_left
        [[ $status != 71 ]] || failures=$((failures + 1))
        assert_match "$status" '^(71|0)$'
    done
    assert_between "$failures" 10 30 'how often rlock noticed that its guard was gone'
    eventually 5 no_key_left
}

# ---- rlock, the guard or the command is stopped ----

# await_renewal TTL_MS: waits until the lease was renewed just now, so that the steps that follow
# are done before the next renewal. Sets lease_end_ms, on the clock of now_ms().
await_renewal() {
    eventually 5 is_fresh "$1"
}
is_fresh() {
    local before left
    before=$(now_ms)
    left=$(redis_cli pttl "$KEY")
    lease_end_ms=$((before + left))
    ((left > $1 * 9 / 10))
}

wait_until_ms() { while (($(now_ms) < $1)); do sleep 0.02; done; }

# stop_for MS PID...: stops these processes, and continues them MS later.
stop_for() {
    local end=$(($(now_ms) + $1))
    shift
    kill -STOP "$@"
    wait_until_ms "$end"
    kill -CONT "$@" 2>/dev/null || : # a process may have been killed meanwhile
}

assert_ended_in_time() {
    assert_between $(($(last_run_ms) - lease_end_ms)) -60000 0 'ms the command outlived the lease'
}

@test "rlock is stopped for twice the TTL: the guard ends all processes, rlock ends with 76" {
    export IGNORING=1
    start_tree -t 1500ms
    await_renewal 1500
    kill -STOP "$pid"
    eventually 5 file_has "$DIR/tree.err" 'rlock was stopped for too long'
    wait_until_ms $((lease_end_ms + 1500))
    assert_ended_in_time
    kill -CONT "$pid"
    finish tree
    assert_status 76
}

@test "the guard is stopped for twice the TTL: rlock ends all processes in time, status 76" {
    start_tree -t 1500ms
    await_renewal 1500
    stop_for 3000 "$guard"
    finish tree
    assert_status 76
    assert_ended_in_time
    assert_match "$stderr" 'guard'
    key_is_free
    nothing_left
}

@test "rlock and guard are stopped for less than the lease: the command and its lock live on" {
    start_tree -t 3
    local value
    value=$(redis_cli get "$KEY")
    await_renewal 3000
    stop_for 1200 "$guard" "$pid"
    await_renewal 3000 # rlock has renewed the lease after CONT
    assert_eq "$(redis_cli get "$KEY")" "$value"
    local continued_ms
    continued_ms=$(last_run_ms)
    eventually 5 has_run_after "$continued_ms"
    kill -TERM "$pid"
    finish tree
    assert_status 143
}
has_run_after() { (($(last_run_ms) > $1)); }

@test "rlock and guard are stopped beyond the lease: after CONT they end all processes, status 76" {
    start_tree -t 1
    kill -STOP "$pid" "$guard"
    eventually 5 key_is_free
    redis_cli set "$KEY" other >/dev/null
    kill -CONT "$pid" "$guard"
    finish tree
    assert_status 76
    nothing_left
    assert_eq "$(redis_cli get "$KEY")" other
}

@test "the command is stopped: rlock keeps the lock" {
    start one "$RLOCK" -k "$KEY" -t 1 -- "$TOOLS/hold_clock" "$DIR/clock.one" 10
    eventually 5 test -s "$DIR/clock.one"
    local command
    command=$(children "$(guard_of "$pid")")
    kill -STOP "$command"
    never 2 key_is_free
    kill -CONT "$command"
    kill -TERM "$pid"
    finish one
    assert_status 143
}

# ---- processes that ignore TERM, or fork to get away ----

@test "no renewal is confirmed, and the command ignores TERM: KILL ends it before the lease ends" {
    export IGNORING=1
    start_tree -t 1500ms
    await_renewal 1500
    redis_pause
    finish tree
    redis_continue
    assert_status 76
    nothing_left
    # TERM comes 500 ms before the end of the lease. All processes run on until KILL ends them.
    assert_between $(($(last_run_ms) - lease_end_ms)) -450 0 'ms from the lease to the last run'
}

# write_chains: writes a command of three chains of processes, which ignore TERM. Each process
# starts the next, in a new session, and exits.
write_chains() {
    cat >"$DIR/chains" <<'END'
trap '' TERM
[ "$1" -gt 0 ] || exit
[ "$1" -ne 3000 ] || for head in 1 2; do setsid sh "$0" 2999 & done
"$TOOLS/hold_clock" >>"$DIR/clock.chains"
setsid sh "$0" $(($1 - 1)) &
END
}

@test "the lock is lost while the processes fork and exit all the time: rlock ends them all" {
    write_chains
    start chains "$RLOCK" -k "$KEY" -t 1500ms --wait-all -- sh "$DIR/chains" 3000
    eventually 5 file_has_lines "$DIR/clock.chains" 20
    redis_cli set "$KEY" other XX >/dev/null
    finish chains
    assert_status 76
    local generations
    generations=$(wc -l <"$DIR/clock.chains")
    nothing_left
    never 1 file_has_lines "$DIR/clock.chains" $((generations + 1))
}
file_has_lines() { (($(wc -l <"$1") >= $2)); }

# ---- processes that rlock leaves alone ----

@test "the command exits and leaves a daemon: the daemon runs on, the lock is free at once" {
    start one "$RLOCK" -k "$KEY" -t 5 -- \
        sh -c 'setsid "$TOOLS/hold_clock" "$DIR/clock.one" 10 &
            until [ -s "$DIR/clock.one" ]; do :; done'
    finish one
    assert_status 0
    key_is_free
    eventually 5 has_run_after "$(now_ms)"
}

@test "--wait-all: the lock is kept until the last descendant has ended" {
    start one "$RLOCK" -k "$KEY" -t 1 --wait-all -- \
        sh -c 'setsid "$TOOLS/hold_clock" "$DIR/clock.one" 10 & echo $! >"$DIR/daemon"; exit 7'
    eventually 5 test -s "$DIR/clock.one"
    never 2 key_is_free
    kill -KILL "$(<"$DIR/daemon")"
    finish one
    assert_status 7
    key_is_free
}

@test "children that rlock has from before its exec live on when rlock or the guard is killed" {
    local who
    cat >"$DIR/parent" <<'END'
n=0
while [ $((n += 1)) -le 70 ]; do sleep 60 & done
echo >"$DIR/begun"
until [ -e "$DIR/seen" ]; do :; done
exec "$@"
END
    for who in pid guard; do
        rm -f "$DIR"/{clock.*,begun,seen}
        start tree sh "$DIR/parent" "$RLOCK" -k "$KEY:$who" -t 3 -- sh "$DIR/tree"
        eventually 10 test -e "$DIR/begun"
        other=$(marked)
        other=$(grep -vx "$pid" <<<"$other")
        touch "$DIR/seen"
        eventually 5 tree_runs
        guard=$(guard_of "$pid")
        assert_tree_ends_when_killed "${!who}"
        finish tree
        nothing_left
        # shellcheck disable=SC2086
        kill -KILL $other
    done
}

# ---- what the command inherits from rlock, and who reaps its orphans ----

@test "the guard reaps 1000 orphans of the command, and takes none of them for the command" {
    start one "$RLOCK" -k "$KEY" -t 5 -- sh -c '
        n=0
        while [ $((n += 1)) -le 1000 ]; do (exit 9 &) done
        exec "$TOOLS/hold_clock" "$DIR/clock.one" 10'
    eventually 20 test -s "$DIR/clock.one"
    guard=$(guard_of "$pid")
    eventually 5 has_children "$guard" 1
    kill -TERM "$pid"
    finish one
    assert_status 143
}
has_children() { [[ $(children "$1" | grep -c .) == "$2" ]]; }

# assert_same_under_rlock COMMAND...: COMMAND prints the same with and without rlock. In both runs
# the words of $launch stand before COMMAND, and the redirections of this call apply.
assert_same_under_rlock() {
    "${launch[@]}" "$@" >"$DIR/output" 3>&-
    mv "$DIR/output" "$DIR/without"
    "${launch[@]}" "$RLOCK" -k "$KEY" -t 5 -- "$@" >"$DIR/output" 3>&-
    mv "$DIR/output" "$DIR/with"
    sed -i 's,/proc/[0-9]*/,/proc/PID/,' "$DIR/without" "$DIR/with"
    # A sanitizer's own threads change what is done with the signals 32 and 33, which libc reserves.
    ! is_sanitized || sed -i 's,^\(SigIgn:.*\)[0-9a-f]\{9\}$,\1,' "$DIR/without" "$DIR/with"
    grep -q . "$DIR/without"
    diff "$DIR/without" "$DIR/with"
}

@test "the command has the descriptors that rlock was started with, and no other" {
    local launch=() list=(
        sh -c 'cd /proc/$$/fd && for fd in *; do echo "$fd"; readlink "$fd"; done; :')
    assert_same_under_rlock "${list[@]}"
    assert_same_under_rlock "${list[@]}" 5<"$DIR/tree" 9>>"$DIR/nine"
    assert_same_under_rlock "${list[@]}" <&-
    assert_same_under_rlock "${list[@]}" <&- 2>&- 4</dev/null
    launch=(prlimit --nofile=4000 bash -c 'exec 3000</dev/null; exec "$@"' bash)
    assert_same_under_rlock "${list[@]}"
}

@test "the command has the signal mask, ignored signals, umask and limits that rlock started with" {
    local show=(grep -hE '^(Umask|Sig(Blk|Ign|Cgt)|ShdPnd|NoNewPrivs|Seccomp|Max.*)' \
        /proc/self/status /proc/self/limits) launch
    for launch in '' --ignore-signal={CHLD,PIPE,HUP,INT,TSTP,TTOU,USR1,RTMIN} \
        --block-signal={CHLD,PIPE,TERM,INT,TSTP,USR1,RTMAX} \
        '--block-signal=USR2,TERM --ignore-signal=CHLD,QUIT,WINCH'; do
        # shellcheck disable=SC2206
        launch=(env --default-signal $launch)
        assert_same_under_rlock "${show[@]}"
    done
}

@test "rlock is started with SIGCHLD ignored: it still gets the status of the command" {
    start one env --ignore-signal=CHLD "$RLOCK" -k "$KEY" -t 5 -- sh -c 'exit 7'
    finish one
    assert_status 7
    key_is_free
}
