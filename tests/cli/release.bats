#!/usr/bin/env bats
# release: give a lock back by its token, and never a lock of another token.

load ../helpers/common
load ../helpers/span

# refused REGEX ARG...: rlock ends with 76 and one line that matches, and changes nothing on the
# server.
refused() {
    local says=$1
    shift
    unchanged run -76 --separate-stderr rlock "$@"
    assert_line "^rlock: $KEY: not-yours: $says"
    assert_eq "$output" ""
}

@test "after a release the lock is free, and only the key of its fence is left" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY")
    export RLOCK_TOKEN
    exists "$KEY"
    run -0 --separate-stderr rlock release -k "$KEY"
    assert_eq "$output$stderr" ""
    assert_eq "$(redis_cli --scan)" "{$KEY}:rlock:fence"
    assert_between "$(ttl_ms "{$KEY}:rlock:fence")" 1 $((8 * 86400 * 1000))
}

@test "a second release exits with 76, and with 0 if --quiet-if-gone is given" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY")
    export RLOCK_TOKEN
    rlock release -k "$KEY"
    refused 'the lock is gone' release -k "$KEY"
    unchanged run -0 --separate-stderr rlock release -k "$KEY" --quiet-if-gone
    assert_eq "$stderr" ""
}

@test "another holder's lock stays held: release exits with 76, also with --quiet-if-gone" {
    local mine kind
    mine=$(rlock acquire -k "$KEY")
    redis_cli del "$KEY"
    redis_cli set "$KEY" other PX 60000
    for kind in foreign rlock; do
        RLOCK_TOKEN=$mine refused 'the lock is held by another' release -k "$KEY"
        RLOCK_TOKEN=$mine refused 'the lock is held by another' release -k "$KEY" --quiet-if-gone
        redis_cli del "$KEY"
        rlock acquire -k "$KEY" >"$DIR/theirs"
    done
    RLOCK_TOKEN=$(<"$DIR/theirs") rlock release -k "$KEY"
}

@test "release exits with 64 without a token, and with 78 if the token file can't be read" {
    unchanged run -64 --separate-stderr rlock release -k "$KEY"
    assert_line 'usage: no token: '
    : >"$DIR/empty"
    unchanged run -64 --separate-stderr rlock release -k "$KEY" --token-file "$DIR/empty"
    assert_line 'usage: no token: '
    unchanged run -78 --separate-stderr rlock release -k "$KEY" --token-file "$DIR/none"
    assert_line "misconfigured: token file $DIR/none: No such file"
}

@test "with an empty RLOCK_TOKEN, as after a failed acquire, release exits with 64 and says why" {
    needs_token release
}

@test "renew and release ignore a configuration's options for new locks" {
    local token
    token=$(rlock acquire -k "$KEY" -k "$KEY:2")
    printf '%s\n' 'slots = 4' 'protocol = timestamp' 'kill-after = 20' >"$DIR/config"
    export RLOCK_CONFIG=$DIR/config RLOCK_TOKEN=$token
    rlock renew -k "$KEY" -k "$KEY:2" -t 10
    rlock release -k "$KEY" -k "$KEY:2"
    gone "$KEY" && gone "$KEY:2"
}

@test "releasing the lock of rlock's own command ends the command with 76" {
    run -76 --separate-stderr rlock -k "$KEY" -t 4 -- \
        sh -c '"$RLOCK" release -k "$KEY"; sleep 10; echo went on'
    assert_match "$stderr" 'lost: the server no longer has the lock'
    assert_eq "$output" ""
}

@test "release exits with 69 without a server, with 77 if refused, and the lock stays held" {
    local token
    token=$(rlock acquire -k "$KEY")
    RLOCK_TOKEN=$token run -69 --separate-stderr rlock release -k "$KEY" -u redis://127.0.0.1:1 \
        --connect-timeout 0.2
    assert_line 'unreachable'
    RLOCK_URL=redis://nobody:x@127.0.0.1:$REDIS_PORT RLOCK_TOKEN=$token \
        run -77 --separate-stderr rlock release -k "$KEY"
    assert_line 'refused'
    exists "$KEY"
}
