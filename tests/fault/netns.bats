#!/usr/bin/env bats
# netns: cuts between us and servers in network namespaces of their own, each way. Unlike a server
# that was killed or stopped, what is behind a cut goes on: it does what it was asked before or
# hears still, and nobody is told.

load ../helpers/common
load ../helpers/quorum
load ../helpers/netns

setup_file() { netns_setup_file 5; }
setup() {
    common_setup
    netns_setup
    export KEY TOOLS
}
teardown_file() { netns_teardown_file; }

# ---- one server ----

# each_kind CASE KIND...: runs CASE with a server for each, all at once. In CASE
#   N, kind    the server, and how it is to be cut off
#   URL        where it is
each_kind() {
    local case=$1 kind N=0 URL failed=''
    shift
    for kind; do
        N=$((N + 1))
        redis_use "q$N"
        URL=$(netns_url "$N")
        start "case-$kind" "$case"
    done
    for kind; do
        finish "case-$kind" 60
        [[ $status == 0 ]] || failed+="$kind:"$'\n'"$output$stderr"$'\n'
    done
    [[ -z $failed ]] || fail "$failed"
}

client() { # NAME OPTION...: rlock, in the background
    start "$kind-$1" "$RLOCK" -u "$URL" --connect-timeout 500ms "${@:2}"
}

only_fences_here() { [[ -z $(redis_cli --scan | grep -v ':rlock:fence$') ]]; }

cut_before_it_comes() {
    local began
    netns_cut "$N" "$kind"
    began=$(now_ms)
    client patient -k "$KEY:2" -w 30 -- sh -c 'exit 7'
    client hasty -k "$KEY" -w 1.5 -- touch "$DIR/$kind.ran"
    finish "$kind-hasty"
    assert_status 69
    assert_between $(($(now_ms) - began)) 1500 4000 'ms until it gave up'
    [[ ! -e $DIR/$kind.ran ]]
    only_fences_here
    netns_heal "$N"
    finish "$kind-patient"
    assert_status 7
    eventually 5 only_fences_here
}
@test "cut off before it comes: 69 at the end of the wait; healed, who still waits has it" {
    each_kind cut_before_it_comes in out both down route
}

# What they sent waits at the server, which is stopped.
n_asked() {
    local n
    n=$(ss -N "$(netns_name "$N")" -Htn state established | awk '$1 > 0' | wc -l)
    ((n >= $1))
}

granted_and_not_told() {
    local token began
    redis_pause
    client patient -k "$KEY:2" -t 20 -w 30 -- sh -c 'echo "$RLOCK_TOKEN"; exit 7'
    client hasty -k "$KEY" -t 20 -w 2.5 -- touch "$DIR/$kind.ran"
    eventually 5 n_asked 2
    netns_cut "$N" "$kind"
    redis_continue
    began=$(now_ms)
    eventually 5 exists "$KEY:2"
    exists "$KEY"
    token=$(value "$KEY:2" | cut -c 1-32)
    finish "$kind-hasty"
    assert_status 69
    [[ ! -e $DIR/$kind.ran ]]
    if [[ $kind == out ]]; then
        # the server still hears
        eventually 5 gone "$KEY"
        is_sanitized ||
            assert_between $(($(now_ms) - began)) 0 $((3500 + $(busy_ms 1000))) 'ms until then'
    fi
    netns_heal "$N"
    finish "$kind-patient"
    assert_status 7
    assert_eq "$output" "$token" 'the token'
    is_sanitized || assert_between $(($(now_ms) - began)) 0 10000 'ms until it was told'
    eventually 6 only_fences_here
}
@test "cut off when the server has granted it: taken back, or had by the same token when healed" {
    each_kind granted_and_not_told out both down
}

is_blocked() { [[ $(redis_cli client list) == *' cmd=blpop '* ]]; }

request_under_way() {
    local each began
    redis_cli set "$KEY" foreign PX 60000 >/dev/null
    client waiter -k "$KEY" -t 3 -w 2.5 -- touch "$DIR/$kind.ran"
    eventually 5 is_blocked
    netns_cut "$N" "$kind"
    redis_cli del "$KEY" >/dev/null
    finish "$kind-waiter"
    [[ $status == 69 || $status == 75 ]] || assert_status '69 or 75'
    netns_heal "$N"
    # what TCP would have sent once more
    never 2 exists "$KEY"
    [[ ! -e $DIR/$kind.ran ]]
    # its place in line can't be given up by then, and delays the next by the time to claim a turn
    for each in $(redis_cli --scan); do
        assert_between "$(redis_cli pttl "$each")" 1 604800000 "PTTL of $each"
    done
    began=$(now_ms)
    client next -k "$KEY" -w 10 -- sh -c 'exit 7'
    finish "$kind-next"
    assert_status 7
    is_sanitized || assert_between $(($(now_ms) - began)) 0 2500 'ms until the next had it'
    eventually 5 only_fences_here
}
@test "cut off in line: what was sent into the cut is not done when it is healed" {
    each_kind request_under_way in out both down route
}

# Says each moment at which it still runs, and can be ended by KILL only.
beat='trap "" TERM
while "$TOOLS/hold_clock" >"$0.new"; do mv "$0.new" "$0"; sleep 0.01; done'

lease_end_ms() { # KEY: as the server will do it
    local now left
    now=$(now_ms)
    left=$(ttl_ms "$1")
    echo $((now + (left > 0 ? left : 0)))
}

longer_than_the_lease() {
    local began end
    client holder -k "$KEY" -t 1 -- sh -c "$beat" "$DIR/$kind.beat"
    eventually 10 test -e "$DIR/$kind.beat"
    netns_cut "$N" "$kind"
    began=$(now_ms)
    end=$(lease_end_ms "$KEY")
    finish "$kind-holder"
    assert_status 76
    assert_match "$stderr" 'lost: '
    # With `out` the server has renewed it since; but nobody was told.
    assert_between $(($(<"$DIR/$kind.beat") - began)) 100 1000 'ms that the command went on'
    assert_between $((end - $(<"$DIR/$kind.beat"))) 1 2000 'ms from its end to that of the lease'
    eventually 5 gone "$KEY"
    netns_heal "$N"
    client next -k "$KEY" -- sh -c 'exit 7'
    finish "$kind-next"
    assert_status 7
    eventually 5 only_fences_here
}
@test "cut off for longer than the lease: the command has ended before it, 76" {
    each_kind longer_than_the_lease in out both down route
}

ttl_below() { (($(ttl_ms "$KEY") < $1)); } # MS
# renewed_since END: and still there.
renewed_since() {
    local left
    left=$(ttl_ms "$KEY")
    ((left > 0 && $(now_ms) + left > $1 + 500))
}

shorter_than_the_lease() {
    local end i
    hold "$kind" -u "$URL" -k "$KEY" -t 6 --connect-timeout 300ms
    end=$(lease_end_ms "$KEY")
    eventually 5 renewed_since "$end"
    netns_cut "$N" "$kind"
    # The next is due after 2 s; where it is heard, the server has done it.
    end=$(lease_end_ms "$KEY")
    if [[ $kind == out ]]; then
        eventually 5 renewed_since "$end"
    else
        eventually 5 ttl_below 3700
    fi
    # By then a SYN may have been lost, and TCP sends the next after 1 s: that must fit in, too.
    netns_heal "$N"
    for i in 1 2; do
        end=$(lease_end_ms "$KEY")
        eventually 5 renewed_since "$end"
    done
    alive "$(<"$DIR/pids/$kind")"
    let_go "$kind" 7
    assert_status 7
    refute_match "$stderr" 'lost'
    eventually 5 only_fences_here
}
@test "cut off for less than the lease: the command goes on, and renewals do" {
    each_kind shorter_than_the_lease in out both down route
}

cut_at_release() {
    local began took end
    hold "$kind" -u "$URL" -k "$KEY" -t 6 --connect-timeout 300ms
    netns_cut "$N" "$kind"
    end=$(lease_end_ms "$KEY")
    began=$(now_ms)
    let_go "$kind" 7
    took=$(($(now_ms) - began))
    assert_status 7
    assert_line 'not-released: .*the lock is free when its ttl ends'
    is_sanitized || assert_between "$took" 0 $((3000 + $(busy_ms 500))) 'ms that the release took'
    if [[ $kind == out ]]; then
        gone "$KEY"
    elif exists "$KEY"; then
        # a renewal would have added a second or two
        assert_between "$(lease_end_ms "$KEY")" 0 $((end + 500)) 'the moment at which it is free'
    fi
    eventually 10 only_fences_here
    netns_heal "$N"
    # nor does anything come later
    client next -k "$KEY" -n -- sh -c 'exit 7'
    finish "$kind-next"
    assert_status 7
}
@test "cut off at release: it ends in time, and the lock is free by its ttl at most" {
    each_kind cut_at_release in out both down route
}

# ---- a quorum ----

@test "two of five behind a cut, before, in the middle, at release: nothing is noticed" {
    local pair healthy began slack
    export RLOCK_TTL=2s # a member has a tenth of it to answer
    quorum_is_old 3
    run_ms rlock -k "$KEY" -- sh -c 'exit 7'
    assert_status 7
    healthy=$took
    for pair in 'in in' 'out out' 'both route' 'down down'; do
        # in the middle: over more than one renewal, and a lease
        hold middle -k "$KEY"
        netns_cut 2 "${pair% *}"
        netns_cut 4 "${pair#* }"
        never 2 file_has "$DIR/middle.err" 'lost'
        let_go middle 7
        assert_status 7
        # before
        run_ms rlock -k "$KEY" --connect-timeout 1s -- sh -c 'exit 7'
        assert_status 7
        assert_eq "$stderr" ''
        slack=$(busy_ms 1000)
        is_sanitized || assert_between "$took" 0 $((healthy * 3 / 2 + slack)) "ms with $pair"
        run_ms rlock -k "$KEY:n" -n --connect-timeout 1s -- true
        assert_status 0
        netns_heal_all 2 4
        # at release
        hold last -k "$KEY"
        netns_cut 1 "${pair% *}"
        netns_cut 5 "${pair#* }"
        began=$(now_ms)
        let_go last 7
        took=$(($(now_ms) - began))
        assert_status 7
        is_sanitized || assert_between "$took" 0 "$(busy_ms 1000)" "ms to release with $pair"
        netns_heal_all 1 5
        assert_no_locks
    done
}

@test "three of five behind a cut: 69 at first, then 76, and no command beyond its lease" {
    local kinds began ended
    export RLOCK_TTL=2s # a member has a tenth of it to answer
    quorum_is_old 3
    for kinds in 'in out down' 'out both route'; do
        read -ra kinds <<<"$kinds"
        rm -f "$DIR/beat"
        start holder "$RLOCK" -k "$KEY" -- sh -c "$beat" "$DIR/beat"
        eventually 5 test -e "$DIR/beat"
        netns_cut 1 "${kinds[0]}"
        netns_cut 3 "${kinds[1]}"
        netns_cut 5 "${kinds[2]}"
        began=$(now_ms)
        finish holder
        ended=$(<"$DIR/beat")
        assert_status 76
        assert_match "$stderr" 'lost: '
        assert_between $((ended - began)) 100 2000 'ms that the command went on'
        run_ms rlock -k "$KEY:2" -n --connect-timeout 500ms -- touch "$DIR/ran"
        assert_status 69
        assert_match "$stderr" '2 of 5 members answered, 3 are needed; 10\.[0-9.]+:[0-9]+: '
        is_sanitized || assert_between "$took" 0 $((1500 + $(busy_ms 1000))) 'ms until it was'
        # healed while it waits
        start waiter "$RLOCK" -k "$KEY:2" -w 20 --connect-timeout 500ms -- sh -c 'exit 7'
        never 1 dead "$pid"
        netns_heal_all 1 3 5
        finish waiter
        assert_status 7
        run -7 --separate-stderr rlock -k "$KEY" -w 5 -- sh -c 'exit 7'
        assert_eq "$stderr" ''
        assert_no_locks
        [[ ! -e $DIR/ran ]]
    done
}

cut_when_asked() { eventually 5 n_asked 1 && netns_cut "$N" out; }

@test "what three of five have granted behind a cut is taken back, unheard or not" {
    local each cuts=()
    ! is_sanitized || skip 'it would give up before it is cut off'
    quorum_is_old 21
    run -0 rlock -k "$KEY:0" -t 20 -- true # or they would have to ask for the script's text
    each_of '1 2 3' redis_pause
    start ghost "$RLOCK" -k "$KEY" -t 20 -n --connect-timeout 500ms -- touch "$DIR/ran"
    # at once, as what was asked is worth nothing after 2 s
    for each in 1 2 3; do
        N=$each cut_when_asked 3>&- &
        cuts+=("$!")
    done
    wait "${cuts[@]}"
    kill -STOP "$pid" # or it might give up, and take the lock back, before we have seen it
    each_of '1 2 3' redis_continue
    eventually 5 held_by "$KEY" 5
    kill -CONT "$pid"
    finish ghost
    assert_status 69
    # all five still hear, and it is long until they would forget
    eventually 4 held_by "$KEY" 0
    netns_heal_all 1 2 3
    assert_no_locks
    [[ ! -e $DIR/ran ]]
}
