#!/usr/bin/env bats
# slots: up to N processes hold a lock together, each with a slot number of its own.

load ../helpers/common
load ../helpers/server
load ../helpers/kinds

setup() { kinds_setup; }

holders() { redis_cli zcard "{$KEY}:rlock:holders"; }

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
        ended 0 "p$each" 120
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
