#!/usr/bin/env bats
# cluster: a lock in a Redis Cluster, found from any of its nodes, also while its slot moves.

load ../helpers/common
load ../helpers/cluster
load ../helpers/netns
load ../helpers/tls

# All is done as a user with no more rights than the manual says it needs.
setup_file() {
    local each
    cluster_start 3
    for each in 1 2 3; do
        node "$each"
        redis_user rlock
        redis_looker rlock
    done
}
teardown_file() {
    local each
    for each in 1 2 3; do
        node "$each"
        redis_stop
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
# Nodes that a shell of the test's has started: end_all knows the children of the test alone.
end_nodes() {
    local each its_pid
    for each in "$DIR"/server-n*/; do
        [[ -e $each/pid ]] || continue
        its_pid=$(<"$each/pid")
        [[ $(readlink "/proc/$its_pid/cwd") != "${each%/}" ]] || kill -KILL "$its_pid"
    done
}
teardown() {
    end_nodes
    common_teardown
    [[ -n ${NETNS_ID:-} ]] || return 0
    netns_remove 1
    set_all cluster-announce-hostname '' cluster-preferred-endpoint-type ip
}

# set_all NAME VALUE...: on all nodes.
set_all() {
    local each
    for each in 1 2 3; do
        on "$each" config set "$@" >/dev/null
    done
}

# calls_itself NAME: has each of the nodes been told so of each?
calls_itself() {
    local each
    for each in 1 2 3; do
        [[ $(on "$each" cluster nodes | grep -c "[0-9],$1[ ,]") == 3 ]] || return 1
    done
}

# from NODE: which node the next rlock is told of.
from() {
    RLOCK_URL=redis://rlock:SECRET@127.0.0.1:$(port_of "$1")
    export RLOCK_URL
}

@test "from each node: the lock is had, seen and given back where its slot is" {
    local each
    for each in 1 2 3; do
        from "$each"
        hold "at$each" -k "$KEY"
        [[ $(on "$OWNER" exists "$KEY") == 1 ]]
        run -75 rlock status -k "$KEY"
        run -75 rlock -k "$KEY" -n -- true
        let_go "at$each"
        assert_status 0
        run -0 rlock status -k "$KEY"
    done
}

@test "keys of several slots: 78, and how a hash tag helps; with one they are had" {
    local each
    for each in 1 2 3; do
        from "$each"
        run -78 --separate-stderr rlock -k "$KEY:a" -k "$KEY:b" -- touch "$DIR/ran"
        assert_line 'CROSSSLOT.*\{job\}:a and \{job\}:b'
        [[ ! -e $DIR/ran ]]
        run -0 rlock -k "job:{$KEY}:a" -k "job:{$KEY}:b" -- true
    done
}

# A key of each node, in the order of the nodes.
key_at() {
    local each
    for each in {1..100}; do
        [[ $(owner_of "$(slot_of "$KEY:$each")") != "$1" ]] || { echo "$KEY:$each" && return; }
    done
}

@test "list, and status without a key: the locks of all nodes, from each node" {
    local each keys=()
    for each in 1 2 3; do
        keys+=("$(key_at "$each")")
        from "$each"
        "$RLOCK" acquire -k "${keys[-1]}" >"$DIR/token$each"
        assert_eq "$(on "$each" exists "${keys[-1]}")" 1 "the lock of node $each there"
    done
    for each in 1 2 3; do
        from "$each"
        run -0 rlock list "$KEY:*"
        assert_eq "$(tail -n +2 <<<"$output" | cut -d' ' -f1)" \
            "$(printf '%s\n' "${keys[@]}" | sort)" 'keys'
        run -75 rlock status
        assert_eq "$(grep -c "^$KEY:" <<<"$output")" 3 'locks of status'
    done
    for each in 1 2 3; do
        run -0 rlock break --yes -k "${keys[each - 1]}"
    done
}

@test "doctor: the node that has the lock is looked at, and the Cluster as a whole" {
    from "$OTHER"
    run rlock doctor -k "$KEY"
    assert_status 0
    assert_match "$output" "good +rights: all that rlock uses, for $KEY"
    assert_match "$output" 'weak +cluster: 3 of 3 primaries have no replica: .*; give each'
    on "$OWNER" acl setuser rlock -asking >/dev/null
    run -78 rlock doctor -k "$KEY"
    assert_match "$output" 'unsafe +rights: not all: ASKING .*NOPERM'
    on "$OWNER" acl setuser rlock +asking -cluster >/dev/null
    run rlock doctor -k "$KEY"
    assert_match "$output" 'unknown +cluster: .*\+cluster.nodes'
    on "$OWNER" acl setuser rlock '+cluster|nodes' '+cluster|slots' >/dev/null
}

held_at() { [[ $(on "$1" get "$KEY" 2>&1) == *"pid="* ]]; }
# The lease is short all at once, so what makes it longer is a renewal.
is_renewed_at() {
    on "$1" pexpire "$KEY" 3500 >/dev/null
    eventually 3 renewed_at "$1"
}
renewed_at() { (($(on "$1" pttl "$KEY") > 4000)); }

@test "a slot that moves while its lock is held: renewed where it is now, and given back there" {
    from "$OTHER"
    hold holder -t 6 -k "$KEY"
    slot_move "$SLOT" "$OWNER" "$THIRD"
    held_at "$THIRD"
    is_renewed_at "$THIRD"
    slot_move "$SLOT" "$THIRD" "$OWNER"
    is_renewed_at "$OWNER"
    let_go holder
    assert_status 0
    refute_match "$stderr" lost
    [[ $(on "$OWNER" exists "$KEY") == 0 ]]
}

line_at() { [[ $(on "$1" zcard "{$KEY}:rlock:queue") == "$2" ]]; }

@test "a slot that moves while some wait for its lock: all keep their places" {
    local each
    from "$OWNER"
    hold holder -k "$KEY"
    for each in 1 2 3; do
        start "w$each" "$RLOCK" -k "$KEY" -- sh -c 'echo "$1" >>"$0"' "$DIR/served" "$each"
        eventually 5 line_at "$OWNER" "$each"
    done
    slot_move "$SLOT" "$OWNER" "$OTHER"
    let_go holder
    assert_status 0
    for each in 1 2 3; do
        finish "w$each" 10
        assert_status 0
    done
    assert_eq "$(tr '\n' ' ' <"$DIR/served")" '1 2 3 ' 'order of service'
    slot_move "$SLOT" "$OTHER" "$OWNER"
}

@test "a slot that is on its way: who doesn't wait for the lock still waits for the slot" {
    from "$THIRD"
    hold holder -k "$KEY"
    slot_begin "$SLOT" "$OWNER" "$OTHER" # the lock is there, its other keys are not: TRYAGAIN
    start other "$RLOCK" -k "$KEY" -n --connect-timeout 30 -- true
    never 1 dead "$(cat "$DIR/pids/other")"
    slot_keys "$SLOT" "$OWNER" "$OTHER"
    slot_end "$SLOT" "$OWNER" "$OTHER"
    finish other
    assert_status 75
    let_go holder
    assert_status 0
    slot_move "$SLOT" "$OTHER" "$OWNER"
}

work() { # NAME TURNS
    local turn
    for ((turn = 0; turn < $2; turn++)); do
        "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$1" || echo "turn $turn: status $?" >&2
    done
}
# Until $DIR/still is there, and then until the slot is at its old place.
move_about() {
    local here=$OWNER there=$OTHER moves=0
    until [[ -e $DIR/still && $here == "$OWNER" ]]; do
        slot_move "$SLOT" "$here" "$there"
        read -r here there <<<"$there $here"
        moves=$((moves + 1))
    done
    echo "$moves"
}

@test "a slot that moves back and forth while 20 work under its lock: never two, and none fails" {
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
        assert_eq "$stderr" '' "what w$each had to say"
    done
    touch "$DIR/still"
    finish mover
    assert_eq "$(<"$DIR/sum")" "$((20 * turns))" 'turns taken'
    assert_between "$output" 2 100000 'moves of the slot'
}

@test "who is served soon by a server that is no Cluster doesn't ask it for one" {
    local before took
    redis_start plain
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_monitor "$DIR/monitor"
    before=$(now_ms)
    redis_cli set "$KEY" other px 60000 >/dev/null
    start waiter "$RLOCK" -k "$KEY" -- true
    eventually 5 file_has "$DIR/monitor" BLPOP
    redis_cli del "$KEY" >/dev/null
    finish waiter
    took=$(($(now_ms) - before))
    assert_status 0
    redis_cli echo 'end of it' >/dev/null
    eventually 5 file_has "$DIR/monitor" 'end of it'
    ((took >= 1000)) || refute_match "$(<"$DIR/monitor")" CLUSTER # a busy machine is not soon
}

@test "whoever holds a lock for a moment asks once for the nodes of a Cluster" {
    redis_start plain
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_monitor "$DIR/monitor"
    hold holder -t 60 -k "$KEY"
    eventually 5 file_has "$DIR/monitor" '"CLUSTER" "NODES"'
    let_go holder
    assert_status 0
    redis_cli echo 'end of it' >/dev/null
    eventually 5 file_has "$DIR/monitor" 'end of it'
    assert_eq "$(grep -c CLUSTER "$DIR/monitor")" 1 'times that it asked'
}

@test "a slot that is on its way without the lock: it is asked for there, and had when it arrived" {
    from "$THIRD"
    slot_begin "$SLOT" "$OWNER" "$OTHER" # none of its keys is there: ASK, and then TRYAGAIN
    start comer "$RLOCK" -k "$KEY" --connect-timeout 30 -- true
    never 1 dead "$(cat "$DIR/pids/comer")"
    slot_end "$SLOT" "$OWNER" "$OTHER"
    finish comer
    assert_status 0
    slot_move "$SLOT" "$OTHER" "$OWNER"
}

# ---- what its nodes are called ----

# elsewhere COMMAND...: from another machine, where 127.0.0.1 is that machine, and only the name
# nodes.example leads here.
elsewhere_open() {
    export NETNS_ID=$BASHPID
    need ip
    netns_link_up 1 || skip 'no network namespaces here (root?)'
    in_netns 1 link set lo up
    HERE=$(netns_address 1 1)
    set_all bind "127.0.0.1 $HERE" protected-mode no
    printf '127.0.0.1 localhost\n%s nodes.example\n' "$HERE" >"$DIR/hosts"
}
elsewhere() {
    # shellcheck disable=SC2016
    ip netns exec "$(netns_name 1)" unshare -m sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' \
        "$DIR/hosts" "$RLOCK" "$@" 3>&-
}

# all_is_well_at HOST: from each node by that host, all that needs the others.
all_is_well_at() {
    local each keys=() url
    for each in 1 2 3; do
        keys+=("$(key_at "$each")")
        from "$each"
        "$RLOCK" acquire -k "${keys[-1]}" >"$DIR/token$each"
    done
    for each in 1 2 3; do
        url=redis://rlock:SECRET@$1:$(port_of "$each")
        run --separate-stderr elsewhere list -u "$url" "$KEY:*"
        assert_status 0
        assert_eq "$(tail -n +2 <<<"$output" | cut -d' ' -f1)" \
            "$(printf '%s\n' "${keys[@]}" | sort)" "locks from node $each"
        run -0 --separate-stderr elsewhere -k "$KEY" -u "$url" -- echo held
        assert_eq "$output|$stderr" 'held|' "a lock from node $each"
    done
    for each in 1 2 3; do
        from "$each"
        run -0 rlock break --yes -k "${keys[each - 1]}"
    done
}

@test "nodes whose numbers lead nowhere: found by the names that they prefer" {
    elsewhere_open
    set_all cluster-announce-hostname nodes.example cluster-preferred-endpoint-type hostname
    eventually 10 calls_itself nodes.example
    all_is_well_at nodes.example
    all_is_well_at "$HERE"
}

@test "nodes that tell no host: they are where the one is that says so" {
    elsewhere_open
    set_all cluster-preferred-endpoint-type unknown-endpoint
    all_is_well_at nodes.example
    all_is_well_at "$HERE"
}

tls_node() { tls_redis "$1" node "${@:2}" --tls-auth-clients no --tls-cluster yes; }
tls_port_of() {
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_PID TLS_PORT
    tls_use "n$1"
    echo "$TLS_PORT"
}
# from_each_by_tls: a command under the lock, and the list.
from_each_by_tls() {
    local each
    for each in 1 2 3; do
        run --separate-stderr rlock -k "$KEY" -u "rediss://localhost:$(tls_port_of "$each")" \
            -- echo held
        assert_eq "$output|$stderr" 'held|' "from node $each"
        run -0 rlock list -u "rediss://localhost:$(tls_port_of "$each")"
    done
}

@test "TLS with certificates for names, and redirections to numbers: the names count" {
    need openssl
    "$RLOCK" --version | grep -q 'TLS yes' || skip_or_fail 'an rlock with TLS'
    export TLS=$DIR/tls
    mkdir "$TLS"
    tls_ca ca
    tls_certificate node ca DNS:localhost
    tls_certificate named ca DNS:nodes.example
    export RLOCK_TLS_CA=$TLS/ca.crt
    (
        port_of() { tls_port_of "$1"; } # the nodes talk by TLS, too
        CLUSTER_NODE=tls_node cluster_start 3
    )
    # nothing tells a name: they prove to be what the URL has named
    from_each_by_tls
    # each has one of its own: two are asked by that, the third by the URL
    set_all cluster-announce-hostname nodes.example
    eventually 10 calls_itself nodes.example
    node 1
    SLOT=$(slot_of "$KEY")
    OWNER=$(owner_of "$SLOT")
    on "$OWNER" config set tls-cert-file "$TLS/named.crt" tls-key-file "$TLS/named.key" >/dev/null
    run -0 --separate-stderr rlock -k "$KEY" \
        -u "rediss://localhost:$(tls_port_of $((OWNER % 3 + 1)))" -- echo held
    assert_eq "$output|$stderr" 'held|'
    # a stranger's certificate is still none
    tls_certificate stranger ca DNS:stranger.example
    on "$OWNER" config set tls-cert-file "$TLS/stranger.crt" \
        tls-key-file "$TLS/stranger.key" >/dev/null
    run -78 --separate-stderr rlock -k "$KEY" \
        -u "rediss://localhost:$(tls_port_of $((OWNER % 3 + 1)))" -- touch "$DIR/ran"
    assert_line "the server's certificate is not for 127.0.0.1"
    [[ ! -e $DIR/ran ]]
}
