#!/usr/bin/env bats
# slow: members of a quorum behind lines that delay, slow down or drop what is sent. If a minority
# is behind such lines, rlock works as fast as without them. If a majority is, each call of rlock
# still ends in time.
#
# run: about 70 s

load ../helpers/common
load ../helpers/fake
load ../helpers/quorum

setup_file() { quorum_start 5; }
setup() {
    local each
    common_setup
    ttl=$(lease 2)
    late_ms=$((ttl * 100)) # a member has a tenth of the TTL to reply, and the line delays both ways
    export RLOCK_TTL=${ttl}s TOOLS
    QUORUM=5
    RLOCK_URL=''
    for each in $(all_members); do
        line_start "$(on "$each" eval 'echo $REDIS_PORT')" "line$each"
        CONTROL[each]=$LINE_CONTROL
        RLOCK_URL+=${RLOCK_URL:+ }redis://127.0.0.1:$LINE_PORT
    done
    export RLOCK_URL QUORUM
    quorum_flush
    quorum_is_old $((ttl + 1))
}
teardown_file() {
    local each
    for each in 1 2 3 4 5; do
        redis_use "q$each"
        redis_stop
    done
}

# spoil "NUMBER..." COMMAND...: sends the command, see tests/tools/cutline.c, to the proxies in
# front of these members.
spoil() {
    local each LINE_CONTROL
    for each in $1; do
        LINE_CONTROL=${CONTROL[each]}
        line "${@:2}"
    done
}

# heal "NUMBER...": lets the proxies in front of these members pass on all, without a delay.
heal() {
    spoil "$1" delay 0
    spoil "$1" trickle 0
    spoil "$1" drop up off
    spoil "$1" drop down off
}

@test "two of five members late, slow or silent: rlock acquires, renews and releases as usual" {
    local healthy began who what slack
    run_ms rlock -k "$KEY" -- sh -c 'exit 7'
    assert_status 7
    healthy=$took
    while read -r who what; do
        who=${who//,/ }
        # the fault begins while rlock holds the lock, and lasts for a TTL and the release
        hold middle -k "$KEY"
        # shellcheck disable=SC2086
        spoil "$who" $what
        never "$ttl" file_has "$DIR/middle.err" 'lost'
        began=$(now_ms)
        let_go middle 7
        took=$(($(now_ms) - began))
        assert_status 7
        is_sanitized || assert_between "$took" 0 "$(busy_ms 1000)" "ms to release with $who: $what"
        # the fault is there before rlock starts
        run_ms rlock -k "$KEY:2" --connect-timeout 1s -- sh -c 'exit 7'
        assert_status 7
        assert_eq "$stderr" ''
        slack=$(busy_ms 1000)
        is_sanitized || assert_between "$took" 0 $((healthy * 3 / 2 + slack)) "ms with $who: $what"
        heal "$who"
        assert_no_locks
    done <<TABLE
3 delay $late_ms
2,4 delay $late_ms
2,4 trickle 20
1,5 drop down on
TABLE
}

@test "three of five members late, but in time: rlock acquires and renews" {
    local long=$((3 * ttl))
    quorum_is_old $((long + 1))
    spoil '1 3 5' delay 200 # requests and replies, so 400 ms; members have 600 ms or more to reply
    hold late -k "$KEY" -t "$long"
    assert_between "$(on 1 ttl_ms "$KEY")" 1 $((long * 1000)) 'PTTL on a late member'
    never $((long / 2)) file_has "$DIR/late.err" 'lost'
    assert_eq "$(holders "$KEY")" 5 'members that have the lock'
    let_go late 7
    assert_status 7
    heal '1 3 5'
    assert_no_locks
}

@test "three of five members cut off: a holder ends with 76 in time, an acquire with 69" {
    local way began long=$((3 * ttl))
    quorum_is_old $((long + 1))
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
        assert_between $(($(<"$DIR/beat") - began)) 100 $((ttl * 1000)) \
            'ms that the command ran on'
        run_ms rlock -k "$KEY:2" -t "$long" -n --connect-timeout 500ms -- touch "$DIR/ran"
        assert_status 69
        is_sanitized || assert_between "$took" 0 $((3000 + $(busy_ms 1000))) 'ms until rlock ended'
        [[ ! -e $DIR/ran ]]
        # rlock takes the lock back from the members that its requests still reach
        eventually 2 only_fences
        heal '1 3 5'
        run -7 --separate-stderr rlock -k "$KEY" -- sh -c 'exit 7'
        assert_no_locks
    done
}
