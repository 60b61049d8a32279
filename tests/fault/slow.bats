#!/usr/bin/env bats
# slow: members of a quorum behind lines that are late, slow or lose all: a majority goes on at its
# own pace, and where a majority is late, all that was asked still has its end.

load ../helpers/common
load ../helpers/fake
load ../helpers/quorum

setup_file() { quorum_start 5; }
setup() {
    local each
    common_setup
    export RLOCK_TTL=2s TOOLS # a member has a tenth of the ttl to answer
    QUORUM=5
    RLOCK_URL=''
    for each in $(all_members); do
        line_start "$(on "$each" eval 'echo $REDIS_PORT')" "line$each"
        CONTROL[each]=$LINE_CONTROL
        RLOCK_URL+=${RLOCK_URL:+ }redis://127.0.0.1:$LINE_PORT
    done
    export RLOCK_URL QUORUM
    quorum_flush
    quorum_is_old 3
}
teardown_file() {
    local each
    for each in 1 2 3 4 5; do
        redis_use "q$each"
        redis_stop
    done
}

spoil() { # "NUMBER..." COMMAND...
    local each LINE_CONTROL
    for each in $1; do
        LINE_CONTROL=${CONTROL[each]}
        line "${@:2}"
    done
}

heal() { # "NUMBER..."
    spoil "$1" delay 0
    spoil "$1" trickle 0
    spoil "$1" drop up off
    spoil "$1" drop down off
}

@test "one or two of five late, slow or lossy, before, in the middle, at release: not noticed" {
    local healthy began who what slack
    run_ms rlock -k "$KEY" -- sh -c 'exit 7'
    assert_status 7
    healthy=$took
    while read -r who what; do
        who=${who//,/ }
        # in the middle
        hold middle -k "$KEY"
        # shellcheck disable=SC2086
        spoil "$who" $what
        never 2 file_has "$DIR/middle.err" 'lost'
        began=$(now_ms)
        let_go middle 7
        took=$(($(now_ms) - began))
        assert_status 7
        is_sanitized || assert_between "$took" 0 "$(busy_ms 1000)" "ms to release with $who: $what"
        # before
        run_ms rlock -k "$KEY:2" --connect-timeout 1s -- sh -c 'exit 7'
        assert_status 7
        assert_eq "$stderr" ''
        slack=$(busy_ms 1000)
        is_sanitized || assert_between "$took" 0 $((healthy * 3 / 2 + slack)) "ms with $who: $what"
        heal "$who"
        assert_no_locks
    done <<'TABLE'
3 delay 200
2,4 delay 200
2,4 trickle 20
1,5 drop down on
TABLE
}

@test "a majority late by 200 ms: what can be had in time is had, and held as long as it lasts" {
    quorum_is_old 7
    spoil '1 3 5' delay 200 # twice: there and back
    hold late -k "$KEY" -t 6
    assert_between "$(on 1 ttl_ms "$KEY")" 1 6000 PTTL
    never 3 file_has "$DIR/late.err" 'lost'
    assert_eq "$(holders "$KEY")" 5 holders
    let_go late 7
    assert_status 7
    heal '1 3 5'
    assert_no_locks
}

@test "a majority that loses what is sent to it, or from it: 69 at first, then 76 in time" {
    local way began
    quorum_is_old 7
    for way in up down; do
        rm -f "$DIR/beat"
        start holder "$RLOCK" -k "$KEY" -- sh -c 'trap "" TERM
            while "$TOOLS/hold_clock" >"$0.new"; do mv "$0.new" "$0"; sleep 0.01; done' "$DIR/beat"
        eventually 5 test -e "$DIR/beat"
        spoil '1 3 5' drop "$way" on
        began=$(now_ms)
        finish holder
        assert_status 76
        assert_match "$stderr" 'lost: '
        assert_between $(($(<"$DIR/beat") - began)) 100 2000 'ms that the command went on'
        run_ms rlock -k "$KEY:2" -t 6 -n --connect-timeout 500ms -- touch "$DIR/ran"
        assert_status 69
        is_sanitized || assert_between "$took" 0 $((3000 + $(busy_ms 1000))) 'ms until it was'
        [[ ! -e $DIR/ran ]]
        # what was asked of those who still hear is taken back
        eventually 2 only_fences
        heal '1 3 5'
        run -7 --separate-stderr rlock -k "$KEY" -- sh -c 'exit 7'
        assert_no_locks
    done
}
