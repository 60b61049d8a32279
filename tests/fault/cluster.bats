#!/usr/bin/env bats
# cluster: a primary of a Redis Cluster dies or hangs while rlock holds its locks or waits for them.

load ../helpers/common
load ../helpers/cluster

setup_file() {
    local each
    cluster_start 3 1
    for each in {1..6}; do
        node "$each"
        redis_user rlock
        redis_allow_inspection rlock
    done
}
teardown_file() {
    local each
    for each in {1..6}; do
        node "$each"
        dead "$REDIS_PID" || redis_stop
    done
}

setup() {
    common_setup
    KEY=job:$KEY # the keys that the user `rlock` of these servers may touch begin with job:
    ttl=12
    ! is_sanitized || ttl=24
}

line_at() { [[ $(on "$1" zcard "{$KEY}:rlock:queue" 2>&1) == "$2" ]]; }
# choose_key: sets KEY to a key whose primary has a replica that can take the primary's place, SLOT
# to the key's slot and OWNER to the number of that primary.
choose_key() {
    local each
    for each in {1..200}; do
        use_another_node
        SLOT=$(redis_cli cluster keyslot "$KEY:$each")
        OWNER=$(owner_of "$SLOT")
        node "$OWNER"
        ! redis_cli info replication | grep -q 'state=online' || break
    done
    KEY=$KEY:$each
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$OWNER")
    export RLOCK_URL
}
# use_another_node: makes redis_cli talk to a running node that is not OWNER.
use_another_node() {
    local each
    for each in {1..6}; do
        node "$each"
        [[ $each != "${OWNER:-}" ]] && ! dead "$REDIS_PID" && ! stopped "$REDIS_PID" && return
    done
}
has_new_owner() {
    local new
    use_another_node
    new=$(owner_of "$SLOT")
    [[ $new == [1-6] && $new != "$OWNER" ]]
}
# is_replicated N: true if a replica of node N has received all that was written to node N so far.
is_replicated() {
    printf '%s\n' "set {$KEY}:x 1 px 9000" 'wait 1 2000' | on "$1" | grep -qx 1
}

@test "doctor: a Cluster with replicas is good, but weak if the TTL can't outlast a failover" {
    RLOCK_URL=redis://127.0.0.1:$(port_of 4)
    export RLOCK_URL
    run rlock doctor
    assert_match "$output" 'good +cluster: 3 primaries, each with a replica'
    assert_match "$output" 'good +role: primary'
    run rlock doctor -t 1400ms
    assert_match "$output" 'weak +cluster: .* after 1000 ms .* outlasts only 934 ms .*; lower'
}

@test "the primary in the URL dies: the holder keeps the lock, and waiters get it in their order" {
    local each
    node 1
    SLOT=$(on 1 cluster keyslot "$KEY")
    OWNER=$(owner_of "$SLOT")
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$OWNER")
    export RLOCK_URL
    echo 0 >"$DIR/sum"
    hold holder -t "$ttl" -k "$KEY"
    for each in {1..20}; do
        start "w$each" "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$each"
        eventually 5 line_at "$OWNER" "$each"
    done
    await_first_renewal
    is_replicated "$OWNER"
    node "$OWNER"
    redis_crash
    node $((OWNER % 3 + 1))
    run --separate-stderr rlock list -u "redis://rlock:SECRET@127.0.0.1:$REDIS_PORT"
    [[ $status == 69 && $output == '' ]] || has_new_owner # rlock must not print half of a list
    eventually 20 has_new_owner
    run -0 rlock list -u "redis://rlock:SECRET@127.0.0.1:$REDIS_PORT"
    assert_match "$output" "$KEY "
    let_go holder
    assert_status 0
    assert_turns 20
}
# await_first_renewal: returns when rlock has renewed once. rlock asks for the nodes of the
# Cluster before its first renewal. Only after that can it find the new primary by itself.
await_first_renewal() {
    eventually 5 waned $((ttl * 1000 - 1000))
    eventually $((ttl / 2)) renewed_at "$OWNER" $((ttl * 1000 - 500))
}
waned() { (($(on "$OWNER" pttl "$KEY") < $1)); } # waned MS
renewed_at() { (($(on "$1" pttl "$KEY") > $2)); } # renewed_at NODE MS

@test "the primary hangs, and its replica takes its place: the holder renews there" {
    local new
    choose_key
    hold holder -t "$ttl" -k "$KEY"
    await_first_renewal
    is_replicated "$OWNER"
    node "$OWNER"
    redis_pause
    node 4
    eventually 20 has_new_owner
    new=$(owner_of "$SLOT")
    eventually "$ttl" renewed_at "$new" $((ttl * 1000 - 500))
    let_go holder
    assert_status 0
    assert_eq "$(on "$new" exists "$KEY")" 0 'number of keys of the lock'
    node "$OWNER"
    redis_continue
}

# revive: restarts the node OWNER, which died, and which becomes a replica of the new primary.
revive() {
    node "$OWNER"
    redis_restart
    redis_user rlock
    redis_allow_inspection rlock
    eventually 20 is_replica
}
is_replica() { [[ $(redis_cli info replication) == *role:slave*master_link_status:up* ]]; }

@test "the primary dies while rlock waits with --queue none: the new primary grants the lock" {
    choose_key
    on "$OWNER" set "$KEY" other px 600000 >/dev/null
    is_replicated "$OWNER"
    start barger "$RLOCK" -k "$KEY" -w 30 --queue none -- true
    never 2 dead "$pid" # give rlock the time to ask for the nodes of the Cluster
    node "$OWNER"
    redis_crash
    eventually 20 has_new_owner
    redis_use "n$(owner_of "$SLOT")"
    redis_cli del "$KEY" >/dev/null
    finish barger 5
    assert_status 0
    revive
}

@test "the primary dies half a second after a grant: the holder renews on the new primary" {
    local began new ttl=${RLOCK_TEST_TTL:-$ttl}
    choose_key
    hold holder -t "$ttl" -k "$KEY"
    began=$(now_ms)
    is_replicated "$OWNER"
    eventually 5 is_later $((began + 500))
    node "$OWNER"
    redis_crash
    eventually 20 has_new_owner
    new=$(owner_of "$SLOT")
    eventually "$ttl" renewed_at "$new" $((ttl * 1000 - 900)) || fail "$(cat "$DIR/holder.err")"
    let_go holder
    assert_status 0
    assert_eq "$(on "$new" exists "$KEY")" 0 'number of keys of the lock'
    revive
}
is_later() { (($(now_ms) >= $1)); }
