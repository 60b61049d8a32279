#!/usr/bin/env bats
# demoted: a primary that becomes a replica, behind one address that from then on leads to another.
#
# Old connections stay open, as with the name of a hosted server or a proxy that asks for roles.

load ../helpers/common
load ../helpers/queue

WAITERS=10
CHANGES=${RLOCK_TEST_CHANGES:-3}

# ---- two servers, and what stands in front of them ----

# pair A B: primary r1 and replica r2 at these addresses; both have the port that r1 found.
pair() {
    local port
    redis_start r1 --bind "$1" --repl-diskless-sync no --repl-ping-replica-period 1
    port=$REDIS_PORT
    redis_start r2 --bind "$2" --port "$port" --replicaof "$1 $port" --repl-diskless-sync no
    eventually 20 is_linked
    PRIMARY=r1 REPLICA=r2 PORT=$port
    redis_use r1
    queue_setup
}
is_linked() { [[ $(redis_cli info replication) == *master_link_status:up* ]]; }

address_of() { [[ $1 == r1 ]] && echo 127.0.0.2 || echo 127.0.0.3; }

# All that the primary was told so far, the replica was told as well.
is_replicated() {
    printf '%s\n' "set {$KEY}:x 1 px 9000" 'wait 1 2000' | redis_cli | grep -qx 1
}

# change: the two change their roles, and nobody closes a connection. At no moment both take writes.
change() {
    eventually 10 is_replicated
    redis_use "$PRIMARY"
    redis_cli replicaof "$(address_of "$REPLICA")" "$PORT" >/dev/null
    redis_use "$REPLICA"
    redis_cli replicaof no one >/dev/null
    read -r PRIMARY REPLICA <<<"$REPLICA $PRIMARY"
    [[ ! -e $DIR/hosts ]] || name_leads_to "$PRIMARY"
    CHANGED_MS=$(now_ms)
}

name_leads_to() { echo "$(address_of "$1") locks.test" >"$DIR/hosts"; }

# rlock in a mount namespace of its own, where locks.test is what $DIR/hosts says.
name_start() {
    name_leads_to r1
    unshare -m mount --bind "$DIR/hosts" /etc/hosts 2>/dev/null || skip 'no mount namespaces here'
    cat >"$DIR/rlock" <<END
#!/bin/sh
exec unshare -m sh -c 'mount --bind "\$0" /etc/hosts && exec "\$@"' '$DIR/hosts' '$RLOCK' "\$@"
END
    chmod +x "$DIR/rlock"
    RLOCK=$DIR/rlock
    export RLOCK_URL=redis://locks.test:$PORT
}

# A proxy that sends new connections to whoever says that it is the primary.
haproxy_start() {
    need haproxy
    cat >"$DIR/haproxy.cfg" <<CONF
defaults
    mode tcp
    timeout connect 1s
    timeout client 1h
    timeout server 1h
listen locks
    bind unix@$DIR/haproxy
    option tcp-check
    tcp-check send INFO\ replication\r\n
    tcp-check expect string role:master
    default-server check inter 100 fall 1 rise 1
    server r1 127.0.0.2:$PORT
    server r2 127.0.0.3:$PORT
CONF
    start haproxy haproxy -db -f "$DIR/haproxy.cfg"
    export RLOCK_URL=unix://$DIR/haproxy
    eventually 10 has_checked
}
# It takes both for good until it has asked them: then each new connection leads to the primary.
has_checked() {
    local each
    for each in 1 2 3; do
        "$RLOCK" -k "$KEY:probe" -n -- true 2>/dev/null || return 1
    done
}

# ---- those who use the lock ----

# Each takes its turn until it is let go.
queue_of_holders() {
    local each
    cat >"$DIR/turn" <<'TURN'
exec 9>>"$DIR/alone"
flock -n 9 || echo "$1" >>"$DIR/overlaps"
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/served"
read -r line <"$DIR/go.$1"
TURN
    for ((each = 0; each <= WAITERS; each++)); do
        mkfifo "$DIR/go.$each"
        waiter "$each" -t 6
        if ((each == 0)); then eventually 5 served_all 1; else eventually 10 in_line "$each"; fi
    done
}
go() {
    timeout 10 tee "$DIR/go.$1" <<<on >/dev/null
    finish "w$1"
    assert_status 0
}

# The lease is short all at once, so what makes it longer is a renewal.
is_renewed() {
    local before
    before=$(value "$KEY")
    redis_cli pexpire "$KEY" 3500 >/dev/null
    eventually 4 lasts 4000
    assert_eq "$(value "$KEY")" "$before" 'the lock'
}
lasts() { (($(ttl_ms "$KEY") > $1)); }

# Every second holder has to be renewed after the change; the others are let go at once.
assert_all_served() {
    local each
    queue_of_holders
    for ((each = 0; each <= WAITERS; each++)); do
        eventually 5 served_all $((each + 1))
        if ((each < CHANGES)); then
            change
            if ((each % 2 == 0)); then is_renewed; fi
        fi
        go "$each"
        if ((each < CHANGES && each % 2 == 1)); then
            eventually 5 served_all $((each + 2))
            took=$(($(started_ms $((each + 1))) - CHANGED_MS))
            is_sanitized || assert_between "$took" -20 "$(busy_ms 3000)" 'ms to a grant'
        fi
    done
    assert_order $(seq 0 "$WAITERS")
}

@test "one name for both: a holder is renewed where it leads now, and all keep their place" {
    pair 127.0.0.2 127.0.0.3
    name_start
    assert_all_served
}

@test "one name for both at once: a holder is renewed by whichever is the primary" {
    pair 127.0.0.2 127.0.0.3
    name_start
    hold job -k "$KEY" -t 6
    name_leads_to() { printf '%s locks.test\n' 127.0.0.2 127.0.0.3 >"$DIR/hosts"; }
    change
    is_renewed
    let_go job 7
    assert_status 7
}

@test "a proxy that asks for roles: the same" {
    pair 127.0.0.2 127.0.0.3
    haproxy_start
    assert_all_served
}

@test "a waiter beside the line leaves a server that has become a replica and hears nothing" {
    pair 127.0.0.2 127.0.0.3
    haproxy_start
    redis_cli set "$KEY" other >/dev/null # without an end
    start barger "$RLOCK" -k "$KEY" --queue none -- true
    eventually 5 asks
    eventually 10 is_replicated
    redis_use r1
    redis_cli replicaof 127.0.0.1 1 >/dev/null
    redis_use r2
    redis_cli replicaof no one >/dev/null
    redis_cli del "$KEY" >/dev/null
    finish barger 5
    assert_status 0
}
asks() { redis_cli info commandstats | grep -q 'cmdstat_eval'; }

@test "no primary behind the address: 69 when the time to connect is over, and -n at once" {
    pair 127.0.0.2 127.0.0.3
    export RLOCK_URL=redis://127.0.0.3:$PORT
    run_ms "$RLOCK" -k "$KEY" --connect-timeout 1 -- true
    assert_status 69
    assert_line 'unreachable: 127.0.0.3:.*READONLY'
    assert_between "$took" 950 4000 'ms until it gave up'
    run_ms "$RLOCK" -k "$KEY" -n -- true
    assert_status 69
}
