#!/usr/bin/env bats
# kinds: tests of the Lua scripts, called without rlock, for shared locks, slots, several keys, a
# lock inside the lock of another rlock (its parent lock), --min-hold and --once.

load ../helpers/common
load ../helpers/lua

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() {
    common_setup
    redis_cli flushall >/dev/null
    SLOWLY=1
}
teardown() {
    redis_cli config set maxmemory 0 >/dev/null
    common_teardown
}

holders() { redis_cli zrange "$(key_of holders)" 0 -1 | xargs; }
# reserved_for TOKEN [KEY]: the lock must be free, and reserved for this waiter.
reserved_for() { assert_match "$(redis_cli get "${2:-$KEY}")" "^$1 v1 try=0 "; }

# waits TOKEN MODE [TICKET]: asks for the lock in the mode MODE (x, s or a number of slots) for
# TOKEN; checks that TOKEN joins the queue; sets ticket.
waits() {
    local answer
    answer=$(POLICY=fifo MODE=$2 acquire "$1" 1 30000 0 "${3:-}")
    assert_match "$answer" '^0 '
    ticket=$(grep -oE '[0-9]{16}' <<<"$answer")
}

# set_quiet TOKEN MS: changes the waiter's entry, so that it says that the waiter last asked MS ago.
set_quiet() {
    redis_cli eval 'local t = redis.call("TIME")
        local rest = string.match(redis.call("HGET", KEYS[1], ARGV[1]), " .*")
        return redis.call("HSET", KEYS[1], ARGV[1],
            math.floor(t[1] * 1000 + t[2] / 1000) - ARGV[2] .. rest)' \
        1 "$(key_of waiters)" "$1" "$2"
}

@test "lua: a shared lock is deleted and granted to others: its old holder is no holder any more" {
    local next
    for next in s x; do
        redis_cli flushall
        MODE=s acquire $mine 1
        redis_cli set "$KEY" foreign
        waits $yours $next
        # With this value the lock is free, and reserved for the waiter $yours.
        redis_cli set "$KEY" "$yours v1 try=0 pid=1" PX 5000
        assert_match "$(POLICY=fifo MODE=$next acquire $yours 2 30000 0 "$ticket")" '^1 '
        release $yours "$(fence)"
        assert_match "$(MODE=s acquire $third 2)" '^1 '
        assert_eq "$(holders)" $third "holders after $next"
        assert_match "$(MODE=s renew $mine "$(fence)0")" '^-1 '
    done
}

@test "lua: out of memory: slots and shared locks are renewed; a release sets --once's mark" {
    local ending
    MODE=s acquire $mine 1 90000
    LOCKS=("$KEY:slots")
    MODE=3 acquire $mine 1 90000
    for ending in 'done' rest; do
        LOCKS=("$KEY:$ending")
        acquire $mine 1
    done
    redis_cli config set maxmemory 1
    LOCKS=()
    redis_cli pexpire "$KEY" 30000
    assert_match "$(MODE=s acquire $yours 1)" 'OOM'
    assert_match "$(MODE=s renew $mine 1 90000)" '^1 '
    assert_between "$(redis_cli pttl "$KEY")" 70000 90000
    LOCKS=("$KEY:slots")
    assert_match "$(MODE=3 renew $mine 1 90000)" '^1 '
    for ending in 'done' rest; do
        LOCKS=("$KEY:$ending")
        assert_match "$(release $mine 1 $ending 50000)" '^1 '
        assert_match "$(redis_cli get "$KEY:$ending")" "^0{32} v1 mode=$ending pid=1 since="
        assert_between "$(redis_cli pttl "$KEY:$ending")" 30000 50000
    done
    LOCKS=("$KEY:slots")
    assert_match "$(release $mine 1 rest 50000)" '^1 '
    assert_eq "$(redis_cli zrange "$(key_of holders "$KEY:slots")" 0 -1)" "-$mine"
}

@test "lua: a dead waiter for an exclusive lock leaves the queue after 0.5 s, a live one stays" {
    MODE=s acquire $mine 1
    waits $yours x
    assert_match "$(POLICY=fifo MODE=s acquire $third 1)" '^0 .* 5002 [0-9]{16} 2 1 $'
    # the first waiter has just asked, so it isn't woken
    assert_eq "$(redis_cli exists "$(key_of wake:)$yours")" 0
    set_quiet $yours 6000
    assert_match "$(POLICY=fifo MODE=s acquire $third 1)" '^0 .* 5002 [0-9]{16} 2 1 $'
    assert_eq "$(redis_cli exists "$(key_of wake:)$yours")" 1
    set_quiet $yours -9000
    assert_match "$(POLICY=fifo MODE=s acquire $third 1)" '^0 .* 5002 [0-9]{16} 2 1 $'
    set_quiet $yours 72000
    assert_match "$(POLICY=fifo MODE=s acquire $third 1)" '^0 .* [0-9]{1,4} [0-9]{16} 2 1 $'
    # A client that asks without joining the queue also finds the dead waiter, and removes it.
    # Without SLOWLY a waiter counts as dead after 0.5 s.
    leave $yours
    leave $third
    SLOWLY=
    waits $yours x
    set_quiet $yours 600
    [[ $(MODE=s acquire $third 9) == '0 '* ]]
    eventually 5 granted_shared $third
    assert_eq "$(redis_cli zcard "$(key_of queue)")" 0
}
granted_shared() { [[ $(MODE=s acquire "$1" 9) == '1 '* ]]; }

# One call of a script removes at most 128 dead waiters from the queue.
@test "lua: 600 waiters have died: a newcomer does not overtake the live waiter behind them" {
    local n
    for n in {100..699}; do
        echo "zadd $(key_of queue) $n $(printf %032d "$n")"
        echo "hset $(key_of waiters) $(printf %032d "$n") '1000 x pid=$n'"
    done | redis_cli >/dev/null
    redis_cli set "$KEY" foreign
    waits $yours x
    redis_cli del "$KEY"
    for n in {1..5}; do
        assert_match "$(POLICY=try acquire $third "$n")" '^0 '
    done
    assert_eq "$(redis_cli zrange "$(key_of queue)" 0 -1)" $yours 'the queue'
    assert_match "$(POLICY=fifo acquire $yours 2 30000 0 "$ticket")" '^1 '
}

@test "lua: several keys: a key reserved for a waiter goes to an earlier waiter that joins again" {
    local a=$KEY:a b=$KEY:b first
    LOCKS=("$b")
    acquire $third 1
    LOCKS=("$a" "$b")
    waits $mine x
    first=$ticket
    waits $yours x
    redis_cli zrem "$(key_of queue "$a")" $mine # $mine has lost its place
    redis_cli del "$a"
    waits $yours x "$ticket"
    reserved_for $yours "$a"
    waits $mine x "$first"
    waits $yours x "$ticket"
    reserved_for $mine "$a"
    LOCKS=("$b")
    release $third "$(fence "$b")"
    LOCKS=("$a" "$b")
    assert_match "$(POLICY=fifo acquire $mine 3 30000 0 "$first")" '^1 '
}

@test "lua: a foreign value that looks almost like one of rlock's values: no script changes it" {
    local value
    for value in 'ab v1 try=0 ' '0 v1 mode=shared since=1' "00$mine v1 mode=slots "; do
        redis_cli set "$KEY" "$value"
        for MODE in x s; do
            assert_match "$(acquire $mine 1)" '^0 '
            assert_match "$(renew $mine 1)" '^0 '
            assert_eq "$(release $mine 1)" '0 '
        done
        assert_eq "$(redis_cli get "$KEY")" "$value"
    done
}

@test "lua: --once: a release that sets the done mark wakes all waiters in the queue" {
    local each
    acquire $mine 1
    waits $third x
    UNLESS_DONE=1 waits $yours x
    set_quiet $third 5000
    assert_match "$(release $mine "$(fence)" 'done' 60000)" '^1 '
    for each in $third $yours; do
        assert_eq "$(redis_cli exists "$(key_of wake:)$each")" 1
    done
    assert_match "$(POLICY=fifo UNLESS_DONE=1 acquire $yours 2 30000 0 "$ticket")" \
        '^3 [0-9]+ [0-9]+ 0{32} v1 mode=done pid=1 since=[0-9]+ $'
    leave $yours
    assert_match "$(acquire $yours 3)" '^0 '
}

@test "lua: a lock under its parent lock gets the parent's fence and TTL, and prolongs its lease" {
    local last
    acquire $mine 1 60000
    last=$(fence)
    redis_cli pexpire "$KEY" 20000
    assert_match "$(PARENTS="$third $mine" acquire $yours 1 90000)" \
        "^1 [0-9]+ $last 0 2:$last:60000 $"
    assert_between "$(redis_cli pttl "$KEY")" 50000 60000
    assert_eq "$(fence)" "$last"
    # two keys, of which only one is the parent's: the fence is greater than both last fences
    LOCKS=("$KEY" "$KEY:2")
    assert_match "$(PARENTS=$mine acquire $yours 1)" \
        "^1 [0-9]+ [0-9]+ 0 1:$last:60000 0:[0-9]+:30000 $"
    ((last < $(fence "$KEY:2")))
    assert_eq "$(fence)" "$last"
    release $yours "$(fence "$KEY:2")"
    assert_eq "$(redis_cli exists "$KEY:2")" 0
    assert_match "$(redis_cli get "$KEY")" "^$mine "
}

@test "lua: the parent token is unknown, a waiter's, or released: acquire grants no lock" {
    local nobody=00000000000000000000000000000000
    acquire $mine 1
    assert_match "$(PARENTS="$third $nobody" acquire $yours 1)" '^0 '
    waits $third x
    release $mine "$(fence)"
    reserved_for $third
    assert_match "$(PARENTS="$third $mine" acquire $yours 1)" '^0 '
    redis_cli flushall
    MODE=2 acquire $mine 1
    MODE=2 acquire $third 1
    MODE=2 release $third "$(fence)" rest 60000
    assert_match "$(MODE=2 PARENTS="$third $nobody" acquire $yours 1)" '^0 '
    assert_match "$(MODE=2 PARENTS=$mine acquire $yours 1)" '^1 '
    assert_match "$(PARENTS=$mine acquire $yours 1)" '^-4 [0-9]+ 1 $'
    assert_match "$(MODE=s PARENTS=$mine acquire $yours 1)" '^-4 [0-9]+ 1 $'
}

@test "lua: a waiter that asked twice, as a reply was lost, leaves the queue when it is granted" {
    acquire $yours 1
    POLICY=fifo acquire $mine 1 # as if this reply were lost
    release $yours "$(fence)"
    reserved_for $mine
    assert_match "$(POLICY=fifo acquire $mine 2)" '^1 '
    release $mine "$(fence)"
    assert_eq "$(redis_cli keys '*')" "$(key_of fence)"
}

@test "lua: a waiter that asks again, as its first reply was lost, keeps its place and its ticket" {
    local kept
    for MODE in x s 2; do
        redis_cli flushall
        MODE=x acquire $yours 1
        LOCKS=("$KEY" "$KEY:b")
        waits $mine $MODE # as if this reply were lost: then the waiter has no ticket to send
        kept=$ticket
        LOCKS=()
        waits $third $MODE
        LOCKS=("$KEY" "$KEY:b")
        assert_match "$(POLICY=fifo acquire $mine 2)" " $kept 1 1 \$" "mode $MODE"
        LOCKS=()
        assert_eq "$(redis_cli zrange "$(key_of queue)" 0 -1 | xargs)" "$mine $third"
    done
}

@test "lua: a helper key of another type: all keys that acquire writes have an expiry" {
    local kind
    while read -r kind POLICY MODE; do
        redis_cli flushall
        redis_cli set "$KEY" other px 60000
        redis_cli set "$(key_of "$kind")" other px 60000
        acquire $mine 1
        acquire $yours 1 30000 0 1795277769123456
        redis_cli del "$KEY"
        acquire $third 1
        assert_eq "$(endless)" '' "with $kind, $POLICY and $MODE"
    done <<'END'
queue fifo x
queue newest x
waiters fifo x
waiters newest x
holders fifo s
holder-info fifo 2
END
}

@test "lua: a lock is granted with a fence greater than any last fence, or not at all" {
    local last
    for last in '' 5 999999999999999 1000000000000000 1795277769123456 8999999999999999; do
        redis_cli flushall
        [[ -z $last ]] || redis_cli set "$(key_of fence)" "$last" px 60000
        assert_match "$(acquire $mine 1)" '^1 '
        (($(fence) > ${last:-0})) || fail "the fence is $(fence) after $last"
        assert_eq "$(endless)" '' "after $last"
    done
    for last in 0 0000000000000005 0123456789012345 12345678901234.5 9007199254740993 ' 12' text; do
        redis_cli flushall
        redis_cli set "$(key_of fence)" "$last" px 60000
        assert_match "$(acquire $mine 1)" 'FOREIGN .* is no fence'
        assert_eq "$(redis_cli exists "$KEY")" 0 "granted after $last"
        assert_eq "$(fence)" "$last"
    done
}
