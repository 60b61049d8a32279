#!/usr/bin/env bats
# replicas: with --replicas a grant counts only when the replicas have confirmed it. The tests use a
# primary with two replicas, and stop one replica.

load ../helpers/common

setup_file() {
    redis_start primary
    local port=$REDIS_PORT
    redis_start one --replicaof "127.0.0.1 $port"
    redis_start two --replicaof "127.0.0.1 $port"
    redis_use primary
    redis_cli config set repl-diskless-sync-delay 0
    eventually 20 have_joined 2
}

setup() {
    common_setup
    redis_use primary
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}
teardown() {
    redis_use two
    redis_continue
    redis_use primary
    common_teardown
}

have_joined() { [[ $(redis_cli info replication | grep -c 'state=online') == "$1" ]]; }
stop_two() {
    redis_use two
    redis_pause
    redis_use primary
}
waits() { redis_cli info commandstats | sed -n 's/^cmdstat_wait:calls=\([0-9]*\).*/\1/p'; }

@test "replicas: the grant counts when each replica has it, and costs one WAIT" {
    redis_cli config resetstat
    hold first -k "$KEY" --replicas 2
    local name
    for name in one two primary; do
        redis_use "$name"
        assert_match "$(value "$KEY")" "^$(env_of first RLOCK_TOKEN) " "$name"
    done
    let_pass first
    assert_eq "$(waits)" 1
    RLOCK_REPLICAS=2 "$RLOCK" --replicas 0 -k "$KEY" -- true
    "$RLOCK" -k "$KEY" -- true
    assert_eq "$(waits)" 1
}

@test "replicas: with too few, rlock exits with 69, and releases the lock for the next rlock" {
    stop_two
    run --separate-stderr "$RLOCK" -k "$KEY" -n -t 5 --replicas 2 -- touch "$DIR/ran"
    assert_status 69
    assert_line "^rlock: $KEY: too few replicas: .*only 1 of 2 replicas confirmed "
    assert_match "$stderr" "; the lock was released again; look at the replicas: redis-cli "
    [[ ! -e $DIR/ran ]]
    gone "$KEY"
    run --separate-stderr "$RLOCK" -k "$KEY" -n --replicas 1 -- true
    assert_status 0
    assert_eq "$stderr" ''
}

@test "replicas: a renewal that a replica lacks doesn't count, and the command is ended" {
    hold first -k "$KEY" -t 2 --replicas 2
    stop_two
    ended 76 first
    assert_match "$stderr" 'only 1 of 2 replicas confirmed the lock in time'
    eventually 5 gone "$KEY"
}

@test "replicas: if more are wanted than exist, or WAIT is refused, rlock fails without a lock" {
    run --separate-stderr "$RLOCK" -k "$KEY" -n -t 2 --replicas 3 -- touch "$DIR/ran"
    assert_status 69
    gone "$KEY"
    redis_cli acl setuser poor reset on '>secret' '~*' +@all -wait
    run --separate-stderr env RLOCK_URL="redis://poor:secret@127.0.0.1:$REDIS_PORT" \
        "$RLOCK" -k "$KEY" --replicas 1 -- touch "$DIR/ran"
    assert_status 77
    assert_match "$stderr" 'NOPERM'
    gone "$KEY"
    [[ ! -e $DIR/ran ]]
}

@test "replicas: --replicas works for acquire and renew, too" {
    redis_cli config resetstat
    RLOCK_TOKEN=$("$RLOCK" acquire -k "$KEY" -t 30 --replicas 2)
    export RLOCK_TOKEN
    run -0 --separate-stderr "$RLOCK" renew -k "$KEY" --replicas 2
    assert_eq "$(waits)" 2
    stop_two
    run -69 --separate-stderr "$RLOCK" renew -k "$KEY" -t 30 --replicas 2
    assert_match "$stderr" 'only 1 of 2 replicas confirmed the lock in time'
    run -0 --separate-stderr "$RLOCK" release -k "$KEY"
    run -69 --separate-stderr "$RLOCK" acquire -k "$KEY" -n -t 5 --replicas 2
    assert_eq "$output" ''
    gone "$KEY"
}
