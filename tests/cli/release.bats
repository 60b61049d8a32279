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
    rlock release -k "$KEY" --token-file "$DIR/theirs"
    gone "$KEY"
}

@test "with an empty RLOCK_TOKEN, as after a failed acquire, release exits with 64 and says why" {
    rlock acquire -k "$KEY" >"$DIR/token"
    RLOCK_TOKEN='' unchanged run -64 --separate-stderr rlock release -k "$KEY"
    assert_line 'usage: RLOCK_TOKEN is empty: the rlock acquire that should have set it has'
    echo "token-file = $DIR/token" >"$DIR/config" # the environment wins over the file's token-file
    export RLOCK_CONFIG=$DIR/config
    RLOCK_TOKEN='' unchanged run -64 --separate-stderr rlock release -k "$KEY"
    : >"$DIR/empty"
    unchanged run -64 --separate-stderr rlock release -k "$KEY" --token-file "$DIR/empty"
    assert_line "usage: no token: the first line of $DIR/empty is empty"
}

@test "releasing the lock of rlock's own command ends the command with 76" {
    run -76 --separate-stderr rlock -k "$KEY" -t 4 -- \
        sh -c '"$RLOCK" release -k "$KEY"; sleep 10; echo went on'
    assert_match "$stderr" 'lost: the server no longer has the lock'
    assert_eq "$output" ""
}
