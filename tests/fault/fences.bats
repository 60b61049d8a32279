#!/usr/bin/env bats
# fences: each grant has a fence greater than all fences before it, also after a loss of data.
#
# tests/sim checks the same for hundreds of clients and all faults. Here a real server restarts, and
# a real replica takes the place of its primary.

load ../helpers/common

# grants: takes an exclusive lock, a shared one, one of two keys and a slot, one after the other, on
# the server that redis_cli talks to; adds their fences to $DIR/fences.
grants() {
    local how
    for how in '' -s "-k $KEY:2" '--slots 3'; do
        # shellcheck disable=SC2016,SC2086
        rlock -u "redis://127.0.0.1:$REDIS_PORT" $how -k "$KEY" -- \
            sh -c 'echo "$RLOCK_FENCE"' >>"$DIR/fences"
    done
}

last_fence() { redis_cli get "{$KEY}:rlock:fence"; }
replica_has() { [[ -n $1 && $(last_fence) == "$1" ]]; }

@test "grants, with FLUSHALL, a restart and a failover to a stale replica: fences always grow" {
    local missed
    redis_start primary
    grants
    redis_cli flushall >/dev/null
    grants
    redis_crash
    redis_restart
    grants
    redis_start replica --replicaof "127.0.0.1 $REDIS_PORT"
    eventually 30 replica_has "$(redis_use primary && last_fence)"
    redis_cli replicaof 127.0.0.1 1 >/dev/null # from here on the replica gets no data
    redis_use primary
    grants
    missed=$(last_fence)
    redis_crash
    redis_use replica
    redis_cli replicaof no one >/dev/null
    ((0 < $(last_fence) && $(last_fence) < missed))
    grants
    assert_eq "$(wc -l <"$DIR/fences")" 20
    assert_eq "$(sort -nu "$DIR/fences" | cmp - "$DIR/fences" 2>&1)" '' 'first fence out of order'
}
