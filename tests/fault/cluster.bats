#!/usr/bin/env bats
# cluster: a primary of a Redis Cluster that dies while its locks are held and waited for.

load ../helpers/common
load ../helpers/redis
load ../helpers/hold
load ../helpers/cluster

setup() { common_setup; }
teardown() { common_teardown; }

line_at() { [[ $(on "$1" zcard "rlock:line:{$KEY}:$KEY" 2>&1) == "$2" ]]; }
has_new_owner() { [[ $(owner_of "$SLOT") == [456] ]]; }
# All that the primary was told so far, a replica was told as well.
is_replicated() {
    printf '%s\n' "set {$KEY}:x 1 px 9000" 'wait 1 2000' | redis-cli -p "$(port_of "$1")" |
        grep -qx 1
}

@test "the primary dies, which was the one in the URL: it is held on, and all are served in order" {
    local each
    cluster_start 3 1
    SLOT=$(on 1 cluster keyslot "$KEY")
    OWNER=$(owner_of "$SLOT")
    RLOCK_URL=redis://127.0.0.1:$(port_of "$OWNER")
    export RLOCK_URL
    echo 0 >"$DIR/sum"
    hold holder -t 12 -k "$KEY"
    for each in {1..20}; do
        start "w$each" "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$each"
        eventually 5 line_at "$OWNER" "$each"
    done
    eventually 6 renewed "$OWNER" # so it knows the other nodes
    is_replicated "$OWNER"
    node "$OWNER"
    redis_crash
    node $((OWNER % 3 + 1))
    eventually 20 has_new_owner
    let_go holder
    assert_status 0
    for each in {1..20}; do
        finish "w$each" 20
        assert_status 0
    done
    assert_eq "$(<"$DIR/sum")" 20 'turns taken'
    assert_eq "$(tr '\n' ' ' <"$DIR/sum.names")" "$(echo {1..20}) " 'order of service'
}
renewed() { (($(on "$1" pttl "$KEY") > 11500)); }
