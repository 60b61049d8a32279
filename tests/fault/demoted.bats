#!/usr/bin/env bats
# demoted: a primary becomes a replica, and its address leads to the new primary from then on.
#
# Connections to the old primary stay open, so rlock's requests arrive at a replica. A cloud
# provider that moves the host name of the primary causes this, and so does a proxy that sends only
# new connections to the new primary.

load ../helpers/common
load ../helpers/queue

# ---- two servers, and the name that leads to one of them ----

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

# ---- the rlocks that use the lock ----

# end_command NUMBER: ends the command of this rlock, which ran until now.
end_command() {
    timeout 10 tee "$DIR/go.$1" <<<on >/dev/null
    ended 0 "w$1"
}
lasts() { (($(ttl_ms "$KEY") > $1)); } # lasts MS

@test "a name that leads to the new primary: the holder renews there, waiters keep their places" {
    local each before
    pair 127.0.0.2 127.0.0.3
    name_start
    cat >"$DIR/turn" <<'TURN'
exec 9>>"$DIR/alone"
flock -n 9 || echo "$1" >>"$DIR/overlaps"
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/served"
read -r line <"$DIR/go.$1"
TURN
    for each in 0 1 2; do
        mkfifo "$DIR/go.$each"
        waiter "$each" -t 15
        if ((each == 0)); then eventually 10 served_all 1; else eventually 10 in_line "$each"; fi
    done
    swap_roles
    before=$(value "$KEY")
    redis_cli pexpire "$KEY" 9000 >/dev/null
    eventually 20 lasts 10000
    assert_eq "$(value "$KEY")" "$before" 'value of the lock'
    for each in 0 1 2; do
        eventually 20 served_all $((each + 1))
        end_command "$each"
    done
    assert_order 0 1 2
}

@test "an address that leads to replicas only: status 69, with -n and without" {
    pair 127.0.0.2 127.0.0.3
    export RLOCK_URL=redis://127.0.0.3:$PORT
    run -69 --separate-stderr rlock -k "$KEY" --connect-timeout 1 -- true
    assert_line 'server not ready: 127.0.0.3:.*READONLY'
    run -69 rlock -k "$KEY" -n -- true
}
