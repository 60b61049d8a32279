#!/usr/bin/env bats
# direct: a release grants the lock to a waiter, and faults hit each step.
#
# Waiter 1 reaches the server through a proxy. If the proxy delays all bytes, the waiter is far from
# the server, and a release may always grant it the lock; else only a release after a brief hold may
# (lib/lua/shared/direct.lua). Waiter 2 and the holder reach the server without the proxy.

load ../helpers/common
load ../helpers/fake
load ../helpers/lua
load ../helpers/queue

setup() {
    common_setup
    SLACK=$(busy_ms 1000) # ms by which a busy machine may exceed a limit
    ! is_sanitized || SLACK=8000
    redis_start_shifted
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    line_start "$REDIS_PORT"
    queue_setup
    cat >"$DIR/turn" <<'TURN'
exec 9>>"$DIR/alone"
flock -n 9 || echo "$1" >>"$DIR/overlaps"
read -r up rest </proc/uptime
echo "$1 $up" >>"$DIR/served"
echo "$RLOCK_FENCE" >>"$DIR/fences"
exec sleep "${TURN_S:-0.3}"
TURN
    redis_monitor "$DIR/monitor"
}

# far_waiter OPTION...: starts waiter 1 behind the proxy, with round trips of 20 ms. Returns when
# the waiter blocks on the server after an attempt in which it allowed direct grants.
far_waiter() {
    line delay 10
    RLOCK_URL=redis://127.0.0.1:$LINE_PORT waiter 1 -v "$@"
    eventually 10 allows_direct
    eventually 10 blocks
}
allows_direct() { redis_cli hvals "{$KEY}:rlock:waiters" | grep -q ' x direct='; }
blocks() { redis_cli client list | grep -q ' cmd=blpop '; }

# recently: returns just after waiter 1 has asked again, so that its attempt is recent.
recently() {
    local before
    before=$(redis_cli hvals "{$KEY}:rlock:waiters")
    eventually 10 has_asked "$before"
    eventually 10 blocks
}
has_asked() { [[ $(redis_cli hvals "{$KEY}:rlock:waiters") != "$1" ]]; }

n_granted() { grep -c '"granted [0-9]' "$DIR/monitor" || :; }
# n_woken: prints how many wake-ups the server has sent to a waiter that got the lock or its turn.
n_woken() { grep -cE '"(granted [0-9]|turn)' "$DIR/monitor" || :; }
has_woken() { (($(n_woken) > $1)); }
# n_asked: prints how often a waiter that allows direct grants has asked after the first grant.
n_asked() { awk '/"granted [0-9]/ { seen = 1 } seen && / "direct" / { n++ } END { print n + 0 }' \
    "$DIR/monitor"; }
is_whole() { (($(ttl_ms "$KEY") > 1000)); }

assert_fences_grow() {
    sort -n -c -u "$DIR/fences" || fail "fences: $(xargs <"$DIR/fences")"
}

@test "a release grants the lock to a waiter far away, which renews it, and asks no more" {
    hold holder -k "$KEY"
    TURN_S=1.5 far_waiter
    recently
    let_go holder
    eventually 5 served_all 1
    assert_eq "$(n_granted)" 1 'direct grants'
    assert_eq "$(n_asked)" 0 'attempts after the grant'
    eventually 5 is_whole
    never 1 grep -q lost "$DIR/w1.err"
    all_end 0 1
    assert_alone
    assert_clean
}

@test "a wake-up delayed by 0 to 700 ms: no two commands at once, and fences grow" {
    local ms woken
    for ms in 0 100 200 300 400 500 600 700; do
        : >"$DIR/served"
        hold holder -k "$KEY"
        far_waiter
        waiter 2
        eventually 10 in_line 2
        recently
        line delay "$ms"
        woken=$(n_woken)
        let_go holder
        # The wake-up is on its way. The renewal must not be delayed: it would come too late.
        eventually 5 has_woken "$woken"
        line delay 10
        all_end 0 1 2
        assert_alone
        assert_fences_grow
        echo "# $ms ms: order $(served), $(n_granted) direct grants so far" >&3
    done
    (($(n_granted) >= 4)) || fail "only $(n_granted) direct grants"
    assert_clean
}

@test "the waiter is killed or stopped before a release grants it the lock: the next one is late" {
    local signal from
    for signal in KILL STOP; do
        : >"$DIR/served"
        hold holder -k "$KEY"
        far_waiter
        waiter 2
        eventually 10 in_line 2
        recently
        kill "-$signal" "$(pid_of 1)"
        from=$(now_ms)
        let_go holder
        all_end 0 2
        echo "# $signal: $(($(started_ms 2) - from)) ms; $(n_granted) direct grants so far" >&3
        assert_between $(($(started_ms 2) - from)) 0 $((1000 + SLACK)) "ms after $signal"
        [[ $signal == KILL ]] || kill -CONT "$(pid_of 1)"
        [[ $signal == KILL ]] || all_end 0 1
        assert_alone
        assert_fences_grow
    done
}

@test "the waiter is cut off before a release grants it the lock: the next one is late by 1 s" {
    local from
    hold holder -k "$KEY"
    far_waiter
    waiter 2
    eventually 10 in_line 2
    recently
    line drop up on
    line drop down on
    from=$(now_ms)
    let_go holder
    all_end 0 2
    assert_between $(($(started_ms 2) - from)) 0 $((1000 + SLACK)) 'ms'
    line drop up off
    line drop down off
    line reset
    all_end 0 1
    assert_alone
    assert_fences_grow
}

@test "the renewals of a direct grant are lost: its command ends before the next one starts" {
    hold holder -k "$KEY"
    TURN_S=5 far_waiter
    waiter 2
    eventually 10 in_line 2
    recently
    line drop up on
    let_go holder
    all_end 0 2
    assert_alone
    if [[ $(served) == '2 ' ]]; then # the machine was too busy: waiter 1 asks, and still waits
        line drop up off
        line reset
        all_end 0 1
    else
        finish w1 30
        assert_status 76
    fi
    assert_fences_grow
}

@test "the guard is stopped when a release grants the lock: a loss is reported, nothing starts" {
    hold holder -k "$KEY"
    far_waiter
    recently
    kill -STOP "$(guard_of "$(pid_of 1)")"
    let_go holder
    eventually 10 grep -q ' lost: \| not-started: ' "$DIR/w1.err"
    kill -CONT "$(guard_of "$(pid_of 1)")" 2>/dev/null || :
    finish w1 30
    [[ $status != 0 ]]
    assert_eq "$(served)" ''
}

@test "the server's clock is set by 10 s or by 0.2 s before the release: no two commands at once" {
    local ms
    for ms in 10000 -10000 200 -200; do
        : >"$DIR/served"
        : >"$DIR/fences"
        shift_clock 0
        hold holder -k "$KEY" -t 60
        far_waiter
        waiter 2
        eventually 10 in_line 2
        recently
        shift_clock "$ms"
        let_go holder
        all_end 0 1 2
        assert_alone
        assert_fences_grow
    done
}

@test "a waiter far away that is told to end gives a direct grant back" {
    hold holder -k "$KEY"
    far_waiter
    waiter 2
    eventually 10 in_line 2
    recently
    line delay 150
    start release timeout 10 tee "$DIR/holder.go" <<<0
    eventually 5 grep -q '"granted [0-9]' "$DIR/monitor"
    kill -TERM "$(pid_of 1)"
    all_end 0 2
    finish w1 30
    assert_alone
    assert_clean
}

# ---- waiters near the server: a release grants them the lock only after a brief hold ----

# near_waiter OPTION...: as far_waiter(), but without delay. The holder is `mine`, see hold_long().
near_waiter() {
    line delay 0
    RLOCK_URL=redis://127.0.0.1:$LINE_PORT waiter 1 -v "$@"
    eventually 10 allows_near
    eventually 10 blocks
}
allows_near() { redis_cli hvals "{$KEY}:rlock:waiters" | grep -q ' x near='; }

# hold_long: takes the lock for `mine`.
hold_long() {
    local reply
    reply=$(acquire "$mine" 1)
    MY_FENCE=$(words 3 "$reply")
    KEYS_OF="3 $KEY {$KEY}:rlock:fence {$KEY}:rlock:queue"
    ACQUIRE=$(redis_cli script load "$(script acquire)")
    RELEASE=$(redis_cli script load "$(script release)")
}
words() { awk -v n="$1" '{ print $n }' <<<"$2"; }

# ends NUMBER: waits for this waiter, which may have had a direct grant: if the machine stands still
# for 0.1 s at the wrong moment, the waiter's command is ended with 76.
ends() {
    finish "w$1" 30
    [[ $status == 76 ]] || assert_status 0
}

is_whole_or_lost() { is_whole || grep -q ' lost: ' "$DIR/w1.err"; }
# is_renewed_direct: waiter 1 has got one direct grant since the test set `before`, and its command,
# which runs for longer than a direct lease lasts, has ended by itself.
is_renewed_direct() { (($(n_granted) == before + 1 && status == 0)); }

# just_asked: returns when waiter 1, the first in the queue, has asked within the last 25 ms. Opens
# descriptor 7, by which end_brief_hold sends its requests: on a slow machine redis-cli would start
# too late for a direct grant, which needs a request of the last 70 ms.
just_asked() {
    exec 7<>"/dev/tcp/127.0.0.1/$REDIS_PORT"
    eventually 10 has_just_asked
}
has_just_asked() {
    local age reply i
    for ((i = 0; i < 500; i++)); do # the waiter asks every 250 ms
        printf 'eval "%s" 2 %s %s\r\n' "$AGE" "{$KEY}:rlock:queue" "{$KEY}:rlock:waiters" >&7
        read -r -t 5 -u 7 reply || return 1
        age=${reply//[!0-9]/}
        [[ -z $age ]] || ((age > 25)) || return 0
    done
    return 1
}
# How many ms ago the first waiter has asked. KEYS: the queue and the hash of the waiters.
AGE="local t, first = redis.call('TIME'), redis.call('ZRANGE', KEYS[1], 0, 0)[1] \
local entry = first and redis.call('HGET', KEYS[2], first) or '' \
local asked = string.match(entry, ' near=%d+:%d+:(%d+) ') \
return asked and math.abs(t[1] * 1000 + math.floor(t[2] / 1000) - asked) or 99999"

# end_brief_hold: grants `mine` the lock once more, and releases it at once.
end_brief_hold() {
    local reply
    printf 'evalsha %s %s "%s v1 try=2 ttl=30000 pid=1" 30000 none "" 0 "" x ""\r\n' \
        "$ACQUIRE" "$KEYS_OF" "$mine" >&7
    printf 'evalsha %s %s "%s " %s\r\n' "$RELEASE" "$KEYS_OF" "$mine" "$MY_FENCE" >&7
    until [[ ${reply:-} == $':2\r' ]]; do # REPLY_PASSED_ON
        read -r -t 5 -u 7 reply || fail "no release: ${reply:-}" || return 1
    done
    exec 7>&-
}

@test "near: a release after a brief hold grants the lock to a waiter, which renews it" {
    local round before
    for round in 1 2 3 4 5 6; do # a busy machine may be too slow for a direct grant
        : >"$DIR/served"
        hold_long
        TURN_S=1.5 near_waiter
        just_asked
        before=$(n_granted)
        end_brief_hold
        eventually 5 served_all 1
        eventually 5 is_whole_or_lost
        ends 1
        ! is_renewed_direct || break
    done
    echo "# direct grant in round $round" >&3
    is_renewed_direct || fail "no direct grant that was renewed: status $status"
    refute_match "$stderr" ' lost: '
    assert_alone
    assert_clean
}

@test "near: after a longer hold the waiter gets its turn" {
    hold_long
    near_waiter
    recently
    release "$mine" "$MY_FENCE"
    all_end 0 1
    assert_eq "$(n_granted)" 0 'direct grants'
}

@test "near: the waiter is killed, stopped or cut off before its grant: the next one is late" {
    local fault from
    for fault in KILL STOP cut; do
        : >"$DIR/served"
        hold_long
        near_waiter
        waiter 2
        eventually 10 in_line 2
        just_asked
        case $fault in
        cut)
            line drop up on
            line drop down on
            ;;
        *) kill "-$fault" "$(pid_of 1)" ;;
        esac
        from=$(now_ms)
        end_brief_hold
        all_end 0 2
        echo "# $fault: $(($(started_ms 2) - from)) ms; $(n_granted) direct grants so far" >&3
        assert_between $(($(started_ms 2) - from)) 0 $((550 + SLACK)) "ms after $fault"
        case $fault in
        STOP)
            kill -CONT "$(pid_of 1)"
            all_end 0 1
            ;;
        cut)
            line drop up off
            line drop down off
            line reset
            all_end 0 1
            ;;
        esac
        assert_alone
        assert_fences_grow
    done
}

@test "near: the renewals of a direct grant are lost: its command ends before the next one starts" {
    hold_long
    TURN_S=5 near_waiter
    waiter 2
    eventually 10 in_line 2
    just_asked
    line drop up on
    end_brief_hold
    all_end 0 2
    assert_alone
    if [[ $(served) == '2 ' ]]; then # the machine was too busy: waiter 1 asks, and still waits
        line drop up off
        line reset
        all_end 0 1
    else
        finish w1 30
        assert_status 76
    fi
    assert_fences_grow
}

@test "near: a wake-up delayed by 0 to 700 ms: no two commands at once, and fences grow" {
    local ms woken
    for ms in 0 50 100 200 400 700; do
        : >"$DIR/served"
        hold_long
        near_waiter
        waiter 2
        eventually 10 in_line 2
        just_asked
        line delay "$ms"
        woken=$(n_woken)
        end_brief_hold
        # The wake-up is on its way. The renewal must not be delayed: it would come too late.
        eventually 5 has_woken "$woken"
        line delay 0
        ends 1
        all_end 0 2
        assert_alone
        assert_fences_grow
        echo "# $ms ms: order $(served), $(n_granted) direct grants so far" >&3
    done
    assert_clean
}

@test "near: the server's clock is set by 10 s or by 0.05 s before the release: no overlap" {
    local ms
    for ms in 10000 -10000 50 -50; do
        : >"$DIR/served"
        : >"$DIR/fences"
        shift_clock 0
        hold_long
        near_waiter
        waiter 2
        eventually 10 in_line 2
        just_asked
        shift_clock "$ms"
        end_brief_hold
        ends 1
        all_end 0 2
        assert_alone
        assert_fences_grow
    done
}

@test "a waiter that doesn't end its command in time is not granted the lock directly" {
    local what
    hold_long
    line delay 0
    for what in ignore pause; do
        waiter 1 --on-lost "$what"
        eventually 10 in_line 1
        recently
        run ! grep -qE '"(near|direct)"' "$DIR/monitor"
        kill -TERM "$(pid_of 1)"
        finish w1 30
    done
}

@test "near: a reader of stderr that doesn't read lets no direct grant end" {
    local round before
    mkfifo "$DIR/unread"
    exec 8<>"$DIR/unread"
    for round in 1 2 3 4 5 6; do # a busy machine may be too slow for a direct grant
        : >"$DIR/served"
        hold_long
        RLOCK_URL=redis://127.0.0.1:$REDIS_PORT TURN_S=1.5 start w1 sh -c 'exec "$@" 2>&8' sh \
            "$RLOCK" -k "$KEY" -v -- sh "$DIR/turn" 1
        eventually 10 allows_near
        eventually 10 blocks
        dd if=/dev/zero of="$DIR/unread" bs=4096 count=16 oflag=nonblock 2>"$DIR/dd.err" || :
        just_asked
        before=$(n_granted)
        end_brief_hold
        ends 1
        timeout 1 cat <&8 >"$DIR/read" || :
        ! is_renewed_direct || break
    done
    echo "# direct grant in round $round" >&3
    is_renewed_direct || fail "no direct grant that was renewed: status $status"
    assert_eq "$(served)" '1 '
}
