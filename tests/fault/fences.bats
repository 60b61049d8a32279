#!/usr/bin/env bats
# fences: each grant's number is greater than all before it, whatever the server forgot.

load ../helpers/common
load ../helpers/kinds

setup() {
    common_setup
    export DIR KEY RLOCK TOOLS
    # One after the other, in each kind in turn.
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

# grants N: of the server in use; the fences go to $DIR/fences.
grants() {
    TURN_NOTE=fence bash "$DIR/loop" "$1" "redis://127.0.0.1:$REDIS_PORT" 3>&- >"$DIR/new"
    assert_eq "$(wc -l <"$DIR/new")" "$1" "grants"
    sed 's/^fence //' "$DIR/new" >>"$DIR/fences"
}

last_fence() { redis_cli get "{$KEY}:rlock:fence"; }

@test "1000 grants of all kinds, with all data lost, a restart and a stale replica in between" {
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
    redis_cli replicaof 127.0.0.1 1 >/dev/null # the line is cut
    redis_use primary
    grants "$n"
    missed=$(last_fence)
    redis_crash
    redis_use replica
    redis_cli replicaof no one >/dev/null
    ((0 < $(last_fence) && $(last_fence) < missed))
    for each in 1 2 3; do grants "$n"; done
    assert_eq "$(wc -l <"$DIR/fences")" $((10 * n))
    assert_eq "$(sort -nu "$DIR/fences" | cmp - "$DIR/fences" 2>&1)" '' 'they grow strictly'
}
replica_has() { [[ -n $1 && $(last_fence) == "$1" ]]; }

@test "many readers and many keys at once: no fence is had twice, and each one's own grow" {
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

@test "a key whose last fence is ahead of the others' lifts all that are taken with it" {
    redis_start
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_cli set "{$KEY}:rlock:fence" 5000000000000000 >/dev/null
    run -0 rlock -k "$KEY:2" -k "$KEY" -c 'echo "$RLOCK_FENCE"'
    assert_eq "$output" 5000000000000001
    run -0 rlock -k "$KEY:2" -s -c 'echo "$RLOCK_FENCE"'
    assert_between "$output" 5000000000000002 5000000000000009
}
