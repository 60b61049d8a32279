#!/usr/bin/env bats
# direct: a release grants the lock to a waiter, and faults hit each step.
#
# Waiter 1 reaches the server through a proxy, which can delay all bytes, so that the waiter is far
# from the server. Waiter 2 and the holder reach the server without the proxy. A release grants the
# lock only at the end of a brief hold, and only to a waiter that has asked shortly before
# (lib/lua/shared/direct.lua). So the holder is this test itself, which takes and releases the lock
# by requests of its own.

load ../helpers/common
load ../helpers/fake
load ../helpers/lua
load ../helpers/queue

setup() {
    common_setup
    SLACK=$(busy_ms 400) # ms by which a busy machine may exceed a limit
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

# proxied DELAY OPTION...: takes the lock for `mine`, and starts waiter 1 behind the proxy, which
# delays all bytes by DELAY ms. Returns when the waiter blocks on the server after an attempt in
# which it allowed direct grants.
proxied() {
    local delay=$1
    shift
    : >"$DIR/served"
    take_mine
    line delay "$delay"
    RLOCK_URL=redis://127.0.0.1:$LINE_PORT waiter 1 -v "$@"
    eventually 10 allows_direct
    eventually 10 blocks
}
# take_mine: takes the lock for `mine`, and loads the scripts that end_brief_hold runs.
take_mine() {
    MY_FENCE=$(words 3 "$(acquire "$mine" 1)")
    KEYS_OF="3 $KEY {$KEY}:rlock:fence {$KEY}:rlock:queue"
    ACQUIRE=$(redis_cli script load "$(script acquire)")
    RELEASE=$(redis_cli script load "$(script release)")
}
words() { awk -v n="$1" '{ print $n }' <<<"$2"; }
allows_direct() { redis_cli hvals "{$KEY}:rlock:waiters" | grep -qE ' x (direct|distant)='; }
blocks() { redis_cli client list | grep -q ' cmd=blpop '; }

# second: starts waiter 2, behind waiter 1.
second() {
    waiter 2
    eventually 10 in_line 2
}

# just_asked [MS]: returns when waiter 1, the first in the queue, has asked 0 to 10 ms ago, or MS to
# MS + 10 ms ago. Before that it sets `before` to the number of direct grants, and opens descriptor
# 7, by which end_brief_hold sends its requests: on a slow machine redis-cli would start too late
# for a direct grant, which needs a request of the last 90 ms.
just_asked() {
    before=$(n_granted)
    exec 7<>"/dev/tcp/127.0.0.1/$REDIS_PORT"
    eventually 10 has_just_asked "${1:-0}"
}
has_just_asked() {
    local age reply i
    for ((i = 0; i < 500; i++)); do # the waiter asks every 250 ms
        printf 'eval "%s" 2 %s %s\r\n' "$AGE" "{$KEY}:rlock:queue" "{$KEY}:rlock:waiters" >&7
        read -r -t 5 -u 7 reply || return 1
        age=${reply//[!0-9]/}
        [[ -z $age ]] || ((age < $1 || age > $1 + 10)) || return 0
    done
    return 1
}
# How many ms ago the first waiter has asked. KEYS: the queue and the hash of the waiters.
AGE="local t, first = redis.call('TIME'), redis.call('ZRANGE', KEYS[1], 0, 0)[1] \
local entry = first and redis.call('HGET', KEYS[2], first) or '' \
local asked = string.match(entry, ' di%l+=%d+:%d+:(%d+) ') \
return asked and math.abs(t[1] * 1000 + math.floor(t[2] / 1000) - asked) or 99999"

# end_brief_hold: grants `mine` the lock once more, and releases it at once.
# end_hold: releases the lock, which `mine` has held since before waiter 1 came.
end_brief_hold() {
    printf 'evalsha %s %s "%s v1 try=2 ttl=30000 pid=1" 30000 none "" 0 "" x ""\r\n' \
        "$ACQUIRE" "$KEYS_OF" "$mine" >&7
    end_hold
}
end_hold() {
    local reply
    printf 'evalsha %s %s "%s " %s\r\n' "$RELEASE" "$KEYS_OF" "$mine" "$MY_FENCE" >&7
    until [[ ${reply:-} == $':2\r' ]]; do # REPLY_PASSED_ON
        read -r -t 5 -u 7 reply || fail "no release: ${reply:-}" || return 1
    done
    exec 7>&-
}

n_granted() { grep -c '"granted [0-9]' "$DIR/monitor" || :; }
# n_woken: prints how many wake-ups the server has sent to a waiter that got the lock or its turn.
n_woken() { grep -cE '"(granted [0-9]|turn)' "$DIR/monitor" || :; }
has_woken() { (($(n_woken) > $1)); }
# n_asked: prints how often waiters that allow direct grants have asked since the last such grant.
n_asked() { awk '/"granted [0-9]/ { n = 0 } / "(direct|distant)" / { n++ } END { print n + 0 }' \
    "$DIR/monitor"; }

# ends NUMBER: waits for this waiter, which may have had a direct grant: if the machine stands still
# for 0.1 s at the wrong moment, the waiter's command is ended with 76.
ends() {
    finish "w$1" 30
    [[ $status == 76 ]] || assert_status 0
}

is_whole_or_lost() { (($(ttl_ms "$KEY") > 1000)) || grep -q ' lost: ' "$DIR/w1.err"; }
# is_renewed_direct: the last end_brief_hold has granted waiter 1 the lock, the waiter has asked no
# more, and its command, which runs for longer than a direct lease lasts, has ended by itself.
is_renewed_direct() { (($(n_granted) == before + 1 && $(n_asked) == 0 && status == 0)); }

# repeat_until_direct FUNCTION ARG...: calls the function, which lets waiter 1 get a direct grant
# and end, until the machine isn't too busy for that.
repeat_until_direct() {
    local round
    for round in 1 2 3 4 5 6 7 8; do
        "$@"
        ! is_renewed_direct || break
    done
    echo "# $*: direct grant in round $round" >&3
    is_renewed_direct || fail "no direct grant that was renewed: status $status"
}

# mend: lets the bytes of waiter 1 through again, by new connections.
mend() {
    line drop up off
    line drop down off
    line reset
}

assert_fences_grow() {
    sort -n -c -u "$DIR/fences" || fail "fences: $(xargs <"$DIR/fences")"
}

granted_and_renewed() {
    TURN_S=1.5 proxied "$1"
    just_asked
    end_brief_hold
    eventually 5 served_all 1
    eventually 5 is_whole_or_lost
    ends 1
}

@test "a release after a brief hold grants the lock to a waiter, which renews it and asks no more" {
    local delay
    for delay in 0 5; do
        repeat_until_direct granted_and_renewed "$delay"
        refute_match "$stderr" ' lost: '
        assert_alone
        assert_clean
    done
}

@test "after a longer hold the waiter gets its turn" {
    proxied 0
    just_asked
    end_hold
    all_end 0 1
    assert_eq "$(n_granted)" 0 'direct grants'
}

@test "a waiter killed, stopped or cut off before its grant makes the next one late by 0.5 s" {
    local fault delay pid from
    for delay in 0 5; do
        for fault in KILL STOP cut; do
            proxied "$delay"
            second
            pid=$(pid_of 1)
            just_asked
            read_up_ms # from here on no process is started: that would take too long
            from=$up_ms
            case $fault in
            cut)
                line drop up on
                line drop down on
                ;;
            *) kill "-$fault" "$pid" ;;
            esac
            end_brief_hold
            all_end 0 2
            echo "# $fault, delay $delay: $(($(started_ms 2) - from)) ms;" \
                "$(($(n_granted) - before)) direct grant" >&3
            assert_between $(($(started_ms 2) - from)) 0 $((600 + SLACK)) "ms after $fault"
            [[ $fault != STOP ]] || kill -CONT "$pid"
            [[ $fault != cut ]] || mend
            [[ $fault == KILL ]] || all_end 0 1
            assert_alone
            assert_fences_grow
        done
    done
    (($(n_granted) > 0)) || fail 'no direct grant'
}

@test "the renewals of a direct grant are lost: its command ends before the next one starts" {
    local round
    for round in 1 2 3 4 5 6 7 8; do # a busy machine may be too slow for a direct grant
        TURN_S=5 proxied 0
        second
        just_asked
        line drop up on
        end_brief_hold
        all_end 0 2
        [[ $(served) == '2 ' ]] || break
        mend
        all_end 0 1
    done
    echo "# direct grant in round $round" >&3
    finish w1 30
    assert_status 76
    assert_eq "$(served)" '1 2 '
    assert_alone
    assert_fences_grow
}

# loses_one DELAY: the first renewal of a direct grant, 20 ms after the grant, is lost. The waiter
# renews once more 70 ms after the grant, by a new connection.
loses_one() {
    TURN_S=1.5 proxied "$1"
    just_asked $((3 * $1 + 3)) # by now the BLPOP behind this request has passed the proxy
    line lose 1
    end_brief_hold
    ends 1
    line lose 0
}

@test "one lost renewal of a direct grant ends no command, and nobody is told" {
    local delay
    for delay in 0 5; do
        repeat_until_direct loses_one "$delay"
        refute_match "$stderr" ' lost: | renewal-failed: '
        assert_alone
    done
}

@test "a wake-up delayed by 0 to 700 ms: no two commands at once, and fences grow" {
    local ms woken
    for ms in 0 10 20 50 100 200 400 700; do
        proxied 0
        second
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
        echo "# $ms ms: order $(served), $(($(n_granted) - before)) direct grants" >&3
    done
    (($(n_granted) > 0)) || fail 'no direct grant'
    assert_clean
}

@test "the server's clock is set by 10 s or 0.05 s before the release: no two commands at once" {
    local ms
    for ms in 10000 -10000 50 -50; do
        : >"$DIR/fences"
        shift_clock 0
        proxied 0
        second
        just_asked
        shift_clock "$ms"
        end_brief_hold
        ends 1
        all_end 0 2
        assert_alone
        assert_fences_grow
    done
}

@test "the guard is stopped when a release grants the lock: a loss is reported, nothing starts" {
    local guard round
    for round in 1 2 3 4 5 6 7 8; do # a busy machine may be too slow for a direct grant
        proxied 0
        eventually 10 has_guard
        guard=$(guard_of "$(pid_of 1)")
        just_asked
        kill -STOP "$guard"
        end_brief_hold
        ! eventually 2 grep -q ' lost: \| not-started: ' "$DIR/w1.err" || break
        kill -CONT "$guard"
        all_end 0 1
    done
    echo "# direct grant in round $round" >&3
    kill -CONT "$guard" 2>/dev/null || :
    finish w1 30
    [[ $status != 0 ]]
    assert_eq "$(served)" ''
}
has_guard() { [[ -n $(guard_of "$(pid_of 1)") ]]; }

@test "a waiter that is told to end gives a direct grant back" {
    local woken
    proxied 0
    second
    just_asked
    line delay 150
    woken=$(n_woken)
    end_brief_hold
    eventually 5 has_woken "$woken"
    kill -TERM "$(pid_of 1)"
    all_end 0 2
    finish w1 30
    [[ $status != 0 ]]
    assert_eq "$(served)" '2 '
    assert_alone
    assert_clean
}

@test "a waiter that doesn't end its command in time is not granted the lock directly" {
    local what
    take_mine
    need_cgroup
    for what in ignore pause; do
        waiter 1 --on-lost "$what"
        eventually 10 in_line 1
        asks_again
        run ! grep -qE '"(direct|distant)"' "$DIR/monitor"
        kill -TERM "$(pid_of 1)"
        finish w1 30
    done
}

# asks_again: returns when the waiter has asked once more.
asks_again() {
    local before
    before=$(redis_cli hvals "{$KEY}:rlock:waiters")
    eventually 10 has_asked "$before"
}
has_asked() { [[ $(redis_cli hvals "{$KEY}:rlock:waiters") != "$1" ]]; }

granted_unread() {
    : >"$DIR/served"
    take_mine
    RLOCK_URL=redis://127.0.0.1:$REDIS_PORT TURN_S=1.5 start w1 sh -c 'exec "$@" 2>&8' sh \
        "$RLOCK" -k "$KEY" -v -- sh "$DIR/turn" 1
    eventually 10 allows_direct
    eventually 10 blocks
    dd if=/dev/zero of="$DIR/unread" bs=4096 count=16 oflag=nonblock 2>"$DIR/dd.err" || :
    just_asked
    end_brief_hold
    ends 1
    timeout 1 cat <&8 >"$DIR/read" || :
}

@test "a reader of stderr that doesn't read lets no direct grant end" {
    mkfifo "$DIR/unread"
    exec 8<>"$DIR/unread"
    repeat_until_direct granted_unread
    assert_eq "$(served)" '1 '
}
