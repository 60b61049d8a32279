#!/usr/bin/env bats
# failover: with --replicas no lock that was granted is lost when the primary dies.
#
# bats file_tags=long

load ../helpers/common
load ../helpers/sentinel

# The primary has only one replica: of several replicas, the Sentinels might make one the primary
# that has not received the lock.
setup() {
    common_setup
    sentinel_start 1
    export RLOCK_URL=redis+sentinel://$SENTINELS/main
}

# work NAME: takes a lock again and again until $DIR/still exists, and prints the exit statuses.
# With --wait, rlock waits while there is no replica or no primary, so each status must be 0. A
# status of 76 would mean that rlock lost its lock.
work() {
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

# grant NAME: shows that rlock waits for the replica before it runs its command:
# 1. The replica is disconnected from the primary.
# 2. rlock asks for a lock, and the primary grants it.
# 3. The replica is connected again, and receives the lock.
# 4. rlock runs its command, which kills the primary at once.
# If rlock ran the command before step 3, the lock would be lost with the primary.
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
until_granted() { # until_granted OPTION... -- COMMAND...
    local status=69
    while ((status == 69)); do # on a busy machine the replica may be connected too late for rlock
        status=0
        "$RLOCK" --replicas 1 "$@" || status=$?
    done
    return "$status"
}

# fail_over: the Sentinels make the replica the primary; the dead primary restarts as its replica.
fail_over() {
    local old=$REDIS_PORT name=${REDIS_DIR##*/server-}
    sentinel_fail_over "$old"
    redis_use "$name"
    printf '%s\n' --repl-diskless-sync no --replicaof "127.0.0.1 $(primary_of 1)" \
        >"$REDIS_DIR/options"
    redis_restart
    server_at "$(primary_of 1)"
}

@test "--replicas 1: in 20 failovers no lock is lost, none is held twice at once, and fences grow" {
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
        assert_match "$(value "$KEY")" "^$(env_of "h$turn" RLOCK_TOKEN) " \
            "value of the lock after failover $turn"
        let_pass "h$turn"
    done
    touch "$DIR/still"
    for each in 1 2; do
        finish "w$each" 20
        assert_eq "$stderr" '' "messages of w$each"
        assert_eq "$(sort -u <<<"$output")" 0 "exit statuses of w$each"
    done
    assert_eq "$(<"$DIR/sum")" "$(wc -l <"$DIR/sum.fences")" 'number of turns'
    assert_eq "$(sort -nuc "$DIR/sum.fences" 2>&1)" '' 'first fence out of order'
}
