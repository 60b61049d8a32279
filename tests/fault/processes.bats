#!/usr/bin/env bats
# processes: rlock, its guard, its command or its server is killed or stopped: no process of the
# command outlives the lease, and rlock's exit status tells what happened.
#
# The processes of the command write the time into files while they run. What they do is measured by
# these files, not by the clock of the test, and a machine that stands still writes nothing.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    write_tree
}
# ---- a command that is hard to end ----

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
    eventually 20 tree_runs
    guard=$(guard_of "$pid")
}

# nothing_left: no process of the test is left, except those in $other, which rlock must not end.
nothing_left() { [[ $(marked) == "${other:-}" ]]; }
# last_run_ms: when a process of the command last ran, on the clock of now_ms().
last_run_ms() { tail -qn 1 "$DIR"/clock.* | sort -n | tail -n 1; }

# assert_tree_ends_when_killed PID: kills this process; then all processes of the command end within
# 1 s in which they run: each of them writes at most 100 lines more.
assert_tree_ends_when_killed() {
    local file killed
    killed=$(now_ms)
    kill -KILL "$1"
    eventually 20 nothing_left
    for file in "$DIR"/clock.*; do
        assert_between "$(awk -v from="$killed" '$1 > from { n++ } END { print n + 0 }' "$file")" \
            0 100 "times that a process ran after KILL, by $file"
    done
}

# ---- rlock, the guard or the command is killed ----

# bats test_tags=smoke
@test "rlock is killed: all processes end within 1 s, the lock is free when its TTL is over" {
    start_tree -t 60
    assert_tree_ends_when_killed "$pid"
    assert_between "$(redis_cli pttl "$KEY")" 1 60000 'PTTL'
    ended 137 tree
    assert_match "$stderr" \
        'rlock was killed, so [a-z]+ was ended: KILL at 20[^ ]*, ended at [0-9:]{8}; '
}

# bats test_tags=smoke
@test "the guard is killed: all processes end within 1 s, the lock is released, status 71" {
    start_tree -t 60
    assert_tree_ends_when_killed "$guard"
    finish tree
    gone "$KEY"
    assert_status 71
    assert_match "$stderr" "guard-lost: the process that guards the command was ended by signal 9 "
}

@test "rlock and its guard are killed at once: the kernel ends the command" {
    local command
    start tree "$RLOCK" -k "$KEY" -t 60 -- sh -c 'echo $$; exec sleep 60'
    eventually 20 file_has "$DIR/tree.out" '^[0-9]'
    command=$(<"$DIR/tree.out")
    kill -KILL "$pid" "$(guard_of "$pid")"
    eventually 20 dead "$command"
    ended 137 tree
}

@test "the command is killed: its descendants end before the lock is released, status 137" {
    export IGNORING=1
    start_tree -t 60 --kill-after 300ms
    kill -KILL "$(children "$guard" | head -n 1)"
    eventually 20 gone "$KEY"
    assert_eq "$(named hold_clock)" '' 'pids that still run without the lock'
    ended 137 tree
}

# three_sleep PID: true if three children of this process have executed sleep.
three_sleep() { [[ $(pgrep -cP "$1" -x sleep) == 3 ]]; }

@test "children that rlock has from before its exec live on when rlock or the guard is killed" {
    local who
    cat >"$DIR/parent" <<'END'
sleep 600 & sleep 600 & sleep 600 &
read -r _ <"$DIR/gate"
exec "$@"
END
    for who in pid guard; do
        rm -f "$DIR"/clock.* "$DIR/gate"
        mkfifo "$DIR/gate"
        start tree sh "$DIR/parent" "$RLOCK" -k "$KEY:$who" -t 60 -- sh "$DIR/tree"
        eventually 20 three_sleep "$pid"
        other=$(marked)
        other=$(grep -vx "$pid" <<<"$other")
        echo >"$DIR/gate"
        eventually 20 tree_runs
        guard=$(guard_of "$pid")
        assert_tree_ends_when_killed "${!who}"
        finish tree
        nothing_left
        # shellcheck disable=SC2086
        kill -KILL $other
    done
}

# ---- rlock or the guard is stopped ----

# read_lease_end: sets lease_end_ms, on the clock of now_ms(), to a time just before the lease ends
# on the server.
read_lease_end() {
    local before left
    before=$(now_ms)
    left=$(redis_cli pttl "$KEY")
    lease_end_ms=$((before + left))
    ((left > 0))
}

assert_ended_in_time() {
    assert_between $(($(last_run_ms) - lease_end_ms)) -60000 0 'ms the command outlived the lease'
}

@test "rlock is stopped beyond the lease: the guard ends all processes, rlock ends with 76" {
    export IGNORING=1
    start_tree -t 6
    stop "$pid"
    eventually 10 stopped "$pid"
    read_lease_end
    eventually 20 file_has "$DIR/tree.err" 'rlock was stopped for too long'
    eventually 20 gone "$KEY"
    assert_ended_in_time
    kill -CONT "$pid"
    ended 76 tree
}

@test "the guard is stopped beyond the lease: rlock ends all processes in time, status 76" {
    start_tree -t 6
    kill -STOP "$guard"
    eventually 10 stopped "$guard"
    read_lease_end
    ended 76 tree 30
    assert_ended_in_time
    assert_match "$stderr" 'guard-lost: the process that guards the command does not answer'
    gone "$KEY"
    nothing_left
}

@test "rlock and guard are stopped for less than the lease: the command and its lock live on" {
    local value
    start_tree -t 12
    value=$(redis_cli get "$KEY")
    kill -STOP "$guard" "$pid"
    redis_cli pexpire "$KEY" 20000 >/dev/null # a renewal will make it less
    eventually 10 stopped "$pid"
    kill -CONT "$guard" "$pid"
    eventually 20 is_renewed
    assert_eq "$(redis_cli get "$KEY")" "$value"
    tree_runs
    kill -TERM "$pid"
    ended 143 tree
}
is_renewed() { (($(redis_cli pttl "$KEY") <= 12000)); }

@test "rlock and guard are stopped beyond the lease: after CONT they end all processes, status 76" {
    start_tree -t 3
    kill -STOP "$pid" "$guard"
    eventually 20 gone "$KEY"
    redis_cli set "$KEY" other >/dev/null
    kill -CONT "$pid" "$guard"
    ended 76 tree
    nothing_left
    assert_eq "$(redis_cli get "$KEY")" other
}

@test "rlock is stopped until the lease has ended and the command has returned 0: status 76" {
    local command
    mkfifo "$DIR/go"
    start tree "$RLOCK" -k "$KEY" -t 3 --on-lost ignore -- \
        sh -c 'echo $$; read -r _ <"$0"' "$DIR/go"
    eventually 20 file_has "$DIR/tree.out" '^[0-9]'
    stop "$pid"
    eventually 20 gone "$KEY"
    timeout 10 tee "$DIR/go" <<<0 >/dev/null
    eventually 20 dead "$(<"$DIR/tree.out")"
    kill -CONT "$pid"
    ended 76 tree
    assert_match "$stderr" ': lost: '
}

# ---- the server is stopped or killed, or another program takes the lock ----

# stop_server: stops the server less than 1.9 s after a renewal, so that none comes between
# read_lease_end and the stop: with a TTL of 6 s rlock renews every 2 s. False: it was too late.
stop_server() {
    read_lease_end
    ((lease_end_ms - $(now_ms) > 5000)) || return
    redis_pause
    (($(now_ms) < lease_end_ms - 4100)) || ! redis_continue
}

# outlives_no_lease [kill]: starts the command that ignores TERM. Then stops or kills the server. No
# process of the command may run after the end of the lease.
outlives_no_lease() {
    export IGNORING=1
    start_tree -t 6
    eventually 20 stop_server
    [[ ${1:-} != kill ]] || redis_crash
    ended 76 tree 30
    assert_match "$stderr" "rlock: $KEY: lost: no renewal was confirmed in time"
    assert_ended_in_time
    nothing_left
}

@test "the server is stopped until the lease ends: the tree has ended before that, status 76" {
    outlives_no_lease
}

@test "the server is killed: the tree has ended before the lease ends, status 76" {
    redis_start mortal
    RLOCK_URL=unix://$REDIS_SOCKET outlives_no_lease kill
    redis_use redis
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
    local generations
    write_chains
    start chains "$RLOCK" -k "$KEY" -t 6 --wait-all -- sh "$DIR/chains" 3000
    eventually 20 file_has_lines "$DIR/clock.chains" 20
    redis_cli set "$KEY" other XX >/dev/null
    ended 76 chains 30
    generations=$(wc -l <"$DIR/clock.chains")
    nothing_left
    never 1 file_has_lines "$DIR/clock.chains" $((generations + 1))
}
file_has_lines() { (($(wc -l <"$1") >= $2)); }

# ---- what the command inherits from rlock, and who reaps its orphans ----

@test "the guard reaps 100 orphans of the command, and takes none of them for the command" {
    start one "$RLOCK" -k "$KEY" -t 60 -- sh -c '
        n=0
        while [ $((n += 1)) -le 100 ]; do (exit 9 &) done
        exec "$TOOLS/hold_clock" "$DIR/clock.one" 100'
    eventually 20 test -s "$DIR/clock.one"
    eventually 20 has_children "$(guard_of "$pid")" 1
    kill -TERM "$pid"
    ended 143 one
}
has_children() { [[ $(children "$1" | wc -l) == "$2" ]]; }

# assert_same_under_rlock COMMAND...: COMMAND prints the same with and without rlock. In both runs
# the words of $launch stand before COMMAND, and the redirections of this call apply.
assert_same_under_rlock() {
    "${launch[@]}" "$@" >"$DIR/output" 3>&-
    mv "$DIR/output" "$DIR/without"
    "${launch[@]}" "$RLOCK" -k "$KEY" -t 60 -- "$@" >"$DIR/output" 3>&-
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
    assert_same_under_rlock "${list[@]}" 5<"$DIR/tree" 9>>"$DIR/nine"
    assert_same_under_rlock "${list[@]}" <&- 2>&- 4</dev/null
}

@test "the command has the signal mask, ignored signals, umask and limits that rlock started with" {
    local show=(grep -hE '^(Umask|Sig(Blk|Ign|Cgt)|ShdPnd|NoNewPrivs|Seccomp|Max.*)' \
        /proc/self/status /proc/self/limits) launch
    launch=(env --default-signal --ignore-signal={CHLD,PIPE,HUP,INT,TSTP,TTOU,USR1,RTMIN}
        --block-signal={TERM,USR2,WINCH,RTMAX})
    assert_same_under_rlock "${show[@]}"
    # with SIGCHLD ignored rlock still gets the status of the command
    run -7 env --ignore-signal=CHLD "$RLOCK" -k "$KEY" -- sh -c 'exit 7'
}
