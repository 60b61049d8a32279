#!/usr/bin/env bats
# ghosts: a server may execute a request that rlock has given up, and a reply may be lost after the
# server has granted the lock. Neither may leave a lock that no rlock owns.
#
# rlock waits a third of the TTL, at most 2 s, for the reply to an acquire. So with a TTL of 3 s,
# rlock gives the request up after 1 s and asks again.
#
# run: about 70 s

load ../helpers/common
load ../helpers/fake
load ../helpers/lua

setup() {
    common_setup
    redis_start
    redis_load_scripts # so that the first request is executed, and not answered by NOSCRIPT
    export CLI
    CLI=$(type -P redis-cli valkey-cli | head -n 1)
    URL=redis://127.0.0.1:$REDIS_PORT
}

is_free() { [[ $(redis_cli exists "${1:-$KEY}") == 0 ]]; }
is_taken() { ! is_free "$@"; }
no_lock() { ! any_lock; }
any_lock() { [[ -n $(redis_cli --scan --pattern "$KEY*") ]]; }

# has_polled [N]: true if for N clients the last command that the server executed was a script or
# BLPOP.
has_polled() { (($(redis_cli client list | grep -Ec ' cmd=(eval|evalsha|blpop) ') >= ${1:-1})); }

# run_through_line OPTION... -- COMMAND...: starts rlock as `holder`, connected through a proxy.
run_through_line() { start holder "$RLOCK" -u "redis://127.0.0.1:$LINE_PORT" -k "$KEY" "$@"; }

# ---- requests that rlock gave up and the server executes later ----

# rlock gives up in four ways: with -n, with -w, by default after --connect-timeout, and on TERM.
# The kernel keeps rlock's requests, and the server reads them when it runs again.
@test "requests that a stopped server executes after rlock gave them up: no lock is left" {
    local way options names='' name
    declare -A url=([tcp]=$URL [unix]=unix://$REDIS_SOCKET)
    redis_pause
    while read -r way options; do
        for name in tcp unix; do
            # shellcheck disable=SC2086
            start "$way-$name" "$RLOCK" -k "$KEY:$way-$name" -u "${url[$name]}" -t 3 \
                --connect-timeout 1500ms $options -- touch "$DIR/ran"
            names+=" $way-$name"
        done
    done <<'END'
once -n
wait -w 2
default
ended
END
    for name in tcp unix; do
        eventually 5 rlock_runs "ended-$name"
        kill -TERM "$(<"$DIR/pids/ended-$name")"
    done
    for name in $names; do
        finish "$name"
        [[ $name == ended-* ]] || assert_status 69
        [[ $name != ended-* ]] || assert_status $((128 + 15))
    done
    redis_continue
    redis_cli ping
    never 1 any_lock
    refute_match "$(ls "$DIR")" ran
}

# rlock_runs NAME: true if this rlock has blocked signals. An rlock that has blocked signals isn't
# killed by TERM, but undoes its request and ends.
rlock_runs() { grep -q '^SigBlk:.*[1-9a-f]' "/proc/$(<"$DIR/pids/$1")/status"; }

@test "a waiter that gives up, or is killed, while the server is stopped: no lock is left" {
    local name
    for name in given-up killed; do
        redis_cli set "$KEY:$name" other
        start $name "$RLOCK" -u "unix://$REDIS_SOCKET" -k "$KEY:$name" -t 3 \
            --connect-timeout 200ms -w "$([[ $name == killed ]] && echo 60 || echo 5)" -- \
            touch "$DIR/ran"
    done
    eventually 5 has_polled 2
    for name in given-up killed; do redis_cli pexpire "$KEY:$name" 1000; done
    redis_pause
    # Each waiter is the first in its queue, so its BLPOP blocks for 0.3 s. The waiter waits 1 s
    # longer for the reply, then connects again: 1.6 s from now its next request to acquire is in
    # the server's socket, and the locks have expired.
    sleep 1.6
    kill -KILL "$pid"
    # The killed waiter can't undo its request. But the server refuses a request that it executes
    # too late. Here the limit is 200 ms to connect, 1 s for the reply, and a little for the
    # difference between the clocks.
    sleep 1.5
    finish given-up
    assert_status 75
    redis_continue
    redis_cli ping
    # A waiter that asks again and finds that its queue is gone gets no lock yet: the server
    # reserves the lock for 0.5 s, so that other waiters of that queue can ask. A granted lock would
    # stay for 3 s.
    eventually 2 no_lock
    never 1 any_lock
    refute_match "$(ls "$DIR")" ran
}

@test "requests that a slow line delivers after rlock gave them up: no lock is left" {
    line_start "$REDIS_PORT"
    line delay 1200
    run_through_line -t 3 --connect-timeout 1500ms -- touch "$DIR/ran"
    finish holder
    assert_status 69
    # rlock sends an undo behind each request, and the line delays both by 1.2 s. A lock that is not
    # undone would stay for 3 s.
    sleep 1.7
    eventually 5 has_granted
    never 1 any_lock
    refute_match "$(ls "$DIR")" ran
}

has_granted() { redis_cli info commandstats | grep -q '^cmdstat_set:'; }

@test "an acquire that arrives after a later one of the same rlock was granted changes nothing" {
    local value ttl
    ttl=$(lease 3)
    line_start "$REDIS_PORT"
    line delay $((ttl * 700)) # twice as long as rlock waits for the reply
    mkfifo "$DIR/go"
    run_through_line -t "$ttl" --connect-timeout 20 -- \
        sh -c 'read -r status <"$0"; exit "$status"' "$DIR/go"
    # redis-cli and two connections: rlock has sent the first request, waited, and connected again
    eventually 10 has_clients 3
    line delay 0
    eventually 10 is_taken
    value=$(redis_cli get "$KEY")
    assert_match "$value" ' try=[2-9] '
    never $((ttl - 1)) has_other_value "$value"
    timeout 10 tee "$DIR/go" <<<7 >/dev/null
    finish holder
    assert_status 7
    refute_match "$stderr" ': (lost|restored|not-released)'
    is_free
}

has_clients() { [[ $(redis_cli client list | wc -l) == "$1" ]]; }
has_other_value() { [[ $(redis_cli get "$KEY") != "$1" ]]; }

# ---- lost replies to requests that the server executed ----

# A command that adds a line to a file for each run, and writes the lock's value to another file.
counted='echo "$RLOCK_TOKEN" >>"$0"; "$CLI" -s "$1" get "$RLOCK_KEY" >"$0.value"; exit 7'

assert_ran_once() {
    assert_status 7
    assert_eq "$(wc -l <"$DIR/runs")" 1 'runs of the command'
    assert_match "$(<"$DIR/runs.value")" "^$(<"$DIR/runs") v1 try=[2-9] "
    is_free
}

@test "a reset before the reply to an acquire: rlock asks again, and runs its command once" {
    local before how
    line_start "$REDIS_PORT"
    for how in -n '-w 20' ''; do
        rm -f "$DIR/runs"
        line cut-after-request 1
        before=$(now_ms)
        run_through_line -t 60 $how -- sh -c "$counted" "$DIR/runs" "$REDIS_SOCKET"
        finish holder
        assert_ran_once
        assert_between $(($(now_ms) - before)) 0 $((8000 + $(busy_ms 1000))) 'ms that rlock took'
    done
}

@test "a reply to an acquire that never arrives: rlock asks again, and runs its command once" {
    local before how
    line_start "$REDIS_PORT"
    for how in -n ''; do
        rm -f "$DIR/runs"
        line drop down on
        before=$(now_ms)
        run_through_line -t 3 $how -- sh -c "$counted" "$DIR/runs" "$REDIS_SOCKET"
        eventually 5 is_taken
        line drop down off
        finish holder
        assert_ran_once
        assert_between $(($(now_ms) - before)) 0 $((8000 + $(busy_ms 1000))) 'ms that rlock took'
    done
}

@test "a server whose replies never arrive: rlock ends with 69, and takes its lock back" {
    line_start "$REDIS_PORT"
    line drop down on
    run_through_line -t 60 -n --connect-timeout 1500ms -- touch "$DIR/ran"
    finish holder
    assert_status 69
    has_granted
    eventually 5 is_free
    refute_match "$(ls "$DIR")" ran
}

@test "a reset before the reply to a renewal: rlock asks again, and the lock isn't lost" {
    line_start "$REDIS_PORT"
    line cut-after-request 3 # the first two are the acquire and CLUSTER NODES
    mkfifo "$DIR/go"
    run_through_line -t "$(lease 3)" --kill-after 100ms -- \
        sh -c 'read -r status <"$0"; exit "$status"' "$DIR/go"
    eventually 10 file_has "$DIR/holder.err" ': renewed'
    timeout 10 tee "$DIR/go" <<<7 >/dev/null
    finish holder
    assert_status 7
    assert_match "$stderr" ': renewal-failed:.*'$'\n''.*: renewed'
    refute_match "$stderr" ': (lost|restored|not-released)'
    is_free
}

@test "a reset before the reply to a release: the lock is free, and the status is the command's" {
    line_start "$REDIS_PORT"
    line cut-after-request 2
    run_through_line -t 30 -- sh -c 'exit 7'
    finish holder
    assert_status 7
    assert_eq "$stderr" ''
    is_free
}

@test "a reply to a release that never arrives: the lock is free, and the status is the command's" {
    line_start "$REDIS_PORT"
    run_through_line -t 30 -- bash -c 'exec 5<>"/dev/tcp/127.0.0.1/$0"
        echo drop down on >&5; read -r _ <&5; exit 7' "$LINE_CONTROL"
    finish holder
    assert_status 7
    assert_match "$stderr" "^rlock: $KEY: not-released: [^"$'\n'"]*$"
    is_free
}

# ---- the scripts, called without rlock ----

@test "lua: acquire grants a later attempt of the same token again, and refuses an earlier one" {
    local first
    assert_match "$(acquire $mine 2)" '^1 [0-9]+ [0-9]+ $'
    first=$(fence)
    assert_match "$(acquire $mine 1)" '^-2 [0-9]+ $'
    assert_match "$(acquire $mine 2)" '^-2 [0-9]+ $'
    assert_eq "$(fence)" "$first"
    assert_match "$(acquire $mine 10)" '^1 [0-9]+ [0-9]+ $'
    assert_match "$(redis_cli get "$KEY")" "^$mine v1 try=10 ttl=30000 pid=1 since=[0-9]+$"
    assert_between "$(fence)" $((first + 1)) $((first + 100000000))
    assert_match "$(acquire $yours 11)" "^0 [0-9]+ [0-9]+ $mine v1 try=10 "
}

@test "lua: undo releases a lock only if it was granted to the attempt that is undone" {
    acquire $mine 1
    acquire $mine 12
    assert_eq "$(undo $mine 1)" '0 '
    assert_eq "$(undo $yours 12)" '0 '
    is_taken
    assert_eq "$(undo $mine 12)" '1 '
    is_free
    assert_eq "$(undo $mine 12)" '-1 '
}

@test "lua: acquire and renew change nothing after the request's last valid time" {
    local before
    for POLICY in try none fifo newest; do
        assert_match "$(acquire $mine 1 30000 $(($(server_ms) - 1000)))" '^-2 '
        assert_eq "$(contents)" '' "after $POLICY"
    done
    assert_match "$(acquire $mine 1 30000 $(($(server_ms) + 60000)))" '^1 '
    before=$(contents)
    assert_match "$(renew $mine "$(fence)" 90000 $(($(server_ms) - 1000)))" '^-2 '
    assert_eq "$(contents)" "$before"
    assert_match "$(renew $mine "$(fence)" 90000 $(($(server_ms) + 60000)))" '^1 '
    assert_between "$(redis_cli pttl "$KEY")" 80000 90000
}

@test "lua: no script overwrites, deletes or prolongs a value that isn't its token's" {
    local value ttl='' before
    acquire $mine 1
    for value in other '' "$mine" "${mine}x v1 try=1 " "$mine"$'\t' "${mine^^} v1 try=1 " \
        "$yours v1 try=1 pid=1" "x$mine v1 try=1 " ' '; do
        # shellcheck disable=SC2086
        redis_cli set "$KEY" "$value" $ttl
        redis_cli pexpire "$(key_of fence)" 604795000
        before=$(contents)
        assert_match "$(acquire $mine 2)" '^0 '
        assert_match "$(renew $mine "$(fence)")" '^0 '
        assert_match "$(undo $mine 1)" '^0 '
        assert_match "$(leave $mine)" '^0 '
        assert_match "$(POLICY=none acquire $mine 2)" '^0 '
        assert_eq "$(contents)" "$before" "after '$value' was there"
        assert_match "$(release $mine "$(fence)")" '^0 '
        assert_eq "$(redis_cli get "$KEY")" "$value"
        ttl=$([[ $ttl ]] || echo PX 95000) # every second value gets a TTL
    done
}

@test "lua: a lock's key of another type: the reply is WRONGTYPE, and no key changes" {
    local before command
    for command in 'rpush KEY a' 'hset KEY a b' 'sadd KEY a' 'zadd KEY 1 a' 'xadd KEY 1-1 a b'; do
        redis_cli flushall
        # shellcheck disable=SC2086
        redis_cli ${command/KEY/$KEY}
        before=$(contents)
        for POLICY in try none fifo newest; do
            assert_match "$(acquire $mine 1)" '^WRONGTYPE '
        done
        assert_match "$(renew $mine 1)" '^WRONGTYPE '
        assert_eq "$(release $mine 1)" '0 '
        assert_eq "$(leave $mine)" '0 '
        assert_eq "$(contents)" "$before" "after $command"
    done
}

@test "lua: a last fence of another type: acquire replies FOREIGN, and no key changes" {
    local before
    redis_cli rpush "$(key_of fence)" a
    before=$(contents)
    assert_match "$(acquire $mine 1)" '^FOREIGN '
    assert_eq "$(contents)" "$before"
    start refused "$RLOCK" -u "$URL" -k "$KEY" -n -- true
    finish refused
    assert_status 77
    assert_eq "$(contents)" "$before"
}

@test "lua: a last fence that became another type: the lock's holder can still renew and release" {
    local last
    acquire $mine 1
    last=$(fence)
    redis_cli del "$(key_of fence)"
    redis_cli rpush "$(key_of fence)" a
    assert_match "$(renew $mine "$last" 90000)" '^1 '
    assert_between "$(redis_cli pttl "$KEY")" 80000 90000
    assert_eq "$(release $mine "$last")" '1 '
    is_free
}

@test "lua: acquire, renew: the lock's key lasts for a TTL, the fence's for a week or 9 TTLs" {
    local ttl
    for ttl in 30000 1500 2592000000; do
        redis_cli flushall
        acquire $mine 1 $ttl
        assert_expiries $ttl
        acquire $mine 2 $ttl
        assert_expiries $ttl
        renew $mine "$(fence)" $ttl
        assert_expiries $ttl
        redis_cli del "$KEY"
        assert_match "$(renew $mine "$(fence)" $ttl)" '^2 '
        assert_expiries $ttl
        release $mine "$(fence)"
        is_free
        assert_between "$(redis_cli pttl "$(key_of fence)")" 604000000 25920000000
    done
}

assert_expiries() {
    assert_between "$(redis_cli pttl "$KEY")" 1 "$1"
    assert_between "$(redis_cli pttl "$(key_of fence)")" \
        $((604000000 > 9 * $1 ? 604000000 : 9 * $1)) \
        25920000000
    assert_eq "$(redis_cli dbsize)" 2 'number of keys'
}

@test "lua: each grant's fence is greater than the last one, even if that is ahead of the clock" {
    local last=0 round
    for round in 1 2 3; do
        acquire $mine 1
        assert_between "$(fence)" $((last + 1)) 9007199254740992
        last=$(fence)
        release $mine "$last"
        ((round != 2)) || redis_cli set "$(key_of fence)" $((last = 5000000000000000))
    done
    assert_between "$last" 5000000000000001 5000000000000010
    # without a last fence, the server's time in microseconds is the fence
    redis_cli del "$(key_of fence)"
    acquire $mine 1
    assert_between "$(fence)" $(($(server_ms) * 1000 - 60000000)) $(($(server_ms) * 1000 + 2000000))
}

@test "lua: a waiter changes no lock; its keys expire, and leave deletes them" {
    local before
    for POLICY in fifo newest; do
        redis_cli flushall
        redis_cli set "$KEY" other
        before=$(contents)
        assert_match "$(acquire $mine 1)" '^0 [0-9]+ -1 other 250 [0-9]{16} 1 1 $'
        assert_eq "$(redis_cli get "$KEY"), $(redis_cli pttl "$KEY")" 'other, -1'
        assert_eq "$(endless)" "$KEY" 'keys without an expiry'
        assert_eq "$(redis_cli dbsize)" 3 'number of keys'
        assert_eq "$(leave $mine)" '0 '
        redis_cli hdel "$(key_of waiters)" newest # leave doesn't delete this field: the key expires
        assert_eq "$(contents)" "$before"
    done
}

@test "lua: a free lock is reserved for the first waiter in the queue, and for no other client" {
    local ticket second answer SLOWLY=1
    redis_cli set "$KEY" other
    POLICY=fifo
    read -r _ _ _ _ _ ticket _ <<<"$(acquire $mine 1)"
    answer=$(acquire $yours 1)
    assert_match "$answer" '^0 [0-9]+ -1 other [0-9]+ [0-9]{16} 2 1 $'
    read -r _ _ _ _ _ second _ <<<"$answer"
    redis_cli del "$KEY"
    assert_match "$(POLICY=try acquire $third 1)" "^0 [0-9]+ [0-9]+ $mine v1 try=0 .* 0 0 1 $"
    assert_eq "$(endless)" '' 'keys without an expiry'
    assert_match "$(acquire $mine 2 30000 0 "$ticket")" '^1 '
    assert_match "$(acquire $yours 3 30000 0 "$second")" "^0 .* $second 1 1 $"
    assert_match "$(release $mine "$(fence)")" '^2 '
    assert_match "$(redis_cli get "$KEY")" "^$yours v1 try=0 " # reserved for the next waiter
    assert_match "$(acquire $yours 4 30000 0 "$second")" '^1 '
    release $yours "$(fence)"
    assert_eq "$(redis_cli keys '*')" "$(key_of fence)"
}

@test "lua: a waiter that leaves while the lock is reserved for it: the next waiter gets it" {
    # With SLOWLY the queue's times are ten times as long: on a busy machine, the 0.5 s of a
    # reservation may pass between two calls.
    local SLOWLY=1
    acquire $third 1
    POLICY=fifo
    acquire $mine 1
    acquire $yours 1
    assert_match "$(release $third "$(fence)")" '^2 '
    assert_match "$(leave $mine)" '^2 $'
    assert_match "$(redis_cli get "$KEY")" "^$yours v1 try=0 "
    assert_match "$(leave $yours)" '^-?1 $'
    assert_eq "$(redis_cli keys '*')" "$(key_of fence)"
}

@test "lua: a renewal after the release, or after another holder, doesn't put the lock back" {
    local token last
    start holder "$RLOCK" -u "$URL" -k "$KEY" -- sh -c 'echo "$RLOCK_TOKEN $RLOCK_FENCE"'
    finish holder
    read -r token last <<<"$output"
    assert_match "$(renew "$token" "$last")" '^-1 '
    is_free
    # A renewal puts a deleted lock back if no other token has held it since.
    acquire $mine 1
    last=$(fence)
    redis_cli del "$KEY"
    assert_match "$(renew $mine "$last")" '^2 '
    redis_cli del "$KEY"
    acquire $yours 1
    release $yours "$(fence)"
    assert_match "$(renew $mine "$last")" '^-1 '
    is_free
}

@test "lua: a lock that a renewal put back counts as held: the 2nd waiter asks after 2250 ms" {
    acquire $mine 1
    redis_cli del "$KEY"
    assert_match "$(renew $mine "$(fence)" 90000)" '^2 '
    POLICY=fifo acquire $yours 1
    # If the script took this lock for one that is only reserved for a waiter, it would cut the TTL
    # to 500 ms, and would tell the 2nd waiter to ask again after about 500 ms.
    assert_match "$(POLICY=fifo acquire $third 1)" ' 2250 [0-9]+ 2 '
    assert_between "$(redis_cli pttl "$KEY")" 80000 90000
}
