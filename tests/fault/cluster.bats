#!/usr/bin/env bats
# cluster: a primary of a Redis Cluster dies while rlock holds a lock on it, and others wait.
#
# tests/unit/test_member.c has which node rlock asks after each kind of fault, and when it asks for
# the nodes; tests/cli/cluster.bats has slots that move.

load ../helpers/common
load ../helpers/cluster

setup() {
    local each
    common_setup
    cluster_start 3 1
    for each in {1..6}; do
        node "$each"
        redis_user rlock
        redis_allow_inspection rlock
    done
    KEY=job:$KEY # the keys that the user `rlock` of these servers may touch begin with job:
}

line_at() { [[ $(on "$1" zcard "{$KEY}:rlock:queue" 2>&1) == "$2" ]]; }
has_new_owner() {
    local new
    node $((OWNER % 3 + 1))
    new=$(owner_of "$SLOT")
    [[ $new == [1-6] && $new != "$OWNER" ]]
}
# is_replicated N: true if a replica of node N has received all that was written to node N so far.
is_replicated() {
    printf '%s\n' "set {$KEY}:x 1 px 9000" 'wait 1 2000' | on "$1" | grep -qx 1
}

# ask_the_owner: sets OWNER to the node that holds the slot of $KEY, SLOT, and names only this node
# in RLOCK_URL.
ask_the_owner() {
    node 1
    SLOT=$(slot_of "$KEY")
    OWNER=$(owner_of "$SLOT")
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$OWNER")
    export RLOCK_URL
}

@test "the primary in the URL dies: the holder keeps the lock, and waiters get it in their order" {
    local each
    ask_the_owner
    echo 0 >"$DIR/sum"
    hold holder -v -t 30 -k "$KEY"
    for each in {1..3}; do
        start "w$each" "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$each"
        eventually 10 line_at "$OWNER" "$each"
    done
    # By its first renewal rlock has asked for the nodes of the Cluster.
    eventually 40 file_has "$DIR/holder.err" ': renewed'
    eventually 20 is_replicated "$OWNER"
    node "$OWNER"
    redis_crash
    eventually 40 has_new_owner
    run -0 rlock list -u "redis://rlock:SECRET@127.0.0.1:$REDIS_PORT"
    assert_match "$output" "$KEY "
    let_pass holder
    assert_turns 3
}
