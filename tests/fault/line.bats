#!/usr/bin/env bats
# line: whatever happens to a waiter, the holder or the server, the others are served in order.
#
# RLOCK_TEST_WAITERS=300 for the line that was promised; the default of 100 is for a quick look.

load ../helpers/common
load ../helpers/fake
load ../helpers/queue

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    SLACK=$(busy_ms 500) # ms that a busy machine may add
    many=${RLOCK_TEST_WAITERS:-100}
    ! is_sanitized || { many=30 SLACK=5000; }
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    queue_setup
}

# assert_passing: what is left goes by itself, and soon.
assert_passing() {
    local key
    for key in $(redis_cli --scan); do
        [[ $key == *:rlock:fence ]] || assert_between "$(ttl_ms "$key")" -2 40000 "TTL of $key"
        assert_between "$(ttl_ms "$key")" -2 604800000 "TTL of $key"
        [[ $(ttl_ms "$key") != -1 ]] || fail "for ever: $key"
    done
}

# strike FILE MARGIN: each `SIGNAL WAITER` of it, a moment after the other. Who has its turn, or
# MARGIN places before it, is spared: what becomes of a holder is another test.
strike() {
    local signal waiter last
    while read -r signal waiter; do
        last=$(tail -n 1 "$DIR/served")
        ((waiter > ${last%% *} + $2)) || continue
        echo "$waiter" >>"$DIR/$signal"
        kill "-$signal" "$(pid_of "$waiter")"
        sleep "0.0$((RANDOM % 9))"
    done <"$1"
}

# joins_with_fate NUMBER: with `MOMENT SIGNAL NUMBER` in $DIR/fates, or little time, or neither.
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

# assert_ended_by STATUS FILE: those whose numbers are in the file, and nobody else.
assert_ended_by() {
    assert_eq "$(awk -v status="$1" '$1 == status { print $2 }' "$DIR/ended")" \
        "$(sort -n "$DIR/$2")" "those with $1"
}

@test "a tenth each killed, stopped, ended by TERM, timed out at random: the others in order" {
    local each stall dead wanted
    RANDOM=${RLOCK_TEST_SEED:=$RANDOM}
    echo "# RLOCK_TEST_SEED=$RLOCK_TEST_SEED" >&3
    touch "$DIR"/{KILL,STOP,TERM,fates,hurried}
    hold holder -k "$KEY"
    for ((each = 1; each <= many; each++)); do joins_with_fate "$each"; done
    # half of them before the line moves, half while it does
    sort -n "$DIR/fates" | cut -d ' ' -f 2- | split -n r/2 - "$DIR/fates."
    strike "$DIR/fates.aa" 0
    timeout 10 tee "$DIR/holder.go" <<<0 >/dev/null
    strike "$DIR/fates.ab" 30
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
    assert_between "$stall" 0 "$SLACK" 'ms of a stall beyond 1 s for each of the dead'
    for each in $(<"$DIR/STOP"); do kill -CONT "$(pid_of "$each")"; done
    for each in $(<"$DIR/STOP"); do all_end 0 "$each"; done
    assert_alone
    assert_passing
}

@test "those that died or were stopped beside each other cost no more than 1 s each" {
    local each from
    hold holder -k "$KEY"
    queue_up 9
    for each in 1 2 3 4; do kill -KILL "$(pid_of "$each")"; done
    for each in 6 7 8; do kill -STOP "$(pid_of "$each")"; done
    from=$(now_ms)
    let_go holder
    all_end 0 5 9
    echo "# ms: $(($(started_ms 5) - from)) $(($(started_ms 9) - $(started_ms 5)))" >&3
    assert_between $(($(started_ms 5) - from)) 0 $((4000 + SLACK)) 'ms for four that died'
    assert_between $(($(started_ms 9) - $(started_ms 5))) 0 $((3000 + SLACK)) 'ms for three stopped'
    for each in 6 7 8; do kill -CONT "$(pid_of "$each")"; done
    all_end 0 6 7 8
    assert_alone
}

@test "one that dies just before its turn costs no more than 1 s, however fast the line moves" {
    local dead ms
    # a server that has nothing to do ends waits late, and so that more come back than were told to
    start busy redis-cli -s "$REDIS_SOCKET" -r -1 -i 0.004 ping
    for TURN_S in 0.2 0.3 0.4 0.7; do
        export TURN_S
        : >"$DIR/served"
        hold holder -k "$KEY"
        queue_up 13
        let_go holder
        for dead in 6 9; do
            eventually 10 served_all $((dead == 6 ? 5 : 7))
            kill -KILL "$(pid_of "$dead")"
        done
        all_end 0 {1..5} 7 8 {10..13}
        assert_order {1..5} 7 8 {10..13}
        for dead in 6 9; do
            ms=$(($(started_ms $((dead + 1))) - $(started_ms $((dead - 1)))))
            echo "# turns of $TURN_S s: $ms ms with one that died" >&3
            assert_between "$ms" 0 $((1000 + ${TURN_S#0.} * 100 + SLACK)) 'ms to the next'
        done
    done
}

# best MS...: the least of them. A busy machine only adds to a delay.
best() { printf '%s\n' "$@" | sort -n | head -n 1; }

@test "the next starts 0.3 s after a dead holder's lease ended, 0.4 s after a foreign DEL" {
    local round from killed=() deleted=()
    for round in 1 2 3; do
        hold holder -k "$KEY" -t 1
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
    assert_between "$(best "${killed[@]}")" -30 "$(is_sanitized && echo 2000 || echo 300)"
    assert_between "$(best "${deleted[@]}")" -10 "$(is_sanitized && echo 2000 || echo 400)"
}

# disturb: until all 20 were served, what an operator or a proxy may do to the connections.
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

@test "SCRIPT FLUSH, CLIENT KILL, CLIENT PAUSE in the middle: nobody lost, nobody twice" {
    hold holder -k "$KEY"
    queue_up 20
    let_go holder
    disturb
    all_end 0 {1..20}
    assert_eq "$(served | tr ' ' '\n' | sort -n | xargs)" "$(seq -s' ' 20)"
    assert_alone
    assert_clean
}

@test "a pause that is longer than rlock waits for an answer: all are served in their order" {
    redis_cli set "$KEY" foreign >/dev/null
    queue_up 10
    redis_cli client pause 3000 >/dev/null
    redis_cli del "$KEY" >/dev/null # when the pause is over
    all_end 0 {1..10}
    assert_order {1..10}
    assert_clean
}

@test "the server is restarted while many wait, with AOF, RDB, no data: all served in order" {
    local kind waiting=$((many / 5))
    ! is_sanitized || waiting=10
    for kind in aof rdb none; do
        redis_start "$kind" --appendonly "$([[ $kind == aof ]] && echo yes || echo no)"
        export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
        redis_cli set "$KEY" foreign >/dev/null
        queue_up "$waiting"
        [[ $kind != rdb ]] || redis_cli save >/dev/null
        redis_crash
        never 1 served_all 1 # so long it is gone
        redis_restart
        # Free at once: without its data it is so by itself.
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

@test "a server that blocks for whole seconds only, as Redis 5: asked so from then on" {
    local held grant
    held='*8\r\n:0\r\n:1700000000000\r\n:60000\r\n$7\r\nforeign\r\n'
    held+=':200\r\n$16\r\n1700000000000000\r\n:1\r\n:1\r\n'
    grant='*3\r\n:1\r\n:1700000000000\r\n$16\r\n1700000000000000\r\n'
    fake_start <<END
ACCEPT
EXPECT EVAL
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
    fake_end || fail "$(fake_log)"
    assert_status 0
    finish one
    assert_status 0
}
