#!/usr/bin/env bats
# rights: a command that has other rights than rlock, as by sudo, can't be ended; that is said.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }

# Somebody who isn't root, in a directory of its own, with a copy of what it needs there.
setup() {
    common_setup
    [[ $(id -u) == 0 ]] || skip 'only root can make a program that becomes root'
    need setpriv
    PLACE=$(mktemp -d /tmp/rlock-rights.XXXXXX)
    chmod 755 "$PLACE"
    cp "$RLOCK" "$TOOLS/untouchable" "$PLACE"
    chmod 4755 "$PLACE/untouchable"
    ! findmnt -no OPTIONS -T "$PLACE" | grep -qw nosuid || skip 'nosuid'
    export HOME=$PLACE RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}
teardown() {
    [[ -z ${PLACE:-} ]] || touch "$PLACE/end"
    common_teardown
    [[ -z ${PLACE:-} ]] || rm -rf "$PLACE"
}

# start_command OPTION...: sets pid and guard.
start_command() {
    start command setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$PLACE/rlock" -k "$KEY" "$@" -- "$PLACE/untouchable" "$PLACE/end"
    eventually 10 file_has "$DIR/command.out" running
    guard=$(guard_of "$pid")
}

why="can't be ended: pid [0-9]+ \\(untouchable\\): Operation not permitted"
said() { file_has "$DIR/command.err" "rlock: $KEY: $why; $1"; }

let_end() {
    touch "$PLACE/end"
    finish command
    refute_match "$stderr" 'guard-lost'
}

is_kept_beyond() { # MS: the lock is, for longer than its TTL
    local end=$(($(now_ms) + $1))
    while (($(now_ms) < end)); do
        exists "$KEY" || fail 'the lock is free while the command runs' || return 1
        sleep 0.05
    done
}

@test "another has the lock: that it runs on is said, and 76" {
    start_command -t 2
    redis_cli set "$KEY" other XX
    eventually 5 said 'it runs on without the lock'
    alive "$pid"
    let_end
    assert_status 76
    assert_eq "$(value "$KEY")" other
}

@test "--max-hold is over: said, the lock is kept until it has ended, and 76" {
    start_command -t 1 --max-hold 1
    eventually 5 said 'the lock is kept as long as it runs'
    is_kept_beyond 2500
    alive "$pid"
    let_end
    assert_status 76
    gone "$KEY"
}

@test "the guard is killed: said, the lock is kept until it has ended, and 76" {
    start_command -t 1
    kill -KILL "$guard"
    eventually 5 said 'the lock is kept as long as it runs'
    is_kept_beyond 2500
    alive "$pid"
    touch "$PLACE/end"
    finish command
    assert_status 76
    gone "$KEY"
}

@test "rlock is told to end: said, the lock is kept, and the status is the command's" {
    start_command -t 1
    kill -TERM "$pid"
    eventually 5 said 'the lock is kept as long as it runs'
    is_kept_beyond 2500
    let_end
    assert_status 7
    gone "$KEY"
}

@test "rlock is killed: the guard says it, and when the lock is free" {
    start_command -t 1
    kill -KILL "$pid"
    eventually 5 said 'the lock is free when its ttl ends'
    touch "$PLACE/end"
    eventually 5 dead "$guard"
    refute_match "$(<"$DIR/command.err")" 'the command was ended'
}

@test "--bind-pid: which process can't be ended is said, and not that all were" {
    mkdir "$PLACE/log"
    chmod 777 "$PLACE/log"
    start command setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '
        "$0/rlock" acquire -k "$1" -t 2 --bind-pid $$ --log "$0/log/why" >/dev/null || exit
        "$0/untouchable" "$0/end" & wait' "$PLACE" "$KEY"
    eventually 10 file_has "$DIR/command.out" running
    redis_cli set "$KEY" other XX
    eventually 10 file_has "$PLACE/log/why" "rlock: $KEY: $why; it runs on without the lock"
    refute_match "$(<"$PLACE/log/why")" 'were ended'
    let_end
    assert_status 143
}

@test "what /proc hides isn't taken for frozen: no pause is said, and 76" {
    local own_proc='mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    unshare -m sh -c "$own_proc" - true 2>/dev/null || skip 'no mounts of /proc here'
    start command unshare -m sh -c "$own_proc" - \
        setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$PLACE/rlock" -k "$KEY" -t 2 --on-lost pause -- "$PLACE/untouchable" "$PLACE/end"
    eventually 10 file_has "$DIR/command.out" running
    redis_pause
    eventually 10 file_has "$DIR/command.err" "can't be ended: pid "
    refute_match "$(<"$DIR/command.err")" ': paused: '
    redis_continue
    let_end
    assert_status 76
}
