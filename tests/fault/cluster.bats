#!/usr/bin/env bats
# cluster: a primary of a Redis Cluster that dies or hangs while its locks are held and waited for.

load ../helpers/common
load ../helpers/cluster

setup_file() {
    local each
    cluster_start 3 1
    for each in {1..6}; do
        node "$each"
        redis_user rlock
        redis_looker rlock
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
    KEY=job:$KEY
}

line_at() { [[ $(on "$1" zcard "{$KEY}:rlock:queue" 2>&1) == "$2" ]]; }
# Sets KEY, SLOT and OWNER: a key of a node that has a replica to take its place.
key_of_another() {
    local each
    for each in {1..200}; do
        look_from_another
        SLOT=$(redis_cli cluster keyslot "$KEY:$each")
        OWNER=$(owner_of "$SLOT")
        node "$OWNER"
        ! redis_cli info replication | grep -q 'state=online' || break
    done
    KEY=$KEY:$each
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$OWNER")
    export RLOCK_URL
}
# Uses a node that lives and isn't the owner of the key.
look_from_another() {
    local each
    for each in {1..6}; do
        node "$each"
        [[ $each != "${OWNER:-}" ]] && ! dead "$REDIS_PID" && ! stopped "$REDIS_PID" && return
    done
}
has_new_owner() {
    local new
    look_from_another
    new=$(owner_of "$SLOT")
    [[ $new == [1-6] && $new != "$OWNER" ]]
}
# All that the primary was told so far, a replica was told as well.
is_replicated() {
    printf '%s\n' "set {$KEY}:x 1 px 9000" 'wait 1 2000' | on "$1" | grep -qx 1
}

@test "doctor: a Cluster that can lose a primary is good, also asked by a replica; or too slow" {
    RLOCK_URL=redis://127.0.0.1:$(port_of 4)
    export RLOCK_URL
    run rlock doctor
    assert_match "$output" 'good +cluster: 3 primaries, each with a replica'
    assert_match "$output" 'good +role: primary'
    run rlock doctor -t 1400ms
    assert_match "$output" 'weak +cluster: .* after 1000 ms .* outlasts only 934 ms .*; lower'
}

@test "the primary dies, which was the one in the URL: it is held on, and all are served in order" {
    local each
    node 1
    SLOT=$(on 1 cluster keyslot "$KEY")
    OWNER=$(owner_of "$SLOT")
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$OWNER")
    export RLOCK_URL
    echo 0 >"$DIR/sum"
    hold holder -t 12 -k "$KEY"
    for each in {1..20}; do
        start "w$each" "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$each"
        eventually 5 line_at "$OWNER" "$each"
    done
    eventually 5 waned 11000
    eventually 6 renewed_at "$OWNER" 11500 # so it knows the other nodes
    is_replicated "$OWNER"
    node "$OWNER"
    redis_crash
    node $((OWNER % 3 + 1))
    run --separate-stderr rlock list -u "redis://rlock:SECRET@127.0.0.1:$REDIS_PORT"
    [[ $status == 69 && $output == '' ]] || has_new_owner # no list is better than half of one
    eventually 20 has_new_owner
    run -0 rlock list -u "redis://rlock:SECRET@127.0.0.1:$REDIS_PORT"
    assert_match "$output" "$KEY "
    let_go holder
    assert_status 0
    assert_turns 20
}
waned() { (($(on "$OWNER" pttl "$KEY") < $1)); }
renewed_at() { (($(on "$1" pttl "$KEY") > $2)); }

@test "the primary hangs, and another has taken its place: the holder goes there" {
    local new
    key_of_another
    hold holder -t 12 -k "$KEY"
    eventually 5 waned 11000
    eventually 6 renewed_at "$OWNER" 11500 # so it knows the other nodes
    is_replicated "$OWNER"
    node "$OWNER"
    redis_pause
    node 4
    eventually 20 has_new_owner
    new=$(owner_of "$SLOT")
    eventually 12 renewed_at "$new" 11500
    let_go holder
    assert_status 0
    assert_eq "$(on "$new" exists "$KEY")" 0 'the key'
    node "$OWNER"
    redis_continue
}

# The one that died is back, as the replica of the one that took its place.
revive() {
    node "$OWNER"
    redis_restart
    redis_user rlock
    redis_looker rlock
    eventually 20 is_replica
}
is_replica() { [[ $(redis_cli info replication) == *role:slave*master_link_status:up* ]]; }

@test "the primary dies while one waits beside the line: it is granted by the one in its place" {
    key_of_another
    on "$OWNER" set "$KEY" other px 600000 >/dev/null
    is_replicated "$OWNER"
    start barger "$RLOCK" -k "$KEY" -w 30 --queue none -- true
    never 2 dead "$pid" # so it knows the other nodes
    node "$OWNER"
    redis_crash
    eventually 20 has_new_owner
    redis_use "n$(owner_of "$SLOT")"
    redis_cli del "$KEY" >/dev/null
    finish barger 5
    assert_status 0
    revive
}

@test "the primary dies half a second after a grant: the holder goes to the one in its place" {
    local began new ttl=${RLOCK_TEST_TTL:-12}
    key_of_another
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
    assert_eq "$(on "$new" exists "$KEY")" 0 'the key'
    revive
}
is_later() { (($(now_ms) >= $1)); }
