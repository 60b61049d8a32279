#!/usr/bin/env bats
# slots: up to N processes hold a lock together, each with a slot number of its own.

load ../helpers/common
load ../helpers/kinds

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() { kinds_setup; }

holders() { redis_cli zcard "{$KEY}:rlock:holders"; }
holds() { [[ $(holders) == "$1" ]]; }

# bats test_tags=long
@test "of 50 processes at most 4 hold the 4 slots, and each slot has one holder at a time" {
    local each turns many most overlaps total=0
    turns=$(few 8 3) many=$(few 50 20)
    loop_file <<'END'
"$RLOCK" -k "$KEY" --slots 4 -- \
    sh -c 'exec "$TOOLS/guarded" 2 "s:$DIR/all" "x:$DIR/slot.$RLOCK_SLOT"' || exit
END
    for ((each = 1; each <= many; each++)); do start "p$each" bash "$DIR/loop" "$turns"; done
    for ((each = 1; each <= many; each++)); do
        finish "p$each" 120
        assert_status 0
    done
    assert_eq "$(cd "$DIR" && echo slot.*)" 'slot.0 slot.1 slot.2 slot.3'
    for each in 0 1 2 3; do
        read -r most _ overlaps <<<"$("$TOOLS/guarded" show "$DIR/slot.$each")"
        total=$((total + most))
        assert_eq "$overlaps" 0 "overlaps of slot $each"
    done
    assert_eq "$total" $((many * turns)) turns
    read -r _ most _ <<<"$("$TOOLS/guarded" show "$DIR/all")"
    assert_between "$most" 2 4 'holders at a time'
    assert_only_fences
}

@test "a killed holder's slot is free after its TTL, and the next holder gets that slot" {
    local each from
    for each in 0 1 2 3; do
        hold "h$each" -k "$KEY" --slots 4 -t $((each == 2 ? 1 : 30))
        assert_eq "$(env_of "h$each" RLOCK_SLOT)" "$each"
    done
    run -75 --separate-stderr rlock -n -k "$KEY" --slots 4 -- true
    assert_line "^rlock: $KEY: busy: held for [0-9]+s by sh of "
    from=$(now_ms)
    kill -KILL "$(<"$DIR/pids/h2")"
    start next "$RLOCK" -k "$KEY" --slots 4 -- sh -c 'echo "$("$TOOLS/hold_clock") $RLOCK_SLOT"'
    finish next
    assert_eq "${output#* }" 2 slot
    assert_between $((${output% *} - from)) 500 $((1400 + SLACK)) 'ms until the slot was free'
    holds 3
    for each in 0 1 3; do let_go "h$each" && assert_status 0; done
    assert_only_fences
}

@test "the lowest free slot is granted; exclusive, shared and slot locks exclude each other" {
    local each
    for each in 0 1 2; do hold "h$each" -k "$KEY" --slots 3; done
    let_go h0
    let_go h1
    hold again -k "$KEY" --slots 3
    assert_eq "$(env_of again RLOCK_SLOT)" 0
    run -75 rlock -q -n -k "$KEY" --slots 2 -- true # 2 slots are taken
    run -75 rlock -q -n -k "$KEY" -s -- true
    start alone "$RLOCK" -k "$KEY" -- true
    eventually 5 in_line 1
    run -75 rlock -q -n -k "$KEY" --slots 3 -- true # refused, as `alone` waits in the queue
    let_go again
    let_go h2
    finish alone
    assert_status 0
    # if both --slots and -s are given, the last one counts
    run -0 rlock -k "$KEY" --slots 3 -s -- sh -c 'echo "<$RLOCK_SLOT>"'
    assert_eq "$output" '<>'
    assert_only_fences
}
