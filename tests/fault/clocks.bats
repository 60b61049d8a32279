#!/usr/bin/env bats
# clocks: the server's clock is set forward or back, and no waiter waits much longer for that
# reason.
#
# Redis expires keys by its clock. If the clock is set forward, leases end at once. If the clock is
# set back, each lease lasts longer by the same time, until the next renewal sets the TTL again.

load ../helpers/common
load ../helpers/queue

setup() {
    common_setup
    # ms by which a limit may be exceeded: more on a busy machine, and more by a sanitized build
    SLACK=$(busy_ms "$(is_sanitized && echo 8000 || echo 1000)")
    ttl=$(lease 2)
    redis_start_shifted
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    queue_setup
}

# set_clock HOURS: sets the server's clock to HOURS after this machine's.
set_clock() { shift_clock $(($1 * 3600 * 1000)); }

# is_off SECONDS: true if the server's clock is SECONDS after this machine's, to within 3 s.
is_off() {
    local server
    server=$(redis_cli time | head -n 1)
    ((server - EPOCHSECONDS >= $1 - 3 && server - EPOCHSECONDS <= $1 + 3))
}

@test "clockshim: the server's clock is wrong by as many hours as the file says" {
    is_off 0
    set_clock 1
    eventually 5 is_off 3600
    set_clock -1
    eventually 5 is_off -3600
}

# set_back: starts a holder that renews and 10 waiters, and sets the clock back by 1 h.
set_back() {
    hold holder -k "$KEY" -t "$ttl"
    queue_up 10
    set_clock -1
    eventually 5 is_off -3600
}

# assert_last_after FROM MS: the last waiter started at most MS after FROM.
assert_last_after() {
    local last
    last=$(awk 'END { printf "%d\n", $2 * 1000 }' "$DIR/served")
    echo "# the last waited $((last - $1)) ms" >&3
    assert_between $((last - $1)) -20 $(($2 + SLACK)) 'ms until the last waiter started'
}

# assert_all_in_order N: waiters 1 to N were served once each, and at most one out of order. When
# the clock goes forward, the queue expires. A waiter that blocks in BLPOP joins the new queue at
# its old place, with its old ticket. A waiter that had just asked, and didn't block yet, may get a
# place behind waiters that came after it.
assert_all_in_order() {
    assert_eq "$(sort -n "$DIR/served" | cut -d ' ' -f 1 | xargs)" "$(seq -s ' ' "$1")" \
        'waiters that were served'
    assert_between "$(awk '$1 < last { n++ } { last = $1 } END { print n + 0 }' "$DIR/served")" \
        0 1 "number of waiters out of order in: $(served)"
}

# was_renewed: true if the PTTL has grown since the last call: only a renewal makes it grow.
was_renewed() {
    local before=$LEFT
    LEFT=$(ttl_ms "$KEY")
    ((LEFT > before))
}

has_normal_ttl() { (($(ttl_ms "$KEY") <= ttl * 1000)); }

# The test sets the clock forward just after a renewal, so that no renewal comes soon. A renewal
# that arrived before a waiter asked for the lock would put the holder's lock back.
@test "clock forward 1 h: the holder loses the lock and says so; waiters get it in their order" {
    local from LEFT=999999
    hold holder -k "$KEY" -t "$(lease 6)"
    queue_up 10
    eventually 10 was_renewed
    from=$(now_ms)
    set_clock 1
    finish holder
    assert_status 76
    all_end 0 {1..10}
    assert_all_in_order 10
    assert_last_after "$from" 2000
    assert_clean
}

@test "clock forward 1 h after the holder was killed: the waiters get the lock in their order" {
    local from
    hold holder -k "$KEY" -t 60
    queue_up 10
    kill -KILL "$(<"$DIR/pids/holder")"
    from=$(now_ms)
    set_clock 1
    all_end 0 {1..10}
    assert_all_in_order 10
    assert_alone
    assert_last_after "$from" 2000
    assert_clean
}

@test "clock back 1 h: the holder keeps the lock, and its next renewal sets the normal TTL again" {
    local from
    set_back
    assert_between "$(ttl_ms "$KEY")" 1 3700000 'PTTL'
    eventually 5 has_normal_ttl
    from=$(now_ms)
    let_go holder
    assert_status 0
    all_end 0 {1..10}
    assert_order {1..10}
    assert_last_after "$from" 1000
    assert_clean
}

@test "clock back 1 h: a holder that renews once and is killed loses the lock after a normal TTL" {
    local from
    set_back
    eventually 5 has_normal_ttl
    kill -KILL "$(<"$DIR/pids/holder")"
    from=$(($(now_ms) + $(ttl_ms "$KEY")))
    all_end 0 {1..10}
    assert_order {1..10}
    assert_last_after "$from" 1000
    assert_clean
}

# The dead holder's key now expires an hour later. Redis can't know that nobody will renew it.
@test "clock back 1 h after the holder was killed: all wait until an operator deletes the key" {
    local from
    hold holder -k "$KEY" -t "$ttl"
    queue_up 10
    kill -KILL "$(<"$DIR/pids/holder")"
    set_clock -1
    never 3 served_all 1
    assert_between "$(ttl_ms "$KEY")" 3500000 3700000 'PTTL'
    from=$(now_ms)
    redis_cli del "$KEY" >/dev/null
    all_end 0 {1..10}
    assert_order {1..10}
    assert_last_after "$from" 2400
    assert_clean
}

@test "clock back 1 h while the lock is reserved for a stopped waiter: the next waiter gets it" {
    local from
    hold holder -k "$KEY" -t "$ttl"
    queue_up 10 -t "$ttl"
    kill -STOP "$(pid_of 1)"
    from=$(now_ms)
    let_go holder
    set_clock -1
    all_end 0 {2..10}
    assert_order {2..10}
    assert_last_after "$from" 2500
    kill -CONT "$(pid_of 1)"
    all_end 0 1
    assert_clean
}

@test "clock back 1 h while 40 waiters get the lock in turn: all get it, in order, without delay" {
    local from
    hold holder -k "$KEY"
    queue_up 40
    from=$(now_ms)
    let_go holder
    eventually 10 served_all 5
    set_clock -1
    all_end 0 {1..40}
    assert_order {1..40}
    assert_last_after "$from" 2500
    assert_clean
}

@test "clock forward 1 h while 40 waiters get the lock in turn: all get it, at most one loses it" {
    local from each lost=0
    hold holder -k "$KEY"
    queue_up 40
    from=$(now_ms)
    let_go holder
    eventually 10 served_all 5
    set_clock 1
    for each in {1..40}; do
        finish "w$each" 20
        [[ $status == 0 ]] || { assert_status 76 && lost=$((lost + 1)); }
    done
    assert_between "$lost" 0 1 'lost locks'
    assert_all_in_order 40
    assert_last_after "$from" 2500
    assert_clean
}
