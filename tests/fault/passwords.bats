#!/usr/bin/env bats
# passwords: a password that changes while one holds a lock and others wait for it: nobody is lost.

load ../helpers/common

TURNS=${RLOCK_TEST_ROTATIONS:-3} # by hand: 20
WAITERS=10

setup() {
    common_setup
    redis_start
    SECRET=first
    printf '%s\n' "$SECRET" >"$DIR/password"
    redis_cli acl setuser job on '>first' '~*' '&*' +@all >/dev/null
    redis_cli acl setuser default '>first' >/dev/null
    mkfifo "$DIR/go"
    LINE="{$KEY}:rlock:queue"
    export RLOCK_URL=redis://job@127.0.0.1:$REDIS_PORT
}

admin() { REDISCLI_AUTH=first redis_cli "$@"; }

# As a program that manages secrets does it: the file is replaced at once.
tell_file() {
    printf '%s\n' "$1" >"$DIR/password.new"
    mv "$DIR/password.new" "$DIR/password"
}
tell_server() { admin acl setuser job resetpass ">$1" >/dev/null; }
cut_all() { admin client kill user job skipme yes >/dev/null; }
in_line() { [[ $(admin zcard "$LINE") == "$1" ]]; }
connected() { (($(admin client list | grep -c ' user=job ') >= $1)); }

# rotated OPTION...: one holds, ten wait, and the password changes again and again; then each has
# its turn. The file is told before the server, or behind it, or the command prints it.
rotated() {
    local each turn before
    start holder "$RLOCK" "$@" -t 30 -k "$KEY" -- sh -c 'echo running; read -r _ <"$0"' "$DIR/go"
    eventually 10 file_has "$DIR/holder.out" running
    for ((each = 1; each <= WAITERS; each++)); do
        start "w$each" "$RLOCK" "$@" -t 30 -k "$KEY" -- sh -c "echo $each >>'$DIR/turns'"
        eventually 10 in_line "$each"
    done
    for ((turn = 1; turn <= TURNS; turn++)); do
        before=$(admin info stats | tr -d '\r' | sed -n 's/^total_connections_received://p')
        if ((turn % 2)); then
            tell_file "secret-$turn"
            tell_server "secret-$turn"
            cut_all
        else
            tell_server "secret-$turn"
            cut_all
            eventually 10 refused_since "$before"
            tell_file "secret-$turn"
        fi
        eventually 20 connected "$WAITERS" # the holder has none to lose until it renews
    done
    alive "$(<"$DIR/pids/holder")" || fail "the holder has ended: $(<"$DIR/holder.err")"
    echo >"$DIR/go"
    finish holder 20
    assert_status 0
    for ((each = 1; each <= WAITERS; each++)); do
        finish "w$each" 40
        assert_status 0
        refute_match "$stderr" 'secret-'
    done
    assert_eq "$(xargs <"$DIR/turns")" "$(seq -s ' ' "$WAITERS")" 'turns, in order'
}

# The old password was tried, and refused, by somebody.
refused_since() {
    local log
    log=$(admin acl log 20)
    [[ $log == *auth* ]] && admin acl log reset >/dev/null
}

@test "a password file that is rewritten $TURNS times under a holder and $WAITERS waiters" {
    rotated --password-file "$DIR/password"
}

@test "a password command that prints another each time, under a holder and $WAITERS waiters" {
    rotated --password-command "cat '$DIR/password'"
}

@test "a holder renews with the password that the file has now, and gives the lock back" {
    start holder "$RLOCK" --password-file "$DIR/password" -t 3 -v -k "$KEY" -- \
        sh -c 'echo running; read -r _ <"$0"' "$DIR/go"
    eventually 10 file_has "$DIR/holder.out" running
    tell_server other
    cut_all
    eventually 10 file_has "$DIR/holder.err" 'renewal-failed: .*WRONGPASS'
    tell_file other
    eventually 10 file_has "$DIR/holder.err" renewed
    tell_file third
    tell_server third
    cut_all
    echo >"$DIR/go"
    finish holder
    assert_status 0
    assert_match "$stderr" 'released'
    assert_eq "$(admin exists "$KEY")" 0
}

@test "a holder whose file never has the right password again is lost at its lease's end: 76" {
    start holder "$RLOCK" --password-file "$DIR/password" -t 2 -k "$KEY" -- sleep 100
    eventually 10 connected 1
    tell_server other
    cut_all
    finish holder
    assert_status 76
    assert_match "$stderr" 'lost: no renewal .*WRONGPASS'
}

@test "a waiter whose file never has the right password again ends with its wait" {
    admin set "$KEY" taken >/dev/null
    start waiter "$RLOCK" --password-file "$DIR/password" -w 3 -k "$KEY" -- true
    eventually 10 in_line 1
    tell_server other
    cut_all
    finish waiter
    assert_status 75
    assert_match "$stderr" 'WRONGPASS.*looked up again'
}

@test "at the first contact a wrong password is looked up once more, and then it is 77" {
    admin acl log reset >/dev/null
    tell_file wrong
    run -77 --separate-stderr rlock --password-file "$DIR/password" -k "$KEY" -- true
    assert_eq "$(admin acl log | grep -A1 '^count$' | tail -1)" 2 'passwords tried'
    run -0 rlock -k "$KEY" --password-command \
        "cat '$DIR/password' && echo first >'$DIR/password'" -- true
}

@test "a file that hangs, or a command, keeps nobody: a signal ends rlock, and the lock is free" {
    local child
    start waiting "$RLOCK" --password-command 'echo started >&2; sleep 100' --connect-timeout 60 \
        -k "$KEY" -- true
    eventually 10 file_has "$DIR/waiting.err" started
    child=$(descendants "$pid" | xargs)
    kill "$pid"
    finish waiting
    assert_status 143
    for pid in $child; do
        eventually 5 dead "$pid"
    done
}

@test "a password command is killed, with what it started, at the connect time-out" {
    run_ms rlock --password-command 'sleep 100 & sleep 100; echo first' --connect-timeout 1 \
        -k "$KEY" -- true
    assert_status 78
    assert_line 'password command: it did not end within --connect-timeout, and was killed'
    is_sanitized || assert_between "$took" 800 8000
    eventually 5 none_marked
}
none_marked() { [[ -z $(marked) ]]; }

@test "a password command gets no secret of rlock's, nothing of a lock, and no descriptor" {
    local name
    export RLOCK_PASSWORD_OLD=x REDIS_URL=redis://u:x@h VALKEYCLI_AUTH=x OTHER=y
    run -0 rlock -k "$KEY" \
        --password-command "echo first; { env; ls /proc/self/fd; tty; cat; } >'$DIR/seen'" -- \
        "$RLOCK" -n --password-command "echo first; env >'$DIR/inner'" -k "$KEY:2" -- true
    for name in RLOCK_PASSWORD RLOCK_PASSWORD_OLD REDIS_URL VALKEYCLI_AUTH RLOCK_TOKEN RLOCK_KEY; do
        ! grep -q "^$name=" "$DIR/seen" "$DIR/inner" || fail "$name"
    done
    grep -q '^OTHER=y$' "$DIR/seen"
    grep -q 'not a tty' "$DIR/seen"
    ! grep -qE '^([4-9]|[1-9][0-9]+)$' "$DIR/seen" || fail "descriptors: $(<"$DIR/seen")"
}

@test "a lock that is bound to a process: the password may change, and nobody's output is held" {
    local token owner
    start owner sleep 100
    owner=$pid
    token=$(rlock acquire --password-file "$DIR/password" -t 3 -k "$KEY" --bind-pid "$owner" 2>&1)
    assert_match "$token" '^[0-9a-f]{32}$'
    tell_file other
    tell_server other
    cut_all
    admin pexpire "$KEY" 2500 >/dev/null
    eventually 5 lasts_longer
    kill "$owner"
    eventually 5 freed
    eventually 5 none_marked
}
lasts_longer() { (($(admin pttl "$KEY") > 2600)); }
freed() { [[ $(admin exists "$KEY") == 0 ]]; }
