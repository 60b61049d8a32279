#!/usr/bin/env bats
# clocks: the server's clock is set forward or back. tests/sim does so in thousands of worlds; here
# it is Redis' own expiry that follows the clock.
#
# Redis expires keys by its clock. If the clock is set forward, leases end at once. If the clock is
# set back, each lease lasts longer by the same time, until the next renewal sets the TTL again.

load ../helpers/common
load ../helpers/queue

setup() {
    common_setup
    redis_start_shifted
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    queue_setup
}

# set_clock HOURS: sets the server's clock to HOURS after this machine's.
set_clock() { shift_clock $(($1 * 3600 * 1000)); }

# is_off SECONDS: true if the server's clock is SECONDS after this machine's, to within a minute.
is_off() {
    local server
    server=$(redis_cli time | head -n 1)
    ((server - EPOCHSECONDS >= $1 - 60 && server - EPOCHSECONDS <= $1 + 60))
}

# was_renewed: true if the PTTL has grown since the last call: only a renewal makes it grow.
was_renewed() {
    local before=$LEFT
    LEFT=$(ttl_ms "$KEY")
    ((LEFT > before))
}

# The test sets the clock forward just after a renewal, so that no renewal comes soon. A renewal
# that arrived before a waiter asked for the lock would put the holder's lock back.
@test "clock forward 1 h: the holder loses the lock and says so; waiters get it" {
    local LEFT=999999
    hold holder -k "$KEY" -t 30
    queue_up 3
    eventually 30 was_renewed
    set_clock 1
    ended 76 holder 30
    all_end 0 {1..3}
    assert_alone
    assert_clean
}

has_normal_ttl() { (($(ttl_ms "$KEY") <= 12000)); }

@test "clock back 1 h: the holder keeps the lock, and its next renewal sets the normal TTL again" {
    hold holder -k "$KEY" -t 12
    queue_up 3
    set_clock -1
    eventually 10 is_off -3600
    assert_between "$(ttl_ms "$KEY")" 1 3700000 'PTTL'
    eventually 10 has_normal_ttl
    let_pass holder
    all_end 0 {1..3}
    assert_order {1..3}
    assert_clean
}

# The dead holder's key now expires an hour later. Redis can't know that nobody will renew it.
@test "clock back 1 h after the holder was killed: all wait until an operator deletes the key" {
    hold holder -k "$KEY" -t 12
    queue_up 2
    kill -KILL "$(<"$DIR/pids/holder")"
    set_clock -1
    eventually 10 is_off -3600
    assert_between "$(ttl_ms "$KEY")" 3500000 3700000 'PTTL'
    redis_cli del "$KEY" >/dev/null
    all_end 0 1 2
    assert_order 1 2
    assert_clean
}
