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

@test "a key of another type stays as it is, and release exits with 76" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY")
    export RLOCK_TOKEN
    redis_cli del "$KEY"
    redis_cli rpush "$KEY" a
    refused 'the lock is held by another' release -k "$KEY" --quiet-if-gone
}

@test "with a mistyped token release exits with 76 and changes nothing" {
    local token wrong
    token=$(rlock acquire -k "$KEY")
    local last=${token: -1}
    for wrong in "${token%?}" "${token}0" "${token^^}x" "${token%?}g" "${token%?} " ' ' x '*'; do
        RLOCK_TOKEN=$wrong refused 'no lock has such a token' release -k "$KEY" --quiet-if-gone
    done
    [[ $last != 0 ]] && last=0 || last=1
    RLOCK_TOKEN=${token%?}$last refused 'the lock is held by another' release -k "$KEY"
    RLOCK_TOKEN=$token rlock release -k "$KEY"
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

@test "the first line of --token-file is the token, and wins over RLOCK_TOKEN" {
    rlock acquire -k "$KEY" >"$DIR/token"
    echo 'the rest does not count' >>"$DIR/token"
    RLOCK_TOKEN=x run -0 rlock release -k "$KEY" --token-file "$DIR/token"
    gone "$KEY"
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

@test "of several keys, release frees those that the token holds; any other key gives status 76" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -k "$KEY:2" -k "$KEY:3")
    export RLOCK_TOKEN
    redis_cli set "$KEY:2" other XX PX 60000
    redis_cli del "$KEY:3"
    run -76 --separate-stderr rlock release -k "$KEY" -k "$KEY:2" -k "$KEY:3" --quiet-if-gone
    assert_line 'held by another'
    gone "$KEY"
    assert_eq "$(value "$KEY:2")" other
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -k "$KEY:3")
    rlock release -k "$KEY" -k "$KEY:3"
    gone "$KEY" && gone "$KEY:3"
}

@test "of a shared or slot lock each token releases only its own lease" {
    local first second way
    for way in -s '--slots 2'; do
        # shellcheck disable=SC2086
        first=$(rlock acquire -k "$KEY" $way) && second=$(rlock acquire -k "$KEY" $way)
        RLOCK_TOKEN=$first rlock release -k "$KEY"
        exists "$KEY"
        RLOCK_TOKEN=$first refused 'the lock is gone' release -k "$KEY"
        RLOCK_TOKEN=$second rlock release -k "$KEY"
        gone "$KEY"
    done
}

@test "after a release the first waiter is granted the lock at once" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -t 60)
    start next "$RLOCK" -k "$KEY" -- true
    export RLOCK_TOKEN
    eventually 5 waits
    rlock release -k "$KEY"
    finish next
    assert_status 0
}
waits() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == 1 ]]; }

# bats test_tags=long
@test "renewals that reach the server after the release don't restore the lock" {
    shell sh -t 1
    redis_pause
    tell_later
    redis_continue
    eventually 5 alone
    gone "$KEY"
}
# tell_later: lets the shell send a release to the paused server. Meanwhile the renew daemon sends
# renewals, which the server reads after the release.
tell_later() {
    echo 'RLOCK_CONNECT_TIMEOUT=9 "$RLOCK" release -k "$KEY"' >"$DIR/sh.in"
    sleep 0.4
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
