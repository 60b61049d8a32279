#!/usr/bin/env bats
# battery: each kind of use once, on the server that RLOCK_TEST_SERVER names (`make check-servers`).
# The tests of tests/cli show more, on the installed server alone.

load ../helpers/common
load ../helpers/cluster
load ../helpers/sentinel

setup_file() { redis_start redis --appendonly yes; }
setup() {
    common_setup
    redis_use redis
    redis_cli flushall >/dev/null
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}

wait_in_line() { queued "$@" -- sh -c 'echo "$0" >>"$1"' "$1" "$DIR/served"; } # NAME OPTION...
ends() { # STATUS NAME...
    local name
    for name in "${@:2}"; do
        ended "$1" "$name" 20
    done
}
renewed() { [[ $(redis_cli info commandstats) =~ cmdstat_pexpire:calls=([0-9]+) ]] &&
    ((BASH_REMATCH[1] >= $1)); }

@test "run passes on the command's status and environment, and leaves only the fence" {
    # shellcheck disable=SC2016 # the command expands it
    run -7 rlock -k "$KEY" -- sh -c '[ "$RLOCK_KEY" = "$0" ] && [ -n "$RLOCK_FENCE" ] && exit 7' \
        "$KEY"
    assert_eq "$(redis_cli keys '*')" "{$KEY}:rlock:fence" 'keys left'
}

@test "waiters are served in order, with --queue none in any; -n and -w end with 75" {
    hold holder -k "$KEY"
    run -75 rlock -k "$KEY" -n -- true
    run -75 rlock -k "$KEY" -w 2 -- true
    wait_in_line a
    wait_in_line b
    wait_in_line c
    let_go holder
    ends 0 a b c
    assert_eq "$(xargs <"$DIR/served")" 'a b c' 'order'
    hold holder -k "$KEY"
    run -75 rlock -k "$KEY" --queue none -w 2 -- true
    start none "$RLOCK" -k "$KEY" --queue none -- true
    let_go holder
    ends 0 none
}

@test "--queue newest: the newer waiter ends the older" {
    hold holder -k "$KEY"
    wait_in_line old --queue newest
    start new "$RLOCK" -k "$KEY" --queue newest -- true
    ends 75 old
    let_go holder
    ends 0 new
}

@test "a lease is renewed; break takes it away, and the command ends with 76" {
    redis_cli config resetstat >/dev/null
    hold holder -k "$KEY" -t 1.5 # so short that it ends if the renewals fail
    eventually 10 renewed 3
    let_pass holder
    hold holder -k "$KEY"
    run -75 rlock status -k "$KEY"
    run -0 rlock break -k "$KEY" --yes
    ended 76 holder 20
}

@test "shared holders at the same time, slots up to their number" {
    hold one -s -k "$KEY"
    hold two -s -k "$KEY"
    run -75 rlock -n -k "$KEY" -- true
    let_go one
    let_go two
    run -0 rlock -n -k "$KEY" -- true
    hold one --slots 2 -k "$KEY:s"
    hold two --slots 2 -k "$KEY:s"
    assert_eq "$(env_of one RLOCK_SLOT)$(env_of two RLOCK_SLOT)" 01
    run -75 rlock -n --slots 2 -k "$KEY:s" -- true
    let_go one
    let_go two
}

@test "--once runs once; --min-hold keeps the lock; several keys are had all or none" {
    run -0 rlock --once 1m -k "$KEY" -- touch "$DIR/ran"
    run -0 rlock --once 1m -k "$KEY" -- touch "$DIR/again"
    [[ -e $DIR/ran && ! -e $DIR/again ]]
    run -0 rlock --min-hold 1m -k "$KEY:m" -- true
    run -75 rlock -n -k "$KEY:m" -- true
    hold holder -k "{$KEY}b"
    run -75 rlock -n -k "{$KEY}a" -k "{$KEY}b" -- true
    run -0 rlock -n -k "{$KEY}a" -k "{$KEY}c" -- true
    let_go holder
}

@test "an inner rlock doesn't wait for the outer one" {
    run -3 rlock -k "$KEY" -- "$RLOCK" -n -k "$KEY" -- sh -c 'exit 3'
}

@test "acquire, renew and release by token; hold, list and its metrics" {
    local RLOCK_TOKEN
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -t 100)
    export RLOCK_TOKEN
    run -0 rlock renew -k "$KEY" -t 200
    assert_between "$(ttl_ms "$KEY")" 190000 200000
    run -0 rlock release -k "$KEY"
    run -76 rlock release -k "$KEY"
    unset RLOCK_TOKEN
    run -0 rlock hold -k "$KEY" --for 1h
    run -0 rlock list
    assert_match "$output" "$KEY"
    run -0 rlock list --format prometheus
    assert_match "$output" "rlock_lock_held\{key=\"$KEY\"\} 1"
    run -0 rlock release -k "$KEY"
}

@test "history notes how a hold ended" {
    run -5 rlock --history 9 -k "$KEY" -- sh -c 'exit 5'
    run -0 rlock history -k "$KEY"
    assert_match "$output" 'status 5'
    run -0 rlock list --format prometheus
    assert_match "$output" "rlock_lock_last_end_status\{key=\"$KEY\"\} 5"
}

@test "--protocol timestamp, and --scripts no, exclude others and are released" {
    local options
    for options in '--protocol timestamp' '--scripts no'; do
        # shellcheck disable=SC2086
        hold holder $options -k "$KEY" -t 3
        # shellcheck disable=SC2086
        run -75 rlock $options -n -k "$KEY" -- true
        let_pass holder
        gone "$KEY"
    done
}

@test "a user with the manual's rights can use them, and one who lacks a right is told which" {
    redis_user job '~test:*' '~{test:*'
    redis_allow_inspection job
    export RLOCK_URL=redis://job:SECRET@127.0.0.1:$REDIS_PORT
    run -0 rlock -k "$KEY" -- true
    run -0 rlock -s -k "$KEY" -- true
    run -0 rlock --slots 2 -k "$KEY" -- true
    hold holder -k "$KEY" -t 1.5
    wait_in_line waiter
    run -75 rlock status -k "$KEY"
    run -0 rlock list 'test:*'
    run rlock doctor -k "$KEY"
    assert_match "$output" 'good +rights'
    let_go holder
    ends 0 waiter
    redis_cli acl setuser job -pexpire >/dev/null
    run -77 rlock -k "$KEY" -- true
    assert_match "$output" 'PEXPIRE|pexpire'
}

@test "doctor knows the server, and finds nothing unsafe in it" {
    local version kind
    version=$("$RLOCK_TEST_SERVER" --version | sed 's/.* v=\([^ ]*\).*/\1/')
    kind=$("$RLOCK_TEST_SERVER" --version | cut -d ' ' -f 1)
    run rlock doctor -k "$KEY"
    assert_match "$output" "good +server: +$kind $version"
    # somebody may set the machine's clock meanwhile
    refute_match "$(grep -vE 'clock( rate)?:' <<<"$output")" 'unsafe'
}

# bats test_tags=topology
@test "Sentinel: the lock is on the primary that Sentinels name, also after a failover" {
    sentinel_start 1 1
    export RLOCK_URL=redis+sentinel://$SENTINELS/main
    run -4 rlock -k "$KEY" -- sh -c 'exit 4'
    local primary
    primary=$(primary_of 1)
    server_at "$primary"
    redis_crash
    sentinel_fail_over "$primary"
    run -4 rlock -w 20 -k "$KEY" -- sh -c 'exit 4'
}

# bats test_tags=topology
@test "Cluster: a lock is found from each node; a waiter is served; one slot for several keys" {
    local each
    cluster_start 3
    for each in 1 2; do
        node "$each"
        RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
        run -4 rlock -s -k "$KEY$each" -- sh -c 'exit 4'
        run -4 rlock -k "$KEY$each" -- sh -c 'exit 4'
    done
    run -78 rlock -k "${KEY}1" -k "${KEY}2" -- true
    run -0 rlock -k "{$KEY}1" -k "{$KEY}2" -- true
    node "$(owner_of "$(slot_of "$KEY")")"
    hold holder -k "$KEY"
    wait_in_line waiter
    let_go holder
    ends 0 waiter
}
