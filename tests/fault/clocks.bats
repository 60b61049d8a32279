#!/usr/bin/env bats
# clocks: the clock of the server is set forward or back, and nobody waits much longer for it.
#
# A key expires by that clock: set forward, it ends leases at once; set back, it prolongs each by
# as much until the next renewal.

load ../helpers/common
load ../helpers/queue

setup() {
    common_setup
    SLACK=$(busy_ms 1000) # ms that a busy machine may add
    ! is_sanitized || SLACK=8000
    set_clock 0
    printf '#!/bin/sh\nLD_PRELOAD=%s CLOCKSHIM=%s exec %s "$@"\n' \
        "$TOOLS/clockshim.so" "$DIR/clock" "$(redis_program | tail -n 1)" >"$DIR/shifted-server"
    chmod +x "$DIR/shifted-server"
    RLOCK_TEST_SERVER=$DIR/shifted-server redis_start
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    queue_setup
}

# set_clock HOURS: by how much the server's is wrong. The file is mapped there: no truncation.
set_clock() { perl -e 'print pack "q", $ARGV[0] * 3600e6' -- "$1" 1<>"$DIR/clock"; }

# is_off SECONDS: by how much the server's clock differs from ours, give or take a few.
is_off() {
    local server
    server=$(redis_cli time | head -n 1)
    ((server - EPOCHSECONDS >= $1 - 3 && server - EPOCHSECONDS <= $1 + 3))
}

@test "clockshim: the server's clock goes as it is told, forward and back" {
    is_off 0
    set_clock 1
    eventually 5 is_off 3600
    set_clock -1
    eventually 5 is_off -3600
}

# set_back: 10 wait for a holder that renews, and the clock is set back.
set_back() {
    hold holder -k "$KEY" -t 2
    queue_up 10
    set_clock -1
    eventually 5 is_off -3600
}

# assert_last_after FROM MS: nobody had to wait for longer than that.
assert_last_after() {
    local last
    last=$(awk 'END { printf "%d\n", $2 * 1000 }' "$DIR/served")
    echo "# the last waited $((last - $1)) ms" >&3
    assert_between $((last - $1)) -20 $(($2 + SLACK)) 'ms to the last'
}

# assert_all_in_order N: each once. One who had just asked, and did not sleep yet, may be late, as
# all that the server knew of the line has expired.
assert_all_in_order() {
    assert_eq "$(sort -n "$DIR/served" | cut -d ' ' -f 1 | xargs)" "$(seq -s ' ' "$1")"
    assert_between "$(awk '$1 < last { n++ } { last = $1 } END { print n + 0 }' "$DIR/served")" \
        0 1 "who came late in: $(served)"
}

was_renewed() { (($(ttl_ms "$KEY") > 5900)); }

is_sane() { (($(ttl_ms "$KEY") <= 2000)); } # the lease of the holder

# Were it the holder that came first, it would put its lease back; so it has just been there.
@test "forward 1 h: who holds has lost the lock, which is said; the line goes on in its order" {
    local from
    hold holder -k "$KEY" -t 6
    queue_up 10
    eventually 5 was_renewed
    from=$(now_ms)
    set_clock 1
    finish holder
    assert_status 76
    all_end 0 {1..10}
    assert_all_in_order 10
    assert_last_after "$from" 2000
    assert_clean
}

@test "forward 1 h after the holder was killed: the line goes on, in its order" {
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

@test "back 1 h: who holds goes on and is waited for; its next renewal puts the TTL right" {
    local from
    set_back
    assert_between "$(ttl_ms "$KEY")" 1 3700000
    eventually 5 is_sane
    from=$(now_ms)
    let_go holder
    assert_status 0
    all_end 0 {1..10}
    assert_order {1..10}
    assert_last_after "$from" 1000
    assert_clean
}

@test "back 1 h, and the holder is killed after its next renewal: the line goes on at its TTL" {
    local from
    set_back
    eventually 5 is_sane
    kill -KILL "$(<"$DIR/pids/holder")"
    from=$(($(now_ms) + $(ttl_ms "$KEY")))
    all_end 0 {1..10}
    assert_order {1..10}
    assert_last_after "$from" 1000
    assert_clean
}

# Redis can't know that the key of the dead is an hour too old; an operator can.
@test "back 1 h after the holder was killed: waited for, and once the key is deleted all go on" {
    local from
    hold holder -k "$KEY" -t 2
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

@test "back 1 h while the lock is reserved for one who doesn't come: the next is served" {
    local from
    hold holder -k "$KEY" -t 2
    queue_up 10 -t 2
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

@test "back 1 h while the line moves: nobody is lost or waits for long" {
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

@test "forward 1 h while the line moves: one may lose the lock, nobody is lost or waits for long" {
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
