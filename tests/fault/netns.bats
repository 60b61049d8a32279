#!/usr/bin/env bats
# netns: the network between rlock and servers in network namespaces is cut, in one direction or
# both. Unlike a server that is killed or stopped, a server behind a cut goes on: it executes what
# it received before, or still receives, and its replies are lost.
#
# What a cut does to one request after the other, and to the members of a quorum, the simulator
# (tests/sim) shows; here the kernels' TCP takes part.

load ../helpers/common
load ../helpers/quorum
load ../helpers/netns

setup_file() { netns_setup_file 4; }
setup() {
    common_setup
    netns_setup
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

is_blocked() { [[ $(redis_cli client list) == *' cmd=blpop '* ]]; }

cut_in_queue() {
    redis_cli set "$KEY" foreign PX 600000 >/dev/null
    client waiter -k "$KEY" -t 30 -- touch "$DIR/$kind.ran"
    eventually 10 is_blocked
    netns_cut "$N" "$kind"
    redis_cli del "$KEY" >/dev/null
    never 2 dead "$pid" # meanwhile it asks again
    kill -TERM "$pid"
    ended 143 "$kind-waiter" 20
    netns_heal "$N"
    # The kernel must not retransmit rlock's request: rlock has reset the connection.
    never 2 exists "$KEY"
    [[ ! -e $DIR/$kind.ran ]]
    # The waiter couldn't leave the queue: the next one takes over its turn.
    client next -k "$KEY" -w 600 -- sh -c 'exit 7'
    ended 7 "$kind-next" 15
    eventually 10 only_fences_here
}
@test "a cut while rlock queues: after the cut, the server executes none of rlock's late requests" {
    each_kind cut_in_queue out both route
}

# A shell command that ignores TERM, and writes the time into a file every 10 ms.
beat='trap "" TERM; exec "$TOOLS/hold_clock" "$0" 10'

cut_longer_than_lease() {
    local left end last
    client holder -k "$KEY" -t 6 -- sh -c "$beat" "$DIR/$kind.beat"
    eventually 20 test -s "$DIR/$kind.beat"
    netns_cut "$N" "$kind"
    left=$(ttl_ms "$KEY")
    end=$(($(now_ms) + left))
    # If only replies are cut off (out), the server may renew the lease after the cut, so it ends
    # later than that, and rlock doesn't know.
    ended 76 "$kind-holder" 30
    assert_match "$stderr" 'lost: '
    last=$(tail -n 1 "$DIR/$kind.beat")
    assert_between $((end - last)) 1 12000 'ms from the end of the command to the end of the lease'
    eventually 20 gone "$KEY"
    netns_heal "$N"
    client next -k "$KEY" -- sh -c 'exit 7'
    ended 7 "$kind-next" 20
    eventually 10 only_fences_here
}
@test "a cut for longer than the lease: the command has ended before the lease ends, status 76" {
    each_kind cut_longer_than_lease in out both route
}

cut_shorter_than_lease() {
    hold "$kind" -u "$URL" -k "$KEY" -t 20 --connect-timeout 300ms
    netns_cut "$N" "$kind"
    eventually 20 file_has "$DIR/$kind.err" ': renewal-failed'
    netns_heal "$N"
    redis_cli pexpire "$KEY" 10000 >/dev/null
    eventually 10 renewed
    let_pass "$kind" 7
    refute_match "$stderr" 'lost'
    eventually 10 only_fences_here
}
renewed() { (($(ttl_ms "$KEY") > 11000)); }
@test "a cut for less than the lease: rlock renews after it, and the command isn't ended" {
    each_kind cut_shorter_than_lease in out
}
