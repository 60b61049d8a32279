#!/usr/bin/env bats
# netns: the network between rlock and servers in network namespaces is cut, in one direction or
# both. Unlike a server that is killed or stopped, a server behind a cut goes on: it executes what
# it received before, or still receives, and its replies are lost.

load ../helpers/common
load ../helpers/quorum
load ../helpers/netns

setup_file() { netns_setup_file 5; }
setup() {
    common_setup
    netns_setup
    export KEY TOOLS
    ttl=$(lease 2)
}
teardown_file() { netns_teardown_file; }

# ---- cuts to one server ----

# each_kind CASE KIND...: runs the function CASE once for each kind of cut, all at the same time.
# For CASE these variables are set:
#   N          the number of the server that this call of CASE uses
#   kind       the kind of cut, for netns_cut
#   URL        the address of server N
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

# client NAME OPTION...: starts rlock in the background, as $kind-NAME.
client() {
    start "$kind-$1" "$RLOCK" -u "$URL" --connect-timeout 500ms "${@:2}"
}

only_fences_here() { [[ -z $(redis_cli --scan | grep -v ':rlock:fence$') ]]; }

cut_before_acquire() {
    local began
    netns_cut "$N" "$kind"
    began=$(now_ms)
    client patient -k "$KEY:2" -w 30 -- sh -c 'exit 7'
    client hasty -k "$KEY" -w 1.5 -- touch "$DIR/$kind.ran"
    finish "$kind-hasty"
    assert_status 69
    assert_between $(($(now_ms) - began)) 1500 $((3000 + $(busy_ms 1000))) 'ms until rlock ended'
    [[ ! -e $DIR/$kind.ran ]]
    only_fences_here
    netns_heal "$N"
    finish "$kind-patient"
    assert_status 7
    eventually 5 only_fences_here
}
@test "a cut before the acquire: status 69 when --wait is over; a longer wait gets the lock" {
    each_kind cut_before_acquire in out both down route
}

# n_asked NUMBER: true if NUMBER connections have requests that the stopped server hasn't read yet.
n_asked() {
    local n
    n=$(ss -N "$(netns_name "$N")" -Htn state established | awk '$1 > 0' | wc -l)
    ((n >= $1))
}

cut_after_grant() {
    local token began KEY=$KEY$LONG
    # The server must know the scripts: its answer NOSCRIPT would be lost, and the text never sent.
    "$RLOCK" -u "$URL" -k "$KEY" -- true
    redis_pause
    client patient -k "$KEY:2" -t 20 -w 30 -- sh -c 'echo "$RLOCK_TOKEN"; exit 7'
    client hasty -k "$KEY" -t 8 -w 2.5 -- touch "$DIR/$kind.ran"
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
        # Only replies are cut off: rlock learns of no grant, but its request to undo the grant
        # reaches the server.
        eventually 5 gone "$KEY"
        is_sanitized ||
            assert_between $(($(now_ms) - began)) 0 $((3500 + $(busy_ms 1000))) 'ms until the undo'
    fi
    netns_heal "$N"
    finish "$kind-patient"
    assert_status 7
    assert_eq "$output" "$token" 'token of the command'
    is_sanitized ||
        assert_between $(($(now_ms) - began)) 0 $((9000 + $(busy_ms 1000))) 'ms until it ended'
    # Both kernels send again what they sent during the cut. If the undo arrives first, the lock is
    # gone. If the reply arrives first, the kernel resets the connection, because rlock has closed
    # it, and the undo is lost: then the lock expires, 8 s after the grant.
    eventually 10 only_fences_here
}
@test "a cut before an acquire's reply: rlock gets the lock if it still waits, else none is left" {
    LONG='' each_kind cut_after_grant out both down
}
# Before the server has acknowledged the first packet, TCP sends no more than ten. The text of the
# script that undoes the grant doesn't fit into them beside so long a key.
@test "a cut before an acquire's reply, and a key of 200 bytes: none is left" {
    LONG=$(printf '%0200d' 0) each_kind cut_after_grant out
}

is_blocked() { [[ $(redis_cli client list) == *' cmd=blpop '* ]]; }

cut_in_queue() {
    local each began
    redis_cli set "$KEY" foreign PX 60000 >/dev/null
    client waiter -k "$KEY" -t 3 -w 2.5 -- touch "$DIR/$kind.ran"
    eventually 5 is_blocked
    netns_cut "$N" "$kind"
    redis_cli del "$KEY" >/dev/null
    finish "$kind-waiter"
    [[ $status == 69 || $status == 75 ]] || assert_status '69 or 75'
    netns_heal "$N"
    # The kernel must not retransmit rlock's request: rlock has reset the connection.
    never 2 exists "$KEY"
    [[ ! -e $DIR/$kind.ran ]]
    # The waiter couldn't leave the queue. The waiter's place expires, and delays the next waiter a
    # little.
    for each in $(redis_cli --scan); do
        assert_between "$(redis_cli pttl "$each")" 1 604800000 "PTTL of $each"
    done
    began=$(now_ms)
    client next -k "$KEY" -w 10 -- sh -c 'exit 7'
    finish "$kind-next"
    assert_status 7
    is_sanitized ||
        assert_between $(($(now_ms) - began)) 0 $((1500 + $(busy_ms 1000))) 'ms until the next lock'
    eventually 5 only_fences_here
}
@test "a cut while rlock queues: after the cut, the server executes none of rlock's late requests" {
    each_kind cut_in_queue in out both down route
}

# A shell command that ignores TERM, and writes the time into the file $0 every few ms.
beat='trap "" TERM
while "$TOOLS/hold_clock" >"$0.new"; do mv "$0.new" "$0"; sleep 0.01; done'

# lease_end_ms KEY: prints when the server will let the key expire at the latest, on rlock's clock.
# On a busy machine it takes 0.5 s to ask the server, so the clock is read after that.
lease_end_ms() {
    local left
    left=$(ttl_ms "$1")
    echo $(($(now_ms) + (left > 0 ? left : 0)))
}

cut_longer_than_lease() {
    local began end
    client holder -k "$KEY" -t "$ttl" -- sh -c "$beat" "$DIR/$kind.beat"
    eventually 10 test -e "$DIR/$kind.beat"
    netns_cut "$N" "$kind"
    began=$(now_ms)
    end=$(lease_end_ms "$KEY")
    finish "$kind-holder"
    assert_status 76
    assert_match "$stderr" 'lost: '
    assert_between $(($(<"$DIR/$kind.beat") - began)) 100 $((ttl * 1000)) \
        'ms that the command ran on'
    # If only replies are cut off (out), the server has renewed the lease after the cut, and rlock
    # doesn't know that.
    assert_between $((end - $(<"$DIR/$kind.beat"))) 1 $((ttl * 2000)) \
        'ms from the end of the command to the end of the lease'
    eventually 5 gone "$KEY"
    netns_heal "$N"
    client next -k "$KEY" -- sh -c 'exit 7'
    finish "$kind-next"
    assert_status 7
    eventually 5 only_fences_here
}
@test "a cut for longer than the lease: the command has ended before the lease ends, status 76" {
    each_kind cut_longer_than_lease in out both down route
}

ttl_below() { (($(ttl_ms "$KEY") < $1)); } # ttl_below MS
# renewed_since END: true if the key exists, and expires more than 0.5 s after END.
renewed_since() {
    local left
    left=$(ttl_ms "$KEY")
    ((left > 0 && $(now_ms) + left > $1 + 500))
}

cut_shorter_than_lease() {
    local end i long=$((3 * ttl))
    hold "$kind" -u "$URL" -k "$KEY" -t "$long" --connect-timeout 300ms
    end=$(lease_end_ms "$KEY")
    eventually 5 renewed_since "$end"
    netns_cut "$N" "$kind"
    # The next renewal is sent after a third of the TTL. If only replies are cut off (out), the
    # server receives it.
    end=$(lease_end_ms "$KEY")
    if [[ $kind == out ]]; then
        eventually 5 renewed_since "$end"
    else
        eventually 5 ttl_below $((long * 620))
    fi
    # If a SYN was lost in the cut, TCP sends it again after 1 s; the lease must last until then.
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
@test "a cut for less than the lease: rlock renews after it, and the command isn't ended" {
    each_kind cut_shorter_than_lease in out both down route
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
        # a renewal would have moved the end by a second or two
        assert_between "$(lease_end_ms "$KEY")" 0 $((end + 500)) 'moment at which the lease ends'
    fi
    eventually 10 only_fences_here
    netns_heal "$N"
    # no late request of the first rlock takes the lock after the cut
    client next -k "$KEY" -n -- sh -c 'exit 7'
    finish "$kind-next"
    assert_status 7
}
@test "a cut before the release: rlock ends in time, and the lock is free when its lease ends" {
    each_kind cut_at_release in out both down route
}

# ---- cuts to members of a quorum ----

@test "two of five members behind a cut: rlock acquires, renews and releases as usual" {
    local pair healthy began slack
    export RLOCK_TTL=${ttl}s # a member has a tenth of the TTL to reply
    quorum_is_old $((ttl + 1))
    run_ms rlock -k "$KEY" -- sh -c 'exit 7'
    assert_status 7
    healthy=$took
    for pair in 'in in' 'out out' 'both route' 'down down'; do
        # the cut begins while rlock holds the lock, and lasts for a TTL and the release
        hold middle -k "$KEY"
        netns_cut 2 "${pair% *}"
        netns_cut 4 "${pair#* }"
        never "$ttl" file_has "$DIR/middle.err" 'lost'
        let_go middle 7
        assert_status 7
        # the cut is there before rlock starts
        run_ms rlock -k "$KEY" --connect-timeout 1s -- sh -c 'exit 7'
        assert_status 7
        assert_eq "$stderr" ''
        slack=$(busy_ms 1000)
        is_sanitized || assert_between "$took" 0 $((healthy * 3 / 2 + slack)) "ms with $pair"
        run_ms rlock -k "$KEY:n" -n --connect-timeout 1s -- true
        assert_status 0
        netns_heal_all 2 4
        # the cut begins just before the release
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

@test "three of five members behind a cut: a holder ends with 76 in time, an acquire with 69" {
    local kinds began ended
    export RLOCK_TTL=${ttl}s # a member has a tenth of the TTL to reply
    quorum_is_old $((ttl + 1))
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
        assert_between $((ended - began)) 100 $((ttl * 1000)) 'ms that the command ran on'
        run_ms rlock -k "$KEY:2" -n --connect-timeout 500ms -- touch "$DIR/ran"
        assert_status 69
        assert_match "$stderr" '3 of 5 members failed, 3 must agree: 10\.[0-9.]+:[0-9]+: '
        is_sanitized || assert_between "$took" 0 $((1500 + $(busy_ms 1000))) 'ms until rlock ended'
        # the cut ends while rlock waits
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

@test "three of five members grant the lock behind a cut of their replies: rlock takes it back" {
    local each cuts=()
    ! is_sanitized || skip 'a sanitized rlock is too slow, and would give up before the cut'
    quorum_is_old 21
    run -0 rlock -k "$KEY:0" -t 20 -- true # so that the servers know the script by its SHA1
    each_of '1 2 3' redis_pause
    start ghost "$RLOCK" -k "$KEY" -t 20 -n --connect-timeout 500ms -- touch "$DIR/ran"
    # all cuts at the same time: the servers refuse requests that are older than 2 s
    for each in 1 2 3; do
        N=$each cut_when_asked 3>&- &
        cuts+=("$!")
    done
    wait "${cuts[@]}"
    kill -STOP "$pid" # else rlock might undo the grant before the test has seen it
    each_of '1 2 3' redis_continue
    eventually 5 held_by "$KEY" 5
    kill -CONT "$pid"
    finish ghost
    assert_status 69
    # all five members receive the undo; the TTL of 20 s ends much later
    eventually 4 held_by "$KEY" 0
    netns_heal_all 1 2 3
    assert_no_locks
    [[ ! -e $DIR/ran ]]
}
