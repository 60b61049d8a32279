#!/usr/bin/env bats
# passwords: the server's password changes while rlock holds a lock or waits for it. rlock looks the
# password up again, so no holder loses its lock and no waiter its place.

load ../helpers/common

TURNS=2 # changes of the password
WAITERS=2

setup() {
    common_setup
    redis_start
    SECRET=first
    umask 077 # rlock warns of a password that others may read
    printf '%s\n' "$SECRET" >"$DIR/password"
    redis_cli acl setuser job on '>first' '~*' '&*' +@all >/dev/null
    redis_cli acl setuser default '>first' >/dev/null
    mkfifo "$DIR/go"
    LINE="{$KEY}:rlock:queue"
    export RLOCK_URL=redis://job@127.0.0.1:$REDIS_PORT
}

admin() { REDISCLI_AUTH=first redis_cli "$@"; }

# tell_file PASSWORD: replaces the password file by rename, as programs that manage secrets do.
# tell_server PASSWORD: sets the password of the server's user `job`.
tell_file() {
    printf '%s\n' "$1" >"$DIR/password.new"
    mv "$DIR/password.new" "$DIR/password"
}
tell_server() { admin acl setuser job resetpass ">$1" >/dev/null; }
cut_all() { admin client kill user job skipme yes >/dev/null; }
in_line() { [[ $(admin zcard "$LINE") == "$1" ]]; }
connected() { (($(admin client list | grep -c ' user=job ') >= $1)); }

# rotated OPTION...: changes the password TURNS times, and closes all connections each time, while
# one rlock holds the lock and WAITERS wait for it. All of them must end well, in their order. The
# password file changes before the server's password in one round, and after it in the next.
rotated() {
    local each turn
    start holder "$RLOCK" "$@" -t 30 -k "$KEY" -- sh -c 'echo running; read -r _ <"$0"' "$DIR/go"
    eventually 10 file_has "$DIR/holder.out" running
    for ((each = 1; each <= WAITERS; each++)); do
        start "w$each" "$RLOCK" "$@" -t 30 -k "$KEY" -- sh -c "echo $each >>'$DIR/turns'"
        eventually 10 in_line "$each"
    done
    for ((turn = 1; turn <= TURNS; turn++)); do
        if ((turn % 2)); then
            tell_file "secret-$turn"
            tell_server "secret-$turn"
            cut_all
        else
            tell_server "secret-$turn"
            cut_all
            eventually 10 has_refused
            tell_file "secret-$turn"
        fi
        eventually 20 connected "$WAITERS" # the holder connects again when it renews
    done
    alive "$(<"$DIR/pids/holder")" || fail "the holder has ended: $(<"$DIR/holder.err")"
    echo >"$DIR/go"
    ended 0 holder 20
    for ((each = 1; each <= WAITERS; each++)); do
        ended 0 "w$each" 40
        refute_match "$stderr" 'secret-'
    done
    assert_eq "$(xargs <"$DIR/turns")" "$(seq -s ' ' "$WAITERS")" 'order of service'
}

# has_refused: true if the server has refused a password since has_refused was last true.
has_refused() {
    local log
    log=$(admin acl log 20)
    [[ $log == *auth* ]] && admin acl log reset >/dev/null
}

@test "--password-command: the password changes twice under a holder and waiters" {
    rotated --password-command "cat '$DIR/password'"
}

@test "a holder whose file keeps the old password: its command ends within the lease, status 76" {
    start holder "$RLOCK" --password-file "$DIR/password" -t 6 -k "$KEY" -- sleep 100
    eventually 10 connected 1
    tell_server other
    cut_all
    ended 76 holder 30
    assert_match "$stderr" 'lost: no renewal .*WRONGPASS'
}

@test "a waiter with the old password tries until --wait is over, and reports WRONGPASS" {
    admin set "$KEY" taken >/dev/null
    start waiter "$RLOCK" --password-file "$DIR/password" -w 6 -k "$KEY" -- true
    eventually 10 in_line 1
    tell_server other
    cut_all
    ended 75 waiter
    assert_match "$stderr" 'WRONGPASS.*looks the password up again'
}

none_marked() { [[ -z $(marked) ]]; }

@test "acquire --bind-pid: the renewing process uses the new password, and keeps no stdout open" {
    local token owner
    start owner sleep 100
    owner=$pid
    # The command substitution returns only when no process has its stdout open any more.
    token=$(rlock acquire --password-file "$DIR/password" -t 12 -k "$KEY" --bind-pid "$owner" \
        2>&1)
    assert_match "$token" '^[0-9a-f]{32}$'
    tell_file other
    tell_server other
    cut_all
    admin pexpire "$KEY" 9000 >/dev/null
    eventually 20 lasts_longer
    kill "$owner"
    eventually 10 freed
    eventually 10 none_marked
}
lasts_longer() { (($(admin pttl "$KEY") > 10000)); } # a renewal has come
freed() { [[ $(admin exists "$KEY") == 0 ]]; }
