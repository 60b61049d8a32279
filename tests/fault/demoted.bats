#!/usr/bin/env bats
# demoted: a primary becomes a replica, and its address leads to the new primary from then on.
#
# Connections to the old primary stay open, so rlock's requests arrive at a replica. A cloud
# provider that moves the host name of the primary causes this, and so does a proxy that sends only
# new connections to the new primary.

load ../helpers/common
load ../helpers/queue

WAITERS=10
CHANGES=${RLOCK_TEST_CHANGES:-3}

# ---- two servers, and the name or proxy in front of them ----

# pair A B: starts primary r1 and replica r2 at these addresses, with the same port.
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

# is_replicated: true if the replica has received all that was written to the primary so far.
is_replicated() {
    printf '%s\n' "set {$KEY}:x 1 px 9000" 'wait 1 2000' | redis_cli | grep -qx 1
}

# swap_roles: makes the primary a replica, then the replica a primary, so that at no moment both
# accept writes. Redis closes no connection of a client when a server's role changes.
swap_roles() {
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

# name_start: from now on $RLOCK runs in a mount namespace in which $DIR/hosts is /etc/hosts, and
# $RLOCK_URL has the name locks.test.
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

# haproxy_start: starts a proxy that sends new connections to the server that says it is primary.
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
# has_checked: true if three connections in a row lead to the primary. Until haproxy has done its
# first health check, it sends connections to the two servers in turn.
has_checked() {
    local each
    for each in 1 2 3; do
        "$RLOCK" -k "$KEY:probe" -n -- true 2>/dev/null || return 1
    done
}

# ---- the rlocks that use the lock ----

# queue_of_holders: starts rlock 0, which gets the lock, and rlocks 1 to WAITERS, which queue for
# it. The command of rlock N runs until the test calls `end_command N`.
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
end_command() { # end_command NUMBER
    timeout 10 tee "$DIR/go.$1" <<<on >/dev/null
    finish "w$1"
    assert_status 0
}

# is_renewed: shortens the key's TTL, and waits until a renewal makes it longer.
is_renewed() {
    local before
    before=$(value "$KEY")
    redis_cli pexpire "$KEY" 3500 >/dev/null
    eventually 4 lasts 4000
    assert_eq "$(value "$KEY")" "$before" 'value of the lock'
}
lasts() { (($(ttl_ms "$KEY") > $1)); } # lasts MS

# assert_all_served: the lock goes from holder to holder in order, while the servers change roles
# CHANGES times. After every second change, the test ends the holder's command when the holder has
# renewed; after the other changes it ends the command at once.
assert_all_served() {
    local each
    queue_of_holders
    for ((each = 0; each <= WAITERS; each++)); do
        eventually 5 served_all $((each + 1))
        if ((each < CHANGES)); then
            swap_roles
            if ((each % 2 == 0)); then is_renewed; fi
        fi
        end_command "$each"
        if ((each < CHANGES && each % 2 == 1)); then
            eventually 5 served_all $((each + 2))
            took=$(($(started_ms $((each + 1))) - CHANGED_MS))
            is_sanitized || assert_between "$took" -20 "$(busy_ms 3000)" 'ms to a grant'
        fi
    done
    assert_order $(seq 0 "$WAITERS")
}

@test "a name that leads to the new primary: the holder renews there, waiters keep their places" {
    pair 127.0.0.2 127.0.0.3
    name_start
    assert_all_served
}

@test "a name that leads to both servers: the holder renews on the primary" {
    pair 127.0.0.2 127.0.0.3
    name_start
    hold job -k "$KEY" -t 6
    name_leads_to() { printf '%s locks.test\n' 127.0.0.2 127.0.0.3 >"$DIR/hosts"; }
    swap_roles
    is_renewed
    let_go job 7
    assert_status 7
}

@test "a proxy that leads to the new primary: the holder renews there, waiters keep their places" {
    pair 127.0.0.2 127.0.0.3
    haproxy_start
    assert_all_served
}

@test "--queue none: a waiter whose server becomes a replica gets the lock on the new primary" {
    pair 127.0.0.2 127.0.0.3
    haproxy_start
    redis_cli set "$KEY" other >/dev/null # without an expiry
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

@test "an address that leads to replicas only: status 69 after --connect-timeout, at once with -n" {
    pair 127.0.0.2 127.0.0.3
    export RLOCK_URL=redis://127.0.0.3:$PORT
    run_ms "$RLOCK" -k "$KEY" --connect-timeout 1 -- true
    assert_status 69
    assert_line 'unreachable: 127.0.0.3:.*READONLY'
    assert_between "$took" 950 $((3000 + $(busy_ms 1000))) 'ms until rlock ended'
    run_ms "$RLOCK" -k "$KEY" -n -- true
    assert_status 69
}
