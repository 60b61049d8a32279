#!/usr/bin/env bats
# cluster: a lock in a Redis Cluster is found from each node, also while its slot moves.

load ../helpers/common
load ../helpers/cluster

# All tests use a server user who has only the rights that the manual says rlock needs.
setup_file() {
    local each
    cluster_start 3
    for each in 1 2 3; do
        node "$each"
        redis_user rlock +ltrim # for a history
        redis_allow_inspection rlock
    done
}

setup() {
    common_setup
    KEY=job:$KEY
    SLOT=$(on 1 cluster keyslot "$KEY")
    node 1
    OWNER=$(owner_of "$SLOT")
    OTHER=$((OWNER % 3 + 1))
    THIRD=$((OTHER % 3 + 1))
}
# from NODE: the next rlock gets this node's URL.
from() {
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$1")
    export RLOCK_URL
}

@test "from each node a lock is acquired, shown and released on the node that has its slot" {
    local each
    for each in 1 2 3; do
        from "$each"
        hold "at$each" -k "$KEY"
        [[ $(on "$OWNER" exists "$KEY") == 1 ]]
        run -75 rlock status -k "$KEY"
        run -75 rlock -k "$KEY" -n -- true
        let_pass "at$each"
        run -0 rlock status -k "$KEY"
    done
}

@test "keys in different slots are refused with 78 and a hint; with a hash tag they are granted" {
    local each
    for each in 1 2 3; do
        from "$each"
        run -78 --separate-stderr rlock -k "$KEY:a" -k "$KEY:b" -- touch "$DIR/ran"
        assert_line 'misconfigured: .* \{job\}:a and \{job\}:b; the server says: CROSSSLOT'
        [[ ! -e $DIR/ran ]]
        run -0 rlock -k "job:{$KEY}:a" -k "job:{$KEY}:b" -- true
    done
}

# key_at NODE: prints a key whose slot belongs to the node.
key_at() {
    local each
    for each in {1..100}; do
        [[ $(owner_of "$(slot_of "$KEY:$each")") != "$1" ]] || { echo "$KEY:$each" && return; }
    done
}

@test "list, and status without -k, show the locks of all nodes; break finds each from another" {
    local each keys=()
    for each in 1 2 3; do
        keys+=("$(key_at "$each")")
        from "$each"
        "$RLOCK" acquire -k "${keys[-1]}" >"$DIR/token$each"
        assert_eq "$(on "$each" exists "${keys[-1]}")" 1 "keys of the lock on node $each"
    done
    for each in 1 2 3; do
        from "$each"
        run -0 rlock list "$KEY:*"
        assert_eq "$(tail -n +2 <<<"$output" | cut -d' ' -f1)" \
            "$(printf '%s\n' "${keys[@]}" | sort)" 'keys'
        run -75 rlock status
        assert_eq "$(grep -c "^$KEY:" <<<"$output")" 3 'locks that status shows'
    done
    for each in 1 2 3; do
        from $((each % 3 + 1))
        run -0 rlock break --yes -k "${keys[each - 1]}"
        assert_eq "$(on "$each" exists "${keys[each - 1]}")" 0 "keys of the lock on node $each"
    done
}

# bats test_tags=long
@test "doctor examines the node that has the lock's slot, and the Cluster as a whole" {
    from "$OTHER"
    run rlock doctor -k "$KEY"
    assert_status 0
    assert_match "$output" "good +rights: all that rlock needs for $KEY"
    assert_match "$output" 'weak +cluster: 3 of 3 primaries have no replica: .*; give each'
    on "$OWNER" acl setuser rlock -asking >/dev/null
    run -78 rlock doctor -k "$KEY"
    assert_match "$output" 'unsafe +rights: denied: ASKING .*NOPERM'
    on "$OWNER" acl setuser rlock +asking -cluster >/dev/null
    run rlock doctor -k "$KEY"
    assert_match "$output" 'unknown +cluster: .*\+cluster.nodes'
    on "$OWNER" acl setuser rlock '+cluster|nodes' '+cluster|slots' >/dev/null
}

held_at() { [[ $(on "$1" get "$KEY" 2>&1) == *"pid="* ]]; }
# is_renewed_at NODE: waits for a renewal: shortens the key's TTL on the node, and waits until the
# TTL is longer again.
is_renewed_at() {
    on "$1" pexpire "$KEY" 3500 >/dev/null
    eventually 3 renewed_at "$1"
}
renewed_at() { (($(on "$1" pttl "$KEY") > 4000)); }

@test "a lock whose slot moves is renewed and released on the node that has the slot now" {
    from "$OTHER"
    hold holder -t 6 -k "$KEY"
    slot_move "$SLOT" "$OWNER" "$THIRD"
    held_at "$THIRD"
    is_renewed_at "$THIRD"
    slot_move "$SLOT" "$THIRD" "$OWNER"
    is_renewed_at "$OWNER"
    let_pass holder
    refute_match "$stderr" lost
    [[ $(on "$OWNER" exists "$KEY") == 0 ]]
}

work() { # work NAME TURNS: takes the lock TURNS times, and adds 1 to the sum each time
    local turn
    for ((turn = 0; turn < $2; turn++)); do
        "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$1" || echo "turn $turn: status $?" >&2
    done
}
# move_about: moves the slot back and forth until $DIR/still exists and the slot is where it was at
# first.
move_about() {
    local here=$OWNER there=$OTHER moves=0
    until [[ -e $DIR/still && $here == "$OWNER" ]]; do
        slot_move "$SLOT" "$here" "$there"
        read -r here there <<<"$there $here"
        moves=$((moves + 1))
    done
    echo "$moves"
}

# bats test_tags=long
@test "while a slot moves back and forth, 20 workers hold its lock one at a time, and none fails" {
    local each turns=${RLOCK_TEST_TURNS:-4}
    ! is_sanitized || turns=2
    echo 0 >"$DIR/sum"
    start mover move_about
    for each in {1..20}; do
        from $((each % 3 + 1))
        start "w$each" work "w$each" "$turns"
    done
    for each in {1..20}; do
        finish "w$each" 300
        assert_eq "$stderr" '' "messages of w$each"
    done
    touch "$DIR/still"
    finish mover
    assert_eq "$(<"$DIR/sum")" "$((20 * turns))" 'turns taken'
    assert_between "$output" 2 100000 'moves of the slot'
}
