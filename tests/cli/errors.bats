#!/usr/bin/env bats
# errors: what rlock says when it can't get a lock from the server: why, and what to do.

load ../helpers/common
load ../helpers/fake
load ../helpers/pty

setup() {
    common_setup
    unset REDISCLI_AUTH REDIS_URL "${!RLOCK_PASSWORD@}"
    export RLOCK_URL=
    n_fakes=0
}

# fake STEP...: starts a server that does these steps for each connection; sets FAKE_PORT.
fake() { fake_start "fake$((++n_fakes))" < <(printf '%s\n' ACCEPT "$@" LOOP); }

# try OPTION...: runs rlock with the server that was started last.
try() {
    run --separate-stderr rlock -u "redis://127.0.0.1:$FAKE_PORT" -k "$KEY" "$@" -- true
}

# ---- error replies ----

@test "an error reply: rlock says what it means, then what to do, then the server's own words" {
    local reply wanted sentence advice KEY="$KEY 1"
    local in_script=' script: 0123456789abcdef0123456789abcdef01234567, on @user_script:12.'
    local words=([69]='server not ready' [77]=refused [78]=misconfigured)
    while IFS='|' read -r reply wanted && read -r sentence && read -r advice; do
        fake READ "SEND -$reply$in_script\\r\\n" READ "SEND -$reply$in_script\\r\\n"
        try -n --connect-timeout 1
        assert_status "$wanted"
        assert_eq "$stderr" "rlock: $KEY: ${words[wanted]}: 127.0.0.1:$FAKE_PORT: $sentence; \
${advice/PORT/$FAKE_PORT}; the server says: $reply"
    done <<END
NOAUTH Authentication required.|77
the server wants a password, and none was given
name the file that has it with --password-file FILE, or set RLOCK_PASSWORD
NOPERM User app has no permissions to run the 'eval' command|77
the server's rules (ACL) deny this user scripts (EVAL)
rlock doctor -k '$KEY' lists what to allow
READONLY You can't write against a read only replica.|69
the server is a replica, which grants no locks
name the primary with -u, or the Sentinels: -u redis+sentinel://HOST/SERVICE
CROSSSLOT Keys in request don't hash to the same slot|78
these keys are in different hash slots of the Cluster
give all keys the same text between braces, as in {job}:a and {job}:b
END
}

@test "an error reply in JSON: the server's own words have a member of their own" {
    fake READ 'SEND -NOAUTH Authentication required.\r\n' STALL
    try -n --json
    assert_status 77
    python3 -c '
import json, sys
event = json.loads(sys.argv[1])
assert event["why"].endswith(": the server wants a password, and none was given"), event
assert "--password-file" in event["hint"] and "says" not in event["hint"], event
assert event["said"] == "the server says: NOAUTH Authentication required.", event' "$stderr"
}

# ---- messages that the lock may stay taken ----

@test "a server that speaks HTTP or SSH: rlock says so at once, without 'may stay taken'" {
    fake READ 'SEND HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n' CLOSE
    try -w 20
    assert_status 69
    assert_eq "${stderr#*": 127.0.0.1:$FAKE_PORT: "}" "no Redis server answers at this address; \
check the host and the port of the URL (-u); the server says: HTTP/1.1 400 Bad Request"
    fake 'SEND SSH-2.0-OpenSSH_9.2p1\r\n' STALL
    try
    assert_status 69
    assert_match "$stderr" 'no Redis server answers .* says: SSH-2.0-OpenSSH_9.2p1$'
}

@test "two URLs of one server: status 78, and the lock is free; rlock doesn't say it may be taken" {
    redis_start
    run -78 --separate-stderr rlock -u "redis://127.0.0.1:$REDIS_PORT" \
        -u "redis://localhost:$REDIS_PORT" -u redis://127.0.0.1:1 -k "$KEY" -n -- true
    assert_match "$stderr" 'are the same server: name each server once$'
    assert_eq "$(redis_cli exists "$KEY")" 0
}

# ---- the first contact ----

@test "on a terminal rlock shows at once why it can't reach the server, and how long it tries" {
    pty_start
    pty_type '"$RLOCK" -u redis://127.0.0.1:1 -k job --connect-timeout 60 -- true'
    pty_expect 5 'server unreachable, trying for [1m0-9]+s: 127.0.0.1:1: connect'
    pty_key C-c
    pty_prompt
    pty_type '"$RLOCK" -u redis://127.0.0.1:1 -k job -n -- true'
    pty_expect 5 'unreachable: 127.0.0.1:1: connect: Connection refused'
    pty_prompt
    refute_match "$(pty_screen | tail -n 3)" 'trying'
    pty_end
}

# ---- files with passwords ----

# exposed MODE [OPTION...]: runs rlock with a password file, and with a configuration file that has
# the password, both of this mode. Both runs' messages are in $DIR/said.
exposed() {
    local at=127.0.0.1:$REDIS_PORT
    chmod "$1" "$DIR/password" "$DIR/config"
    run -0 --separate-stderr rlock -u "redis://$at" --password-file "$DIR/password" -k "$KEY" \
        "${@:2}" -- true
    printf '%s\n' "$stderr" >"$DIR/said"
    RLOCK_CONFIG=$DIR/config run -0 --separate-stderr rlock -k "$KEY" "${@:2}" -- true
    printf '%s\n' "$stderr" >>"$DIR/said"
}

@test "a password in a file that others may read: rlock warns once, not with -q; doctor says weak" {
    local mode
    redis_start redis --requirepass sesame
    echo sesame >"$DIR/password"
    echo "url = redis://:sesame@127.0.0.1:$REDIS_PORT" >"$DIR/config"
    for mode in 644 640 604 610; do
        exposed "$mode"
        assert_eq "$(grep -c "warning: $DIR/.* has a password, and others .* may read it: chmod" \
            "$DIR/said")" 2 "warnings with mode $mode"
    done
    exposed 644 -q
    assert_eq "$(tr -d '\n' <"$DIR/said")" '' 'messages with -q'
    for mode in 600 400; do
        exposed "$mode"
        assert_eq "$(tr -d '\n' <"$DIR/said")" '' "messages with mode $mode"
    done
    run rlock doctor -u "redis://127.0.0.1:$REDIS_PORT" --password-file "$DIR/password"
    assert_match "$output" "good +password: only its owner may read it in $DIR/password"
    chmod 644 "$DIR/password" "$DIR/config"
    run rlock doctor -u "redis://127.0.0.1:$REDIS_PORT" --password-file "$DIR/password"
    assert_match "$output" "weak +password: others than the owner may read it in $DIR/pass.*; take"
    RLOCK_CONFIG=$DIR/config run rlock doctor
    assert_match "$output" "weak +password: others than the owner may read it in $DIR/config; take"
}
