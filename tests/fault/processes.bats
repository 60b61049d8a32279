#!/usr/bin/env bats
# processes: whatever is killed or stopped, nothing of the command's tree outlives the lease.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET DIR TOOLS
    write_tree
}
teardown() {
    redis_continue # whatever went wrong while it was stopped
    common_teardown
}

# A command that is hard to get rid of: a shell with a child, a grandchild in a session of its
# own, and a daemon that forked twice. As long as one of them runs, it writes the time to its
# clock file. Where $IGNORING is set, none of them ends by TERM.
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

# start_tree [OPTION...]: rlock with that command; sets pid and guard.
start_tree() {
    start tree "$RLOCK" -k "$KEY" "$@" -- sh "$DIR/tree"
    eventually 5 tree_runs
    guard=$(guard_of "$pid")
}

# Whom rlock is to leave alone is in `other`.
nothing_left() { [[ $(marked) == "${other:-}" ]]; }
key_is_free() { [[ $(redis_cli exists "$KEY") == 0 ]]; }
last_stamp() { tail -qn 1 "$DIR"/clock.* | sort -n | tail -n 1; }

# When the server lets the lock go if nobody renews it, on the clock of the stamps.
lease_end() {
    local before
    before=$(now_ms)
    echo $((before + $(redis_cli pttl "$KEY")))
}

# kill_and_look [-]PID: by KILL; all of the tree is gone within a second.
kill_and_look() {
    local killed
    kill -KILL -- "$1"
    killed=$(now_ms)
    eventually 5 nothing_left
    assert_between $(($(last_stamp) - killed)) -60000 1000 'ms that the tree outlived it'
}

# The lock was not given back, and is free when its TTL is over.
assert_expires_within() { assert_between "$(redis_cli pttl "$KEY")" 1 "$1" 'PTTL'; }

# ---- killed ----

# bats test_tags=smoke
@test "KILL of the program: the whole tree is gone within 1 s, the lock when its TTL is over" {
    start_tree -t 3
    kill_and_look "$pid"
    assert_expires_within 3000
    finish tree
    assert_status 137
    assert_match "$stderr" 'rlock was killed, so the command was ended'
}

# bats test_tags=smoke
@test "KILL of the guard: the whole tree is gone within 1 s, the lock is given back, status 71" {
    start_tree -t 3
    kill_and_look "$guard"
    finish tree
    key_is_free
    assert_status 71
    assert_match "$stderr" 'guard-lost'
}

@test "KILL of the process group of the job: the grandchild with a session of its own ends too" {
    start_tree -t 3
    kill_and_look "-$pid"
    assert_expires_within 3000
    finish tree
    assert_status 137
}

@test "KILL of the command: 137, and what it left has ended before the lock is given back" {
    export IGNORING=1
    start_tree -t 5 --kill-after 300ms
    kill -KILL "$(children "$guard" | head -n 1)"
    local killed
    killed=$(now_ms)
    eventually 5 key_is_free
    assert_eq "$(pgrep_clocks)" '' 'what still runs without the lock'
    # its tree was given time, though it made nothing of it
    assert_between $(($(last_stamp) - killed)) 250 3000 'ms until KILL'
    finish tree
    assert_status 137
}

pgrep_clocks() {
    local its_pid name
    for its_pid in $(marked); do
        read -r name <"/proc/$its_pid/comm" && [[ $name == hold_clock ]] && echo "$its_pid"
    done
    return 0
}

# The lock of each round is another one, as it takes its TTL to see that it is let go.
no_key_left() { [[ -z $(redis_cli --scan --pattern "$KEY:*") ]]; }

# A command that ends as soon as its grandchild was seen to run, and ends that.
write_brief() {
    cat >"$DIR/brief" <<'END'
setsid "$TOOLS/hold_clock" "$DIR/clock.$1" 10 &
until [ -s "$DIR/clock.$1" ]; do :; done
kill $!
END
}

# What the program asks of the system from the first sign of a lock until after the last.
program_calls=(getrandom socket connect poll getsockopt sendto recvfrom read timerfd_create waitid
    socketpair prctl clone close timerfd_settime wait4 exit_group)

@test "KILL of the program at each of its system calls: nothing runs on, and no lock stays" {
    need strace
    local call n kills=0
    is_sanitized && export ASAN_OPTIONS=detect_leaks=0 && program_calls=(sendto recvfrom clone)
    write_brief
    for call in "${program_calls[@]}"; do
        for n in {1..12}; do
            start "$call$n" strace -o /dev/null -e "inject=$call:signal=SIGKILL:when=$n" \
                "$RLOCK" -k "$KEY:$call:$n" -t 1 -- sh "$DIR/brief" "$call$n"
            finish "$call$n"
            eventually 5 nothing_left
            [[ $status != 0 ]] || break
            assert_status 137
            kills=$((kills + 1))
        done
    done
    is_sanitized || assert_between "$kills" 25 400 'how often it was killed'
    eventually 5 no_key_left
}

# await_child PID: sets `child` as soon as it has one that is rlock's.
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

@test "KILL of the guard at 30 moments of its start: nothing runs on, and no lock stays" {
    need strace
    local moment failures=0
    is_sanitized && export ASAN_OPTIONS=detect_leaks=0
    write_brief
    for moment in {0..29}; do
        # all that the guard asks of the system takes a while, so that moments lie between
        start "g$moment" strace -f -o /dev/null -e inject=prctl,rt_sigprocmask,signalfd4,\
timerfd_create,pipe2,close,read,close_range,setsid,execve,getppid:delay_enter=1000 \
            "$RLOCK" -k "$KEY:$moment" -t 1 -- sh "$DIR/brief" "g$moment"
        await_child "$pid"
        await_child "$child"
        busy_wait_us $((moment * 3000))
        kill -KILL "$child" || : # it may have ended before
        finish "g$moment"
        eventually 5 nothing_left
        [[ $status != 71 ]] || failures=$((failures + 1))
        assert_match "$status" '^(71|0)$'
    done
    assert_between "$failures" 10 30 'how often the guard was missed'
    eventually 5 no_key_left
}

# ---- stopped ----

# fresh_lease TTL_MS: back just after a renewal; sets lease_end, on the clock of the stamps. The
# next renewal is far enough away for what comes now to happen before it.
fresh_lease() {
    eventually 5 is_fresh "$1"
}
is_fresh() {
    local before left
    before=$(now_ms)
    left=$(redis_cli pttl "$KEY")
    lease_end=$((before + left))
    ((left > $1 * 9 / 10))
}

wait_until_ms() { while (($(now_ms) < $1)); do sleep 0.02; done; }

# stop_for MS PID...
stop_for() {
    local end=$(($(now_ms) + $1))
    shift
    kill -STOP "$@"
    wait_until_ms "$end"
    kill -CONT "$@" 2>/dev/null || : # it may have been ended meanwhile
}

assert_ended_in_time() {
    assert_between $(($(last_stamp) - lease_end)) -60000 0 'ms that the tree outlived the lease'
}

@test "STOP of the program for twice the TTL: the guard ends the tree in time; 76 after CONT" {
    export IGNORING=1
    start_tree -t 1500ms
    fresh_lease 1500
    kill -STOP "$pid"
    eventually 5 file_has "$DIR/tree.err" 'rlock was stopped for too long'
    wait_until_ms $((lease_end + 1500))
    assert_ended_in_time
    kill -CONT "$pid"
    finish tree
    assert_status 76
}

@test "STOP of the guard for twice the TTL: the program ends the tree in time; 76" {
    start_tree -t 1500ms
    fresh_lease 1500
    stop_for 3000 "$guard"
    finish tree
    assert_status 76
    assert_ended_in_time
    assert_match "$stderr" 'guard'
    key_is_free
    nothing_left
}

@test "STOP of both for less than the lease: the command survives, and the lock is still its own" {
    start_tree -t 3
    local value
    value=$(redis_cli get "$KEY")
    fresh_lease 3000
    stop_for 1200 "$guard" "$pid"
    fresh_lease 3000 # so it goes on being renewed
    assert_eq "$(redis_cli get "$KEY")" "$value"
    local continued
    continued=$(last_stamp)
    eventually 5 stamped_after "$continued"
    kill -TERM "$pid"
    finish tree
    assert_status 143
}
stamped_after() { (($(last_stamp) > $1)); }

@test "STOP of both until the lease is over: at CONT the tree is ended, status 76" {
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

@test "STOP of the command is its own affair: the lock is kept" {
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

# ---- what doesn't want to end ----

@test "a lost lease, and a tree that ignores TERM: it is ended by KILL before the lease" {
    export IGNORING=1
    start_tree -t 1500ms
    fresh_lease 1500
    redis_pause
    finish tree
    redis_continue
    assert_status 76
    nothing_left
    # TERM came half a second before the end, and did nothing
    assert_between $(($(last_stamp) - lease_end)) -450 0 'ms from the end of the lease'
}

# Three that ignore TERM; each time one has started itself anew, in a session of its own, it ends.
write_hydra() {
    cat >"$DIR/hydra" <<'END'
trap '' TERM
[ "$1" -gt 0 ] || exit
[ "$1" -ne 3000 ] || for head in 1 2; do setsid sh "$0" 2999 & done
"$TOOLS/hold_clock" >>"$DIR/clock.hydra"
setsid sh "$0" $(($1 - 1)) &
END
}

@test "a lost lock, and a tree that forks faster than it is killed: it is ended all the same" {
    write_hydra
    start hydra "$RLOCK" -k "$KEY" -t 1500ms --wait-all -- sh "$DIR/hydra" 3000
    eventually 5 file_has_lines "$DIR/clock.hydra" 20
    redis_cli set "$KEY" other XX >/dev/null
    finish hydra
    assert_status 76
    local generations
    generations=$(wc -l <"$DIR/clock.hydra")
    nothing_left
    never 1 file_has_lines "$DIR/clock.hydra" $((generations + 1))
}
file_has_lines() { (($(wc -l <"$1") >= $2)); }

# ---- what is left alone ----

@test "a command that ends and leaves a daemon: the daemon runs on, the lock is free at once" {
    start one "$RLOCK" -k "$KEY" -t 5 -- \
        sh -c 'setsid "$TOOLS/hold_clock" "$DIR/clock.one" 10 &
            until [ -s "$DIR/clock.one" ]; do :; done'
    finish one
    assert_status 0
    key_is_free
    eventually 5 stamped_after "$(now_ms)"
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

@test "children that rlock had when it was exec'd are not touched, even when the guard is killed" {
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
        kill_and_look "${!who}"
        finish tree
        nothing_left
        # shellcheck disable=SC2086
        kill -KILL $other
    done
}

# ---- what the command starts with, and what becomes of its remains ----

@test "1000 orphans of the command are reaped while it runs, and none is taken for it" {
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

# is_same COMMAND...: prints the same under rlock, with what it was started with: $launch before
# it, and the redirections of the call.
is_same() {
    "${launch[@]}" "$@" >"$DIR/output" 3>&-
    mv "$DIR/output" "$DIR/without"
    "${launch[@]}" "$RLOCK" -k "$KEY" -t 5 -- "$@" >"$DIR/output" 3>&-
    mv "$DIR/output" "$DIR/with"
    sed -i 's,/proc/[0-9]*/,/proc/PID/,' "$DIR/without" "$DIR/with"
    # A sanitizer's own threads use the two signals that libc keeps for itself, 32 and 33.
    ! is_sanitized || sed -i 's,^\(SigIgn:.*\)[0-9a-f]\{9\}$,\1,' "$DIR/without" "$DIR/with"
    grep -q . "$DIR/without"
    diff "$DIR/without" "$DIR/with"
}

@test "the command has the descriptors that rlock was started with, and no others" {
    local launch=() list=(
        sh -c 'cd /proc/$$/fd && for fd in *; do echo "$fd"; readlink "$fd"; done; :')
    is_same "${list[@]}"
    is_same "${list[@]}" 5<"$DIR/tree" 9>>"$DIR/nine"
    is_same "${list[@]}" <&-
    is_same "${list[@]}" <&- 2>&- 4</dev/null
    launch=(prlimit --nofile=4000 bash -c 'exec 3000</dev/null; exec "$@"' bash)
    is_same "${list[@]}"
}

@test "the command has the mask, the dispositions and the limits that rlock was started with" {
    local show=(grep -hE '^(Umask|Sig(Blk|Ign|Cgt)|ShdPnd|NoNewPrivs|Seccomp|Max.*)' \
        /proc/self/status /proc/self/limits) launch
    for launch in '' --ignore-signal={CHLD,PIPE,HUP,INT,TSTP,TTOU,USR1,RTMIN} \
        --block-signal={CHLD,PIPE,TERM,INT,TSTP,USR1,RTMAX} \
        '--block-signal=USR2,TERM --ignore-signal=CHLD,QUIT,WINCH'; do
        # shellcheck disable=SC2206
        launch=(env --default-signal $launch)
        is_same "${show[@]}"
    done
}

@test "SIGCHLD ignored at the start: rlock sees the end of the command all the same" {
    start one env --ignore-signal=CHLD "$RLOCK" -k "$KEY" -t 5 -- sh -c 'exit 7'
    finish one
    assert_status 7
    key_is_free
}
