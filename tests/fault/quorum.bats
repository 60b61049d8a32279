#!/usr/bin/env bats
# quorum: members that die, hang or lose their data. rlock holds a lock as long as a majority of the
# members confirms it, and no longer.
#
# What late, lost and repeated messages do, tests/unit/test_quorum.c, tests/model/fence.pml and the
# simulator (tests/sim) show, which checks overlaps, fences and orphans in worlds of three members.

load ../helpers/common
load ../helpers/quorum

# A member's vote counts when the member has run longer than a TTL.
start_old() { # start_old MEMBERS TTL_S
    quorum_start "$1"
    quorum_is_old $(($2 + 1))
    export RLOCK_TTL=${2}s
}

@test "two of five members killed or stopped: rlock acquires, renews and releases as usual" {
    start_old 5 12
    hold middle -k "$KEY" -v
    on 2 redis_crash
    on 4 redis_pause
    eventually 20 file_has "$DIR/middle.err" ': renewed'
    let_pass middle 7
    run -7 --separate-stderr rlock -k "$KEY" --connect-timeout 5s -- sh -c 'exit 7'
    assert_eq "$stderr" ''
    # The stopped member may keep its part of the lock until the TTL ends: it drops a connection
    # that rlock has closed, and may not read the release.
    assert_eq "$(each_of '1 3 5' redis_cli exists "$KEY" | sort -u)" 0 'keys on the other members'
    on 4 redis_continue
}

@test "three of five members stopped: a holder ends with 76 in time, an acquire with 69" {
    local began
    start_old 5 6
    start holder "$RLOCK" -k "$KEY" -- sh -c 'trap "" TERM
        exec "$TOOLS/hold_clock" "$DIR/clock" 10'
    eventually 10 test -s "$DIR/clock"
    each_of '1 3 5' redis_pause
    began=$(now_ms)
    ended 76 holder 20
    assert_match "$stderr" "lost: "
    # the last renewal was before the members failed, and `began` was read after that
    assert_between $(($(tail -n 1 "$DIR/clock") - began)) -6000 6000 'ms that the command ran on'
    run -69 --separate-stderr rlock -k "$KEY:2" -n --connect-timeout 500ms -- touch "$DIR/ran"
    assert_match "$stderr" '3 of 5 members failed, 3 must agree: 127.0.0.1:[0-9]+: '
    [[ ! -e $DIR/ran ]]
    # The kernel keeps rlock's requests, and these members read them now.
    each_of '1 3 5' redis_continue
    eventually 20 only_fences || fail "keys left: $(quorum_keys)"
}
