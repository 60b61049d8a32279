#!/usr/bin/env bats
# ghosts: what was asked and given up may be done all the same, what was done may not be told, and
# neither leaves a lock that nobody owns.
#
# With a TTL of 3 s an acquire is given up and asked again after 1 s.

load ../helpers/common
load ../helpers/fake
load ../helpers/lua

setup() {
    common_setup
    redis_start
    export CLI
    CLI=$(type -P redis-cli valkey-cli | head -n 1)
    URL=redis://127.0.0.1:$REDIS_PORT
}

is_free() { [[ $(redis_cli exists "${1:-$KEY}") == 0 ]]; }
is_taken() { ! is_free "$@"; }
any_lock() { [[ -n $(redis_cli --scan --pattern "$KEY*") ]]; }

# Each of N clients has been answered.
has_polled() { (($(redis_cli client list | grep -Ec ' cmd=(eval|evalsha|blpop) ') >= ${1:-1})); }

# run_through_line OPTION... -- COMMAND...: in the background, as `holder`
run_through_line() { start holder "$RLOCK" -u "redis://127.0.0.1:$LINE_PORT" -k "$KEY" "$@"; }

# ---- given up, and executed later ----

# Each way to give up, over TCP and over a Unix socket: there the kernel keeps what was sent.
@test "a server that was stopped executes what was given up, and no lock appears" {
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

# From here on it has its signals in hand.
rlock_runs() { grep -q '^SigBlk:.*[1-9a-f]' "/proc/$(<"$DIR/pids/$1")/status"; }

@test "a waiter that gave up or was killed while the server was stopped leaves no lock" {
    local name
    for name in given-up killed; do
        redis_cli set "$KEY:$name" other PX 1500
        start $name "$RLOCK" -u "unix://$REDIS_SOCKET" -k "$KEY:$name" -t 3 \
            --connect-timeout 200ms -w 2 -- touch "$DIR/ran"
    done
    eventually 5 has_polled 2
    redis_pause
    # Each is the first in its line, so it blocks for 0.3 s, and takes a server that is 1 s late
    # for dead: by then their next requests to acquire wait at the server.
    sleep 1.6
    kill -KILL "$pid"
    # What was killed could not undo its request, but that has a not-after: it is worth nothing
    # after 300 ms to connect, 1 s for the answer, and a little for the estimate of the clock.
    sleep 1.5
    finish given-up
    assert_status 75
    redis_continue
    redis_cli ping
    never 1 any_lock
    refute_match "$(ls "$DIR")" ran
}

@test "requests that a slow line delivers after they were given up leave no lock" {
    line_start "$REDIS_PORT"
    line delay 1200
    run_through_line -t 3 --connect-timeout 1500ms -- touch "$DIR/ran"
    finish holder
    assert_status 69
    # Each ghost is followed by its undo, as late as itself; a lock would outlive both by 3 s.
    sleep 1.7
    assert_match "$(redis_cli info commandstats)" 'cmdstat_set:'
    never 1 any_lock
    refute_match "$(ls "$DIR")" ran
}

@test "an attempt that arrives after a later one was granted changes nothing" {
    local value
    line_start "$REDIS_PORT"
    line delay 2000
    run_through_line -t 3 -- sh -c 'sleep 2.5; exit 7'
    eventually 5 has_clients 2
    sleep 0.2 # connected; and this is for the request
    line delay 0
    eventually 5 is_taken
    value=$(redis_cli get "$KEY")
    assert_match "$value" ' try=2 '
    never 2 has_other_value "$value"
    finish holder
    assert_status 7
    assert_eq "$stderr" ''
    is_free
}

has_clients() { [[ $(redis_cli client list | wc -l) == "$1" ]]; }
has_other_value() { [[ $(redis_cli get "$KEY") != "$1" ]]; }

# ---- done, and not told ----

# Looks at the lock while it runs once more, and counts its runs.
counted='echo "$RLOCK_TOKEN" >>"$0"; "$CLI" -s "$1" get "$RLOCK_KEY" >"$0.value"; exit 7'

assert_ran_once() {
    assert_status 7
    assert_eq "$(wc -l <"$DIR/runs")" 1 runs
    assert_match "$(<"$DIR/runs.value")" "^$(<"$DIR/runs") v1 try=2 "
    is_free
}

@test "a reply lost to a reset after SET: asked again, no waiting for oneself, one run" {
    local before how
    line_start "$REDIS_PORT"
    for how in -n '-w 20' ''; do
        rm -f "$DIR/runs"
        line cut-after-request 1
        before=$(now_ms)
        run_through_line -t 60 $how -- sh -c "$counted" "$DIR/runs" "$REDIS_SOCKET"
        finish holder
        assert_ran_once
        assert_between $(($(now_ms) - before)) 0 9000 'ms that it took'
    done
}

@test "a reply that was swallowed after SET: asked again, no waiting for oneself, one run" {
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
        assert_between $(($(now_ms) - before)) 0 9000 'ms that it took'
    done
}

@test "a server that does all and never tells: 69, and the lock is taken back" {
    line_start "$REDIS_PORT"
    line drop down on
    run_through_line -t 60 -n --connect-timeout 1500ms -- touch "$DIR/ran"
    finish holder
    assert_status 69
    assert_match "$(redis_cli info commandstats)" 'cmdstat_set:'
    eventually 5 is_free
    refute_match "$(ls "$DIR")" ran
}

@test "a renewal whose reply was lost: asked again, nothing is lost" {
    line_start "$REDIS_PORT"
    line cut-after-request 3 # behind the acquire and CLUSTER NODES
    run_through_line -t 3 --kill-after 100ms -- sh -c 'sleep 1.5; exit 7'
    finish holder
    assert_status 7
    assert_match "$stderr" ': renewal-failed:.*'$'\n''.*: renewed'
    refute_match "$stderr" ': (lost|restored|not-released)'
    is_free
}

@test "a release whose reply was lost: the key is gone, and the status is the command's" {
    line_start "$REDIS_PORT"
    line cut-after-request 2
    run_through_line -t 30 -- sh -c 'exit 7'
    finish holder
    assert_status 7
    assert_eq "$stderr" ''
    is_free
}

@test "a release whose reply never comes: the key is gone, and the status is the command's" {
    line_start "$REDIS_PORT"
    run_through_line -t 30 -- bash -c 'exec 5<>"/dev/tcp/127.0.0.1/$0"
        echo drop down on >&5; read -r _ <&5; exit 7' "$LINE_CONTROL"
    finish holder
    assert_status 7
    assert_match "$stderr" "^rlock: $KEY: not-released: [^"$'\n'"]*$"
    is_free
}

# ---- the scripts alone ----

@test "lua: acquire is granted again for a later attempt of the same owner, not for an earlier" {
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

@test "lua: the undo of one attempt takes back that one only" {
    acquire $mine 1
    acquire $mine 12
    assert_eq "$(undo $mine 1)" '0 '
    assert_eq "$(undo $yours 12)" '0 '
    is_taken
    assert_eq "$(undo $mine 12)" '1 '
    is_free
    assert_eq "$(undo $mine 12)" '-1 '
}

@test "lua: a request that comes too late does nothing" {
    local before
    for QUEUE in try none fifo newest; do
        assert_match "$(acquire $mine 1 30000 $(($(server_ms) - 1000)))" '^-2 '
        assert_eq "$(contents)" '' "after $QUEUE"
    done
    assert_match "$(acquire $mine 1 30000 $(($(server_ms) + 60000)))" '^1 '
    before=$(contents)
    assert_match "$(renew $mine "$(fence)" 90000 $(($(server_ms) - 1000)))" '^-2 '
    assert_eq "$(contents)" "$before"
    assert_match "$(renew $mine "$(fence)" 90000 $(($(server_ms) + 60000)))" '^1 '
    assert_between "$(redis_cli pttl "$KEY")" 80000 90000
}

@test "lua: a value that is not the owner's is never overwritten, deleted or extended" {
    local value ttl='' before
    acquire $mine 1
    for value in other '' "$mine" "${mine}x v1 try=1 " "$mine"$'\t' "${mine^^} v1 try=1 " \
        "$yours v1 try=1 pid=1" "x$mine v1 try=1 " ' '; do
        # shellcheck disable=SC2086
        redis_cli set "$KEY" "$value" $ttl
        redis_cli pexpire "$(FENCE)" 604795000
        before=$(contents)
        assert_match "$(acquire $mine 2)" '^0 '
        assert_match "$(renew $mine "$(fence)")" '^0 '
        assert_match "$(undo $mine 1)" '^0 '
        assert_match "$(leave $mine)" '^0 '
        assert_match "$(QUEUE=none acquire $mine 2)" '^0 '
        assert_eq "$(contents)" "$before" "after '$value' was there"
        assert_match "$(release $mine "$(fence)")" '^0 '
        assert_eq "$(redis_cli get "$KEY")" "$value"
        ttl=$([[ $ttl ]] || echo PX 95000) # every other one
    done
}

@test "lua: a key of another type is said to be one, and nothing is written" {
    local before command
    for command in 'rpush KEY a' 'hset KEY a b' 'sadd KEY a' 'zadd KEY 1 a' 'xadd KEY 1-1 a b'; do
        redis_cli flushall
        # shellcheck disable=SC2086
        redis_cli ${command/KEY/$KEY}
        before=$(contents)
        for QUEUE in try none fifo newest; do
            assert_match "$(acquire $mine 1)" '^WRONGTYPE '
        done
        assert_match "$(renew $mine 1)" '^WRONGTYPE '
        assert_eq "$(release $mine 1)" '0 '
        assert_eq "$(leave $mine)" '0 '
        assert_eq "$(contents)" "$before" "after $command"
    done
}

@test "lua: a last fence of another type: no lock is left behind" {
    local before
    redis_cli rpush "$(FENCE)" a
    before=$(contents)
    assert_match "$(acquire $mine 1)" '^FOREIGN '
    assert_eq "$(contents)" "$before"
    start refused "$RLOCK" -u "$URL" -k "$KEY" -n -- true
    finish refused
    assert_status 77
    assert_eq "$(contents)" "$before"
}

@test "lua: a last fence that became another type keeps nobody from renewing and releasing" {
    local last
    acquire $mine 1
    last=$(fence)
    redis_cli del "$(FENCE)"
    redis_cli rpush "$(FENCE)" a
    assert_match "$(renew $mine "$last" 90000)" '^1 '
    assert_between "$(redis_cli pttl "$KEY")" 80000 90000
    assert_eq "$(release $mine "$last")" '1 '
    is_free
}

@test "lua: every key that is written has an expiry, the last fence a long one" {
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
        assert_between "$(redis_cli pttl "$(FENCE)")" 604000000 25920000000
    done
}

assert_expiries() {
    assert_between "$(redis_cli pttl "$KEY")" 1 "$1"
    assert_between "$(redis_cli pttl "$(FENCE)")" $((604000000 > 9 * $1 ? 604000000 : 9 * $1)) \
        25920000000
    assert_eq "$(redis_cli dbsize)" 2 'number of keys'
}

@test "lua: the fence grows with each grant, also when the last one is from the future" {
    local last=0 round
    for round in 1 2 3; do
        acquire $mine 1
        assert_between "$(fence)" $((last + 1)) 9007199254740992
        last=$(fence)
        release $mine "$last"
        ((round != 2)) || redis_cli set "$(FENCE)" $((last = 5000000000000000))
    done
    assert_between "$last" 5000000000000001 5000000000000010
    redis_cli del "$(FENCE)" # data lost: then time itself is the fence
    acquire $mine 1
    assert_between "$(fence)" $(($(server_ms) * 1000 - 60000000)) $(($(server_ms) * 1000 + 2000000))
}

@test "lua: who waits leaves the lock as it is, all that it writes expires, and is gone with it" {
    local before
    for QUEUE in fifo newest; do
        redis_cli flushall
        redis_cli set "$KEY" other
        before=$(contents)
        assert_match "$(acquire $mine 1)" '^0 [0-9]+ -1 other 250 [0-9]{16} 1 1 $'
        assert_eq "$(redis_cli get "$KEY"), $(redis_cli pttl "$KEY")" 'other, -1'
        assert_eq "$(endless)" "$KEY" 'keys without an expiry'
        assert_eq "$(redis_cli dbsize)" 3 'number of keys'
        assert_eq "$(leave $mine)" '0 '
        redis_cli hdel "$(WAITERS)" newest # that one expires
        assert_eq "$(contents)" "$before"
    done
}

@test "lua: a free lock is reserved for the first in line, and only for it" {
    local ticket second answer SLOWLY=1
    redis_cli set "$KEY" other
    QUEUE=fifo
    read -r _ _ _ _ _ ticket _ <<<"$(acquire $mine 1)"
    answer=$(acquire $yours 1)
    assert_match "$answer" '^0 [0-9]+ -1 other [0-9]+ [0-9]{16} 2 1 $'
    read -r _ _ _ _ _ second _ <<<"$answer"
    redis_cli del "$KEY"
    assert_match "$(QUEUE=try acquire $third 1)" "^0 [0-9]+ [0-9]+ $mine v1 try=0 .* 0 0 1 $"
    assert_eq "$(endless)" '' 'keys without an expiry'
    assert_match "$(acquire $mine 2 30000 0 "$ticket")" '^1 '
    assert_match "$(acquire $yours 3 30000 0 "$second")" "^0 .* $second 1 1 $"
    assert_match "$(release $mine "$(fence)")" '^2 '
    assert_match "$(redis_cli get "$KEY")" "^$yours v1 try=0 " # handed over
    assert_match "$(acquire $yours 4 30000 0 "$second")" '^1 '
    release $yours "$(fence)"
    assert_eq "$(redis_cli keys '*')" "$(FENCE)"
}

@test "lua: who leaves when it is its turn passes it on" {
    local SLOWLY=1 # a turn has to be claimed within 0.5 s
    acquire $third 1
    QUEUE=fifo
    acquire $mine 1
    acquire $yours 1
    assert_match "$(release $third "$(fence)")" '^2 '
    assert_match "$(leave $mine)" '^2 $'
    assert_match "$(redis_cli get "$KEY")" "^$yours v1 try=0 "
    assert_match "$(leave $yours)" '^-?1 $'
    assert_eq "$(redis_cli keys '*')" "$(FENCE)"
}

@test "lua: a late renewal does not bring a released lock back" {
    local token last
    start holder "$RLOCK" -u "$URL" -k "$KEY" -- sh -c 'echo "$RLOCK_TOKEN $RLOCK_FENCE"'
    finish holder
    read -r token last <<<"$output"
    assert_match "$(renew "$token" "$last")" '^-1 '
    is_free
    # But one that comes in time does, if nobody had the lock since.
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

@test "lua: a lease that was put back is no turn to be claimed: those in line sleep as before" {
    acquire $mine 1
    redis_cli del "$KEY"
    assert_match "$(renew $mine "$(fence)" 90000)" '^2 '
    QUEUE=fifo acquire $yours 1
    assert_match "$(QUEUE=fifo acquire $third 1)" ' 2250 [0-9]+ 2 '
    assert_between "$(redis_cli pttl "$KEY")" 80000 90000
}
