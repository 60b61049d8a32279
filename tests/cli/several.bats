#!/usr/bin/env bats
# several: several keys are granted together, or none of them.

load ../helpers/common
load ../helpers/server
load ../helpers/kinds

setup() { kinds_setup; }

# bats test_tags=long
@test "8 processes, each takes 2 random keys of 5 in any order: no overlap and no deadlock" {
    local each turns=0 overlaps=0 n o turns_each
    turns_each=$(few 200 20)
    loop_file <<'END'
a=$((RANDOM % 5)) b=$(((a + 1 + RANDOM % 4) % 5))
"$RLOCK" -k "$KEY:$a" -k "$KEY:$b" -- "$TOOLS/guarded" 0 "x:$DIR/$a" "x:$DIR/$b" || exit
END
    for each in {1..8}; do start "p$each" bash "$DIR/loop" "$turns_each"; done
    for each in {1..8}; do
        ended 0 "p$each" 120
    done
    for each in {0..4}; do
        read -r n _ o <<<"$("$TOOLS/guarded" show "$DIR/$each")"
        turns=$((turns + n)) overlaps=$((overlaps + o))
    done
    assert_eq "$overlaps overlaps, $turns turns" "0 overlaps, $((8 * turns_each * 2)) turns"
    assert_only_fences
}

@test "one script acquires all keys, and one releases them" {
    redis_load_scripts
    redis_monitor "$DIR/monitor"
    run -0 rlock -k "$KEY:a" -k "$KEY:b" -k "$KEY:c" -- "$TOOLS/hold_clock"
    eventually 5 file_has "$DIR/monitor" ' lua\] "(DEL|del)" .*:c"'
    assert_eq "$(grep -c '"EVALSHA"' "$DIR/monitor")" 2 'scripts'
    assert_eq "$(grep -v ' lua\]' "$DIR/monitor" | grep -cv '"EVALSHA"\|^OK$\|"MONITOR"')" 0 \
        'requests beside the scripts'
}

# bats test_tags=long
@test "waiters are served in order, whatever the order of their keys" {
    local each
    hold other -k "$KEY:b"
    for each in 1 2 3 4 5 6; do
        start "w$each" "$RLOCK" -k "$KEY:$( ((each % 2)) && echo a || echo b)" \
            -k "$KEY:$( ((each % 2)) && echo b || echo a)" -- sh -c "echo $each >>'$DIR/served'"
        eventually 5 in_line "$each" "$KEY:a"
        eventually 5 in_line "$each" "$KEY:b"
    done
    let_go other
    for each in 1 2 3 4 5 6; do
        ended 0 "w$each"
    done
    assert_eq "$(xargs <"$DIR/served")" '1 2 3 4 5 6'
    assert_only_fences
}

@test "after a holder is killed, all its keys are free when its TTL ends" {
    local from
    hold dead -k "$KEY:a" -k "$KEY:b" -t 1
    from=$(now_ms)
    kill -KILL "$(<"$DIR/pids/dead")"
    run -0 rlock -k "$KEY:b" -- "$TOOLS/hold_clock"
    assert_between $((output - from)) 500 $((1400 + SLACK)) ms
    run -0 rlock -n -k "$KEY:a" -- true
    assert_only_fences
}

@test "if one key is lost, the command is ended with 76, and the other keys are released" {
    hold one -k "$KEY:a" -k "$KEY:b" -k "$KEY:c" -t 1
    redis_cli set "$KEY:b" other px 60000 >/dev/null
    ended 76 one
    gone "$KEY:a"
    gone "$KEY:c"
    assert_eq "$(value "$KEY:b")" other
    # A key that somebody deleted is restored by the next renewal.
    hold two -k "$KEY:a" -k "$KEY:c" -t 1
    redis_cli del "$KEY:c" >/dev/null
    eventually 5 exists "$KEY:c"
    let_pass two
    assert_match "$stderr" ': restored:'
    redis_cli del "$KEY:b" >/dev/null
    assert_only_fences
}
