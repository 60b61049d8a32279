#!/usr/bin/env bats
# fences: each grant has a fence greater than all fences before it, also after a loss of data.

load ../helpers/common
load ../helpers/kinds

setup() {
    common_setup
    export DIR KEY RLOCK TOOLS
    # The body of a loop over i. The loop takes in turn an exclusive lock, a shared lock, a lock of
    # two keys, and a slot.
    loop_file <<'END'
case $((i % 4)) in
    0) how=(-k "$KEY") ;;
    1) how=(-k "$KEY" -s) ;;
    2) how=(-k "$KEY:2" -k "$KEY") ;;
    3) how=(-k "$KEY" --slots 3) ;;
esac
"$RLOCK" "${how[@]}" -u "$2" -- "$TOOLS/guarded" 0 "x:$DIR/guarded" || exit
END
}

# grants N: takes N locks, one after the other, on the server that redis_cli talks to; adds their
# fences to $DIR/fences.
grants() {
    TURN_NOTE=fence bash "$DIR/loop" "$1" "redis://127.0.0.1:$REDIS_PORT" 3>&- >"$DIR/new"
    assert_eq "$(wc -l <"$DIR/new")" "$1" "grants"
    sed 's/^fence //' "$DIR/new" >>"$DIR/fences"
}

last_fence() { redis_cli get "{$KEY}:rlock:fence"; }

@test "1000 grants, with FLUSHALL, restarts and a failover to a stale replica: fences always grow" {
    local each n missed
    n=$(few 100 10)
    redis_start primary
    grants "$n"
    for each in 1 2 3; do
        redis_cli flushall >/dev/null
        grants "$n"
    done
    for each in 1 2; do
        redis_crash
        redis_restart
        grants "$n"
    done
    redis_start replica --replicaof "127.0.0.1 $REDIS_PORT"
    eventually 10 replica_has "$(redis_use primary && last_fence)"
    redis_cli replicaof 127.0.0.1 1 >/dev/null # from here on the replica gets no data
    redis_use primary
    grants "$n"
    missed=$(last_fence)
    redis_crash
    redis_use replica
    redis_cli replicaof no one >/dev/null
    ((0 < $(last_fence) && $(last_fence) < missed))
    for each in 1 2 3; do grants "$n"; done
    assert_eq "$(wc -l <"$DIR/fences")" $((10 * n))
    assert_eq "$(sort -nu "$DIR/fences" | cmp - "$DIR/fences" 2>&1)" '' 'first fence out of order'
}
replica_has() { [[ -n $1 && $(last_fence) == "$1" ]]; }

@test "four programs take all kinds of locks: no fence repeats, and each program's fences grow" {
    local each n
    n=$(few 40 5)
    redis_start
    for each in 1 2 3 4; do
        TURN_NOTE=$each start "p$each" bash "$DIR/loop" "$n" "redis://127.0.0.1:$REDIS_PORT"
    done
    for each in 1 2 3 4; do
        finish "p$each" 60
        assert_status 0
        assert_eq "$(sort -nu -k 2 "$DIR/p$each.out" | cmp - "$DIR/p$each.out" 2>&1)" ''
    done
    assert_eq "$(cat "$DIR"/p?.out | cut -d' ' -f2 | sort -u | wc -l)" $((4 * n)) fences
}

@test "two keys in one lock: the fence is greater than the last fence of each" {
    redis_start
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_cli set "{$KEY}:rlock:fence" 5000000000000000 >/dev/null
    run -0 rlock -k "$KEY:2" -k "$KEY" -c 'echo "$RLOCK_FENCE"'
    assert_eq "$output" 5000000000000001
    run -0 rlock -k "$KEY:2" -s -c 'echo "$RLOCK_FENCE"'
    assert_between "$output" 5000000000000002 5000000000000009
}
