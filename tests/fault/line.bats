#!/usr/bin/env bats
# line: waiters in a queue get the lock in their order, also if other waiters, the holder or the
# server die, stop or come back.
#
# RLOCK_TEST_WAITERS is the length of the queue in the first test: 100 by default.
#
# run: about 70 s

load ../helpers/common
load ../helpers/fake
load ../helpers/queue

setup_file() { redis_start; }
teardown_file() { redis_stop; }

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

@test "several dead or stopped waiters in a row delay the next waiter by at most 1 s each" {
    local each from
    hold holder -k "$KEY"
    queue_up 9
    for each in 1 2 3 4; do kill -KILL "$(pid_of "$each")"; done
    for each in 6 7 8; do kill -STOP "$(pid_of "$each")"; done
    from=$(now_ms)
    let_go holder
    all_end 0 5 9
    echo "# ms: $(($(started_ms 5) - from)) $(($(started_ms 9) - $(started_ms 5)))" >&3
    assert_between $(($(started_ms 5) - from)) 0 $((4000 + SLACK)) 'ms behind four dead waiters'
    assert_between $(($(started_ms 9) - $(started_ms 5))) 0 $((3000 + SLACK)) \
        'ms behind three stopped waiters'
    for each in 6 7 8; do kill -CONT "$(pid_of "$each")"; done
    all_end 0 6 7 8
    assert_alone
}

# write_turn_until_killed: writes a command that runs for TURN_S seconds. If $DIR/alive.N exists,
# the command of waiter N - 1 also runs until the test has killed waiter N and removed the file.
# Otherwise waiter N might get the lock before the test kills it.
write_turn_until_killed() {
    cat >"$DIR/turn" <<'TURN'
exec 9>>"$DIR/alone"
flock -n 9 || echo "$1" >>"$DIR/overlaps"
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/served"
sleep "$TURN_S"
while [ -e "$DIR/alive.$(($1 + 1))" ]; do sleep 0.01; done
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/turn_ends"
TURN
}
turn_ended_ms() { awk -v n="$1" '$1 == n { printf "%d\n", $2 * 1000 }' "$DIR/turn_ends"; }

@test "a waiter killed just before it gets the lock delays the next waiter by at most 1 s" {
    local dead ms
    write_turn_until_killed
    # When BLPOPs time out, an idle Redis replies late, and to several clients at once. Then more
    # waiters ask again than a release has woken, and one of them finds the dead waiter by chance.
    # To test that the right waiter finds it, pings keep the server from being idle.
    start busy redis-cli -s "$REDIS_SOCKET" -r -1 -i 0.004 ping
    for TURN_S in 0.2 0.3 0.4 0.7; do
        export TURN_S
        : >"$DIR/served"
        : >"$DIR/turn_ends"
        touch "$DIR"/alive.{6,9}
        hold holder -k "$KEY"
        queue_up 13
        let_go holder
        for dead in 6 9; do
            eventually 10 served_all $((dead == 6 ? 5 : 7))
            kill -KILL "$(pid_of "$dead")"
            rm "$DIR/alive.$dead"
        done
        all_end 0 {1..5} 7 8 {10..13}
        assert_order {1..5} 7 8 {10..13}
        for dead in 6 9; do
            ms=$(($(started_ms $((dead + 1))) - $(turn_ended_ms $((dead - 1)))))
            echo "# turns of $TURN_S s: $ms ms with one that died" >&3
            assert_between "$ms" 0 $((1000 + SLACK)) 'ms from the turn before to the turn after'
        done
    done
}

# best MS...: prints the shortest of the measured delays: load can only make a delay longer.
best() { printf '%s\n' "$@" | sort -n | head -n 1; }

@test "a waiter starts within 0.3 s of the end of a dead holder's lease, 0.4 s of a foreign DEL" {
    local round from killed=() deleted=()
    for round in 1 2 3; do
        hold holder -k "$KEY" -t "$(lease 1)"
        queue_up 1
        kill -KILL "$(<"$DIR/pids/holder")"
        from=$(($(now_ms) + $(ttl_ms "$KEY")))
        all_end 0 1
        killed+=($(($(started_ms 1) - from)))
        : >"$DIR/served"
        redis_cli set "$KEY" foreign px 60000 >/dev/null
        queue_up 1
        from=$(now_ms)
        redis_cli del "$KEY" >/dev/null
        all_end 0 1
        deleted+=($(($(started_ms 1) - from)))
        : >"$DIR/served"
    done
    echo "# ms after the lease: ${killed[*]}; after the DEL: ${deleted[*]}" >&3
    is_sanitized && SLACK=1700 || SLACK=$(($(busy_ms 100) - 100))
    assert_between "$(best "${killed[@]}")" -30 $((300 + SLACK)) 'ms after the end of the lease'
    assert_between "$(best "${deleted[@]}")" -10 $((400 + SLACK)) 'ms after the DEL'
}

# disturb: flushes the scripts, closes connections and pauses clients until 20 waiters were served.
disturb() {
    local trouble
    while ! served_all 20; do
        for trouble in 'script flush' 'client kill type normal' 'client pause 200' \
            'client pause 100 write'; do
            redis_cli $trouble >/dev/null
            sleep "0.0$((RANDOM % 10))"
        done
    done
}

@test "SCRIPT FLUSH, CLIENT KILL, CLIENT PAUSE while waiters get the lock: each gets it once" {
    hold holder -k "$KEY"
    queue_up 20
    let_go holder
    disturb
    all_end 0 {1..20}
    assert_eq "$(served | tr ' ' '\n' | sort -n | xargs)" "$(seq -s' ' 20)"
    assert_alone
    assert_clean
}

@test "CLIENT PAUSE for longer than rlock waits for a reply: all waiters keep their order" {
    redis_cli set "$KEY" foreign >/dev/null
    queue_up 10
    redis_cli client pause 3000 >/dev/null
    redis_cli del "$KEY" >/dev/null # the server executes it when the pause is over
    all_end 0 {1..10}
    assert_order {1..10}
    assert_clean
}

@test "the server restarts with AOF, RDB or no data while many wait: all waiters keep their order" {
    local kind waiting=$((many / 5))
    ! is_sanitized || waiting=10
    for kind in aof rdb none; do
        redis_start "$kind" --appendonly "$([[ $kind == aof ]] && echo yes || echo no)"
        export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
        redis_cli set "$KEY" foreign >/dev/null
        queue_up "$waiting"
        [[ $kind != rdb ]] || redis_cli save >/dev/null
        redis_crash
        never 1 served_all 1 # the server stays away for a second
        redis_restart
        # The waiters get the lock when the foreign key is gone. A server that has lost its data has
        # lost this key as well.
        [[ $kind == none ]] || redis_cli del "$KEY" >/dev/null
        # shellcheck disable=SC2046
        all_end 0 $(seq "$waiting")
        # shellcheck disable=SC2046
        assert_order $(seq "$waiting")
        assert_clean
        redis_crash
        : >"$DIR/served"
    done
}

@test "a server whose BLPOP takes whole seconds only (Redis 5): rlock asks for whole seconds" {
    local held grant
    held='*8\r\n:0\r\n:1700000000000\r\n:60000\r\n$7\r\nforeign\r\n'
    held+=':200\r\n$16\r\n1700000000000000\r\n:1\r\n:1\r\n'
    grant='*3\r\n:1\r\n:1700000000000\r\n$16\r\n1700000000000000\r\n'
    fake_start <<END
ACCEPT
EXPECT EVALSHA
SEND $held
EXPECT BLPOP * 0.200
SEND -ERR timeout is not an integer or out of range\r\n
EXPECT EVALSHA
SEND $held
EXPECT BLPOP * 1
STALL 990
SEND *-1\r\n
EXPECT EVALSHA
SEND $held
EXPECT BLPOP * 1
SEND *2\r\n\$1\r\nw\r\n\$1\r\n1\r\n
EXPECT EVALSHA
SEND $grant
EXPECT EVALSHA
SEND :1\r\n
END
    start one "$RLOCK" -u "redis://127.0.0.1:$FAKE_PORT" -k "$KEY" -t 1 -w 10 -- true
    fake_end || fail "rlock didn't follow the fake server's script:" "$(fake_log)"
    assert_status 0
    finish one
    assert_status 0
}
