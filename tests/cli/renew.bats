#!/usr/bin/env bats
# renew: extend a lease by its token; never shorten it, and never extend another token's lease.

load ../helpers/common
load ../helpers/span

lasts() { assert_between "$(ttl_ms "$KEY")" $(($1 - 5000)) "$1" 'time left'; }

@test "after a renewal the lease lasts for the TTL of the grant again, or for the TTL of -t" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -t 100)
    export RLOCK_TOKEN
    redis_cli pexpire "$KEY" 3000
    run -0 --separate-stderr rlock renew -k "$KEY"
    assert_eq "$output$stderr" ""
    lasts 100000
    rlock renew -k "$KEY" -t 200
    lasts 200000
    redis_cli pexpire "$KEY" 3000
    run -0 --separate-stderr rlock renew -k "$KEY" -v
    assert_match "$stderr" 'renewed: for 19[0-9]\.[0-9] s'
    lasts 200000
}

@test "renew exits with 76 for a lock that is gone or another's, and for a mistyped token" {
    local token
    token=$(rlock acquire -k "$KEY")
    unchanged_by "${token%?}g" 'no lock has such a token'
    unchanged_by "$(tr 0-9a-f 1-9a-f0 <<<"$token")" 'the lock is held by '
    RLOCK_TOKEN=$token rlock release -k "$KEY"
    unchanged_by "$token" 'the server no longer has the lock'
    redis_cli set "$KEY" other PX 60000
    unchanged_by "$token" 'the lock is held by another program \("other", the key.s value, not w'
    lasts 60000
    redis_cli flushall
    unchanged_by "$token" 'the server no longer has the lock'
}
unchanged_by() {
    RLOCK_TOKEN=$1 unchanged run -76 --separate-stderr rlock renew -k "$KEY" -t 300
    assert_line "^rlock: $KEY: not-yours: $2"
}

@test "renew waits for a server that restarts, for up to --connect-timeout" {
    redis_start own
    RLOCK_URL=unix://$REDIS_SOCKET
    export RLOCK_URL
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -t 100)
    export RLOCK_TOKEN
    redis_pause
    start renewal "$RLOCK" renew -k "$KEY" -t 200
    never 1 dead "$pid"
    redis_continue
    ended 0 renewal
    lasts 200000
    redis_crash
    run -69 rlock renew -k "$KEY" --connect-timeout 0.3
    redis_use redis
}
