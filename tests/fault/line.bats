#!/usr/bin/env bats
# line: waiters in a queue get the lock in their order, also if other waiters, the holder or the
# server die, stop or come back.
#
# tests/unit/scripts.txt has after how many ms the next waiter takes a dead waiter's turn, and the
# simulator (tests/sim) checks the order with up to 2,000 waiters and all faults.
#
# RLOCK_TEST_WAITERS is the length of the queue in the long test: 100 by default.

load ../helpers/common
load ../helpers/server
load ../helpers/fake
load ../helpers/lua
load ../helpers/queue

setup() {
    common_setup
    SLACK=$(busy_ms 500) # ms by which a busy machine may exceed a limit
    many=${RLOCK_TEST_WAITERS:-100}
    ! is_sanitized || { many=30 SLACK=5000; }
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    queue_setup
}

# assert_keys_expire: each key of the server expires: a last fence within a week, others within
# 40 s.
assert_keys_expire() {
    local key
    for key in $(redis_cli --scan); do
        [[ $key == *:rlock:fence ]] || assert_between "$(ttl_ms "$key")" -2 40000 "TTL of $key"
        assert_between "$(ttl_ms "$key")" -2 604800000 "TTL of $key"
        [[ $(ttl_ms "$key") != -1 ]] || fail "key without an expiry: $key"
    done
}

# send_signals FILE MARGIN: for each line `SIGNAL WAITER` of the file sends the signal to that
# waiter, with pauses of up to 80 ms. send_signals spares the waiter that has the lock, and the next
# MARGIN waiters, which might get the lock before the signal comes: the test is about waiters, not
# holders.
send_signals() {
    local signal waiter last
    while read -r signal waiter; do
        last=$(tail -n 1 "$DIR/served")
        ((waiter > ${last%% *} + $2)) || continue
        echo "$waiter" >>"$DIR/$signal"
        kill "-$signal" "$(pid_of "$waiter")"
        sleep "0.0$((RANDOM % 9))"
    done <"$1"
}

# joins_with_fate NUMBER: starts a waiter. Of ten waiters three get a line in $DIR/fates, `ORDER
# SIGNAL NUMBER`: the test sorts by the random number ORDER, and sends the signals in that order.
# One waiter of ten waits for at most 20 s, and is listed in $DIR/hurried.
joins_with_fate() {
    local wait=100
    case $((RANDOM % 10)) in
        0) echo "$RANDOM KILL $1" >>"$DIR/fates" ;;
        1) echo "$RANDOM STOP $1" >>"$DIR/fates" ;;
        2) echo "$RANDOM TERM $1" >>"$DIR/fates" ;;
        3) wait=$((RANDOM % 20 + 1)) && echo "$1" >>"$DIR/hurried" ;;
    esac
    joins "$1" -t 2 -w "$wait"
}

# assert_ended_by STATUS FILE: checks that the waiters that ended with STATUS are those in the file.
assert_ended_by() {
    assert_eq "$(awk -v status="$1" '$1 == status { print $2 }' "$DIR/ended")" \
        "$(sort -n "$DIR/$2")" "waiters that ended with $1"
}

# bats test_tags=long
@test "some waiters are killed, stopped, sent TERM, or time out: the others get the lock in order" {
    local each stall dead wanted
    RANDOM=${RLOCK_TEST_SEED:=$RANDOM}
    echo "# RLOCK_TEST_SEED=$RLOCK_TEST_SEED" >&3
    touch "$DIR"/{KILL,STOP,TERM,fates,hurried}
    hold holder -k "$KEY"
    for ((each = 1; each <= many; each++)); do joins_with_fate "$each"; done
    # half of the signals are sent before the first waiter gets the lock, half while waiters get it
    sort -n "$DIR/fates" | cut -d ' ' -f 2- | split -n r/2 - "$DIR/fates."
    send_signals "$DIR/fates.aa" 0
    timeout 10 tee "$DIR/holder.go" <<<0 >/dev/null
    send_signals "$DIR/fates.ab" 30
    for each in $(seq "$many" | grep -vxFf "$DIR/STOP"); do
        finish "w$each" 60
        echo "$status $each" >>"$DIR/ended"
    done
    grep -xFf "$DIR/hurried" <(sed -n 's/^75 //p' "$DIR/ended") >"$DIR/late" || :
    assert_ended_by 75 late
    assert_ended_by 137 KILL
    assert_ended_by 143 TERM
    mapfile -t wanted < <(seq "$many" | grep -vxFf <(cat "$DIR"/{KILL,STOP,TERM,late}))
    assert_order "${wanted[@]}"

    mapfile -t dead < <(cat "$DIR"/{KILL,STOP})
    stall=$(longest_stall_ms "${dead[@]}")
    echo "# $(cd "$DIR" && wc -l KILL STOP TERM late | xargs); longest stall: $stall ms" >&3
    assert_between "$stall" 0 "$SLACK" 'ms between two turns, less 1 s for each waiter that died'
    for each in $(<"$DIR/STOP"); do kill -CONT "$(pid_of "$each")"; done
    for each in $(<"$DIR/STOP"); do all_end 0 "$each"; done
    assert_alone
    assert_keys_expire
}

@test "the server restarts without its data while rlocks wait: they keep their order" {
    redis_start empty
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_cli set "$KEY" foreign >/dev/null
    queue_up 5
    redis_crash
    never 1 served_all 1 # the server stays away for a second
    redis_restart
    all_end 0 {1..5}
    assert_order {1..5}
    assert_clean
}
