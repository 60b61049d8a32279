#!/usr/bin/env bats
# several: several keys are granted together, or none of them.

load ../helpers/common
load ../helpers/server

@test "one script acquires all keys, and one releases them" {
    redis_load_scripts
    redis_monitor "$DIR/monitor"
    run -0 rlock -k "$KEY:a" -k "$KEY:b" -k "$KEY:c" -- "$TOOLS/hold_clock"
    eventually 5 file_has "$DIR/monitor" ' lua\] "(DEL|del)" .*:c"'
    assert_eq "$(grep -c '"EVALSHA"' "$DIR/monitor")" 2 'scripts'
    assert_eq "$(grep -v ' lua\]' "$DIR/monitor" | grep -cv '"EVALSHA"\|^OK$\|"MONITOR"')" 0 \
        'requests beside the scripts'
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
    run -75 --separate-stderr rlock -n -k "$KEY:b" -k "$KEY:c" -- true
    assert_line ": $KEY:b is held by another program"
    let_pass two
    assert_match "$stderr" ': restored:'
    redis_cli del "$KEY:b" >/dev/null
    assert_only_fences
}
