#!/usr/bin/env bats
# rights: rlock can't end a command that runs as another user, for example by sudo. rlock reports
# that it can't, and where possible, keeps the lock as long as the command runs.

load ../helpers/common
load ../helpers/span

# The tests run rlock as user 65534, in a directory which that user can read. The command,
# `untouchable`, is set-user-ID root, so that rlock has no right to signal it.
setup() {
    common_setup
    [[ $(id -u) == 0 ]] || skip 'only root can make a set-user-ID root program'
    ttl=$(lease 2)
    need setpriv
    PLACE=$(mktemp -d /tmp/rlock-rights.XXXXXX)
    chmod 755 "$PLACE"
    cp "$RLOCK" "$TOOLS/untouchable" "$PLACE"
    chmod 4755 "$PLACE/untouchable"
    ! findmnt -no OPTIONS -T "$PLACE" | grep -qw nosuid || skip '/tmp is mounted nosuid'
    export HOME=$PLACE RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}
teardown() {
    [[ -z ${PLACE:-} ]] || touch "$PLACE/end"
    common_teardown
    [[ -z ${PLACE:-} ]] || rm -rf "$PLACE"
}

# start_command OPTION...: starts rlock with the command `untouchable`; sets pid and guard.
start_command() {
    start command setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$PLACE/rlock" -k "$KEY" "$@" -- "$PLACE/untouchable" "$PLACE/end"
    eventually 10 file_has "$DIR/command.out" running
    guard=$(guard_of "$pid")
}

why="can't be ended: pid [0-9]+ \\(untouchable\\): .* has other rights than rlock"
said() { file_has "$DIR/command.err" "rlock: $KEY: $why; $1"; }

let_end() {
    touch "$PLACE/end"
    finish command
    refute_match "$stderr" 'guard-lost'
}

@test "the lock is lost to another: rlock says it can't end the command, and waits, status 76" {
    start_command -t "$ttl"
    redis_cli set "$KEY" other XX
    eventually 5 said 'that process runs on without the lock'
    alive "$pid"
    let_end
    assert_status 76
    assert_eq "$(value "$KEY")" other
}

@test "the guard is killed: rlock keeps the lock until the command ends, and says so, status 76" {
    start_command -t "$ttl"
    kill -KILL "$guard"
    eventually 5 said 'rlock keeps the lock until that process ends'
    never $((ttl * 3 / 2)) gone "$KEY" # it is renewed
    touch "$PLACE/end"
    ended 76 command
    gone "$KEY"
}

@test "TERM to rlock: it keeps the lock until the command ends, says so, passes on the status" {
    start_command -t "$ttl"
    kill -TERM "$pid"
    eventually 5 said 'rlock keeps the lock until that process ends'
    never $((ttl * 3 / 2)) gone "$KEY" # it is renewed
    let_end
    assert_status 7
    gone "$KEY"
}

@test "rlock is killed: the guard says that the command runs on, and when the lock is free" {
    start_command -t "$ttl"
    kill -KILL "$pid"
    eventually 5 said 'the lock is free when its ttl ends'
    touch "$PLACE/end"
    eventually 5 dead "$guard"
    refute_match "$(<"$DIR/command.err")" 'the command was ended'
}

# lose_bound SCRIPT: starts a shell that binds a lock to itself, and then runs SCRIPT. Takes the
# lock away, and waits until rlock has said that it can't end the process.
lose_bound() {
    mkdir "$PLACE/log"
    chmod 777 "$PLACE/log"
    start command setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '
        "$0/rlock" acquire -k "$1" -t "$2" --bind-pid $$ --log "$0/log/why" >/dev/null || exit
        '"$1" "$PLACE" "$KEY" "$ttl"
    eventually 10 file_has "$DIR/command.out" running
    redis_cli set "$KEY" other XX
    eventually 10 file_has "$PLACE/log/why" \
        "rlock: $KEY: $why; that process runs on without the lock"
}

@test "--bind-pid: rlock says which process it can't end, and doesn't say that all have ended" {
    lose_bound '"$0/untouchable" "$0/end" & wait'
    refute_match "$(<"$PLACE/log/why")" 'were ended|guard-lost'
    kill -STOP "$(guard_of "$(renewd)")"
    eventually 10 file_has "$PLACE/log/why" "guard-lost: .* it is stopped"
    let_end
    eventually 10 alone
    assert_status 143
}

@test "--bind-pid: rlock says that it can't end the process itself, and not that it has ended" {
    lose_bound 'exec "$0/untouchable" "$0/end"'
    alive "$pid"
    alive "$(renewd)" # it waits for the end of the process
    refute_match "$(<"$PLACE/log/why")" ', ended at'
    let_end
    eventually 10 alone
}
