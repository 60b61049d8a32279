#!/usr/bin/env bats
# failover: what --replicas promises: of the locks that were granted none is lost with a primary.

load ../helpers/common
load ../helpers/sentinel

# One replica: of several a Sentinel may take one that was not among those that had it in time.
setup() {
    common_setup
    sentinel_start 1
    export RLOCK_URL=redis+sentinel://$SENTINELS/main
}

# Takes the lock again and again: who says how long to wait is served, though for a moment there is
# no replica, or no primary. 76 would be a lock that is lost.
work() { # NAME
    local status
    until [[ -e $DIR/still ]]; do
        status=0
        "$RLOCK" --replicas 1 -t 6 -w 60 -k "$KEY:shared" -- sh -c '
            echo "$RLOCK_FENCE" >>"$0.fences"
            exec "$1" "$0" "$2"' "$DIR/sum" "$TOOLS/turn" "$1" 2>"$DIR/$1.said" || status=$?
        echo "$status"
        [[ $status == 0 ]] || cat "$DIR/$1.said" >&2
    done
}

has_replica() { redis_cli info replication | grep -q 'state=online'; }

# grant NAME: a lock whose command kills the primary first of all. It had no replica when it took
# the lock, so who doesn't wait for one loses the lock.
grant() {
    local primary=${REDIS_DIR##*/server-} port=$REDIS_PORT replica=r1
    [[ $primary != r1 ]] || replica=r2
    mkfifo "$DIR/$1.go"
    redis_use "$replica"
    redis_cli replicaof no one >/dev/null
    redis_use "$primary"
    start "$1" until_granted -t 20 -k "$KEY" -- sh -c 'kill -KILL "$1"
        cat "/proc/$$/environ" >"$0.env"; echo running; read -r status <"$0.go"; exit "$status"' \
        "$DIR/$1" "$REDIS_PID"
    eventually 5 eval 'exists "$KEY" || dead "$REDIS_PID"'
    redis_use "$replica"
    redis_cli replicaof 127.0.0.1 "$port" >/dev/null
    redis_use "$primary"
    eventually 20 file_has "$DIR/$1.out" '^running$' || fail "$(cat "$DIR/$1.err")"
    eventually 10 dead "$REDIS_PID"
}
until_granted() {
    local status=69
    while ((status == 69)); do # the replica comes later than a busy machine allows for
        status=0
        "$RLOCK" --replicas 1 "$@" || status=$?
    done
    return "$status"
}

# Another takes the place of the dead primary, which comes back as a replica.
fail_over() {
    local old=$REDIS_PORT name=${REDIS_DIR##*/server-}
    sentinel_fail_over "$old"
    redis_use "$name"
    printf '%s\n' --repl-diskless-sync no --replicaof "127.0.0.1 $(primary_of 1)" \
        >"$REDIS_DIR/options"
    redis_restart
    server_at "$(primary_of 1)"
}

@test "--replicas 1: in 20 failovers no grant is lost, no two hold it at once, and fences grow" {
    local turn each fence=0 last failovers=${RLOCK_TEST_FAILOVERS:-20}
    ! is_sanitized || failovers=4
    for each in 1 2; do
        start "w$each" work "w$each"
    done
    server_at "$(primary_of 1)"
    for ((turn = 1; turn <= failovers; turn++)); do
        eventually 10 has_replica
        last=$fence
        grant "h$turn"
        fence=$(env_of "h$turn" RLOCK_FENCE)
        ((fence > last)) || fail "turn $turn: the fence is $fence after $last"
        fail_over
        assert_match "$(value "$KEY")" "^$(env_of "h$turn" RLOCK_TOKEN) " "turn $turn: the lock"
        let_go "h$turn"
        assert_status 0
    done
    touch "$DIR/still"
    for each in 1 2; do
        finish "w$each" 20
        assert_eq "$stderr" '' "what w$each had to say"
        assert_eq "$(sort -u <<<"$output")" 0 "how w$each fared"
    done
    assert_eq "$(<"$DIR/sum")" "$(wc -l <"$DIR/sum.fences")" 'turns taken'
    assert_eq "$(sort -nuc "$DIR/sum.fences" 2>&1)" '' 'fences out of order'
}
