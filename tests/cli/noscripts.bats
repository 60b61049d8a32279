#!/usr/bin/env bats
# noscripts: --scripts no, for servers that execute no scripts, and for users who may run none: one
# exclusive lock, by commands alone.

load ../helpers/common
load ../helpers/span

setup_file() {
    redis_start
    redis_rule 'noscripts on .*' noscripts
}

setup() {
    common_setup
    KEY=job:$KEY
    FENCE="{$KEY}:rlock:fence"
    redis_use redis
    # The user has the rights that the ACL rule in rlock-locks(7) gives it, and no others.
    export RLOCK_URL=redis://noscripts:SECRET@127.0.0.1:$REDIS_PORT RLOCK_SCRIPTS=no
}

with_scripts() { RLOCK_SCRIPTS=yes RLOCK_URL=redis://127.0.0.1:$REDIS_PORT "$@"; }

# ---- one lock from acquire to release ----

@test "the manual's ACL rule is enough; after a run only the last fence is left, and it expires" {
    # shellcheck disable=SC2016
    run -7 --separate-stderr rlock -k "$KEY" -- sh -c 'echo "$RLOCK_FENCE"; exit 7'
    assert_eq "$stderr" ''
    assert_match "$output" '^[0-9]{16}$'
    assert_eq "$(redis_cli --scan --pattern "*$KEY*")" "$FENCE"
    assert_eq "$(redis_cli get "$FENCE")" "$output"
    assert_between "$(redis_cli pttl "$FENCE")" 604700000 604800000 'PTTL of the fence'
}

# ---- beside rlocks with scripts ----

@test "holders with and without scripts exclude each other; a waiter in the queue gets the lock" {
    hold one -k "$KEY"
    run -75 --separate-stderr with_scripts rlock -n -k "$KEY" -- true
    assert_line 'busy: held for .* by sh of '
    with_scripts start queued "$RLOCK" -k "$KEY" -- echo queued
    eventually 10 exists "{$KEY}:rlock:queue"
    let_go one
    finish queued
    assert_eq "$output" queued
    with_scripts hold one -k "$KEY"
    run -75 --separate-stderr rlock -n -k "$KEY" -- true
    start polling "$RLOCK" -k "$KEY" -- echo polling
    let_go one
    finish polling
    assert_eq "$output" polling
}

# ---- --scripts auto ----

@test "auto: where scripts are refused, one exclusive lock is taken by commands, with a warning" {
    local RLOCK_TOKEN
    redis_rule noscripts noscripts
    unset RLOCK_SCRIPTS
    run -3 --separate-stderr rlock -k "$KEY" -- sh -c 'exit 3'
    assert_line "warning: .* refuses rlock's scripts .* plain commands .* in no particular order$"
    run -0 --separate-stderr rlock -q -k "$KEY" -- true
    assert_eq "$stderr" ''
    RLOCK_TOKEN=$(rlock -q acquire -k "$KEY" -t 60)
    export RLOCK_TOKEN
    run -75 --separate-stderr env -u RLOCK_TOKEN "$RLOCK" -n -k "$KEY" -- true
    refute_match "$stderr" warning
    with_scripts run -75 --separate-stderr env -u RLOCK_TOKEN "$RLOCK" -n -k "$KEY" -- true
    export RLOCK_HISTORY=9 # which these verbs don't need
    run -0 --separate-stderr rlock renew -k "$KEY"
    assert_eq "$stderr" ''
    run -75 --separate-stderr rlock status -k "$KEY"
    assert_match "$output" ': held'
    run -0 --separate-stderr rlock release -k "$KEY"
    assert_eq "$stderr" ''
    gone "$KEY"
    unset RLOCK_TOKEN RLOCK_HISTORY
    hold one -k "$KEY" -t 10
    run -0 --separate-stderr rlock break -k "$KEY" --yes
    ended 76 one 20
    assert_match "$stderr" 'the lock was broken by '
    run --separate-stderr rlock doctor -k "$KEY"
    assert_match "$output" 'weak +scripts: refused, so rlock takes locks with plain commands'
}

@test "auto: what needs scripts says so with 78 where they are refused; yes insists" {
    local what options
    unset RLOCK_SCRIPTS
    while IFS='|' read -r what options; do
        # shellcheck disable=SC2086
        run -78 --separate-stderr rlock $options
        assert_line "$what needs scripts: 127.0.0.1:.*deny this user scripts .*rlock doctor"
    done <<END
a shared lock|-s -k $KEY -- true
a lock with slots|--slots 2 -k $KEY -- true
a done mark .--once.|--once 1h -k $KEY -- true
a lock of several keys|-k $KEY -k job:other -- true
a timestamp lock|--protocol timestamp -k $KEY -- true
a queue|--queue fifo -k $KEY -- true
a history|--history 9 -k $KEY -- true
a history|history -k $KEY
END
    run -78 rlock --explain -s -k "$KEY" -- true
    assert_match "$output" 'unsafe scripts: refused, so this .* have a[[:space:]]+shared lock'
    run rlock --explain -k "$KEY" -- true
    assert_match "$output" 'weak scripts: refused, so rlock takes locks with plain commands'
    run rlock --explain --scripts no -k "$KEY" -- true
    assert_match "$output" "doesn't join a queue"
    run -77 --separate-stderr rlock --scripts yes -k "$KEY" -- true
    gone "$KEY"
}

# ---- status, list and break ----

# same_as_with_scripts VERB...: checks that the verb prints the same JSON with and without scripts.
# Left out are times that go on between the two calls, and times that rlock computes from two of
# them, which may differ by 1 ms.
same_as_with_scripts() {
    local without with
    without=$(rlock "$@" --json | without_times) || :
    with=$(with_scripts rlock "$@" --json | without_times) || :
    assert_eq "$without" "$with" "rlock $*"
}
without_times() { sed -E 's/,"(left_ms|held_ms|waited_ms|renewed_at|until)":[^,}]+//g'; }

# make_locks: makes a lock of each kind; the key of each begins with $KEY.
make_locks() {
    local n
    hold one -k "$KEY:plain" --label nightly
    with_scripts hold two -k "$KEY:queue"
    with_scripts start waiter "$RLOCK" -k "$KEY:queue" -- true
    eventually 10 exists "{$KEY:queue}:rlock:queue"
    with_scripts rlock hold -k "$KEY:person" --for 1h --label 'ask ann' >/dev/null
    for n in 1 2 3; do with_scripts rlock acquire -s -k "$KEY:shared" >/dev/null; done
    for n in 1 2; do with_scripts rlock acquire --slots 3 -k "$KEY:slots" >/dev/null; done
    rlock -k "$KEY:rest" --min-hold 1h -- true
    with_scripts rlock -k "$KEY:done" --once 1h -- true
    redis_cli set "$KEY:foreign" other >/dev/null
    redis_cli set "{$KEY:foreign}:rlock:fence" 5 >/dev/null
    redis_cli set "$KEY:queued" other >/dev/null
    redis_cli zadd "{$KEY:queued}:rlock:queue" 5 x >/dev/null
    redis_cli set "{$KEY:wrong}:rlock:fence" other >/dev/null
    redis_cli set "$KEY:ever" "$(printf %032x 7) v1 try=1 ttl=1000 host=h since=1" >/dev/null
    redis_cli rpush "{$KEY:ever}:rlock:queue" x >/dev/null
    rlock -k "$KEY:free" -- true
    redis_cli set "$KEY:other" "$(printf %032x 7)" >/dev/null
    redis_cli rpush "$KEY:list" x >/dev/null
}

@test "status and list show each kind of lock, with the manual's rights" {
    local kind
    redis_cli flushall >/dev/null
    redis_rule noscripts noscripts
    make_locks
    for kind in plain person rest 'done' foreign queued wrong free other none; do
        same_as_with_scripts status -k "$KEY:$kind"
    done
    same_as_with_scripts list "$KEY:[fpw]*"
    assert_eq "$(rlock list | keys_of)" "$(with_scripts rlock list | keys_of)"
    assert_eq "$(rlock list "$KEY:q*" | keys_of)" "$KEY:queue $KEY:queued"
    assert_match "$(rlock list "$KEY:queue")" "$KEY:queue +exclusive +[0-9]+s +1 "
    run -75 rlock status -k "$KEY:shared"
    assert_match "$output" ': held, shared'
    run -77 --separate-stderr rlock status -k "$KEY:list"
    assert_line 'the key holds a value of another type'
    let_go one
    let_go two
    ended 0 waiter
}
keys_of() { awk 'NR > 1 { print $1 }' | xargs; }

@test "break removes done marks, --min-hold and foreign values, but not what needs scripts" {
    local kind
    redis_rule noscripts noscripts
    make_locks
    for kind in rest 'done' foreign; do
        run -0 rlock break -k "$KEY:$kind" --yes
        gone "$KEY:$kind"
    done
    for kind in shared slots; do
        run -64 --separate-stderr rlock break -k "$KEY:$kind" --yes
        assert_line "without scripts it can't be broken"
        exists "$KEY:$kind"
    done
    run -77 --separate-stderr rlock break -k "$KEY:list" --yes
    assert_line 'the key holds a value of another type'
}

# ---- what needs scripts ----

@test "a user who may not run scripts: error and doctor advise --scripts auto, doctor accepts it" {
    redis_cli flushall >/dev/null
    redis_rule 'noscripts on .*' noscripts
    RLOCK_SCRIPTS=yes run -77 --separate-stderr rlock -k "$KEY" -- true
    assert_line 'deny this user scripts .EVAL.; use --scripts auto'
    RLOCK_SCRIPTS=yes run -78 --separate-stderr rlock doctor -k "$KEY"
    assert_match "$output" 'use --scripts auto'
    run --separate-stderr rlock doctor -k "$KEY"
    assert_match "$output" 'good +rights: all that a lock with plain commands needs for '
    assert_match "$output" 'unknown +locks: +the server denies this user the commands that list'
    redis_rule noscripts noscripts
    run --separate-stderr rlock doctor -k "$KEY"
    assert_match "$output" 'good +locks: +0, and each lock expires by itself'
    redis_cli acl setuser noscripts -watch
    run --separate-stderr rlock doctor -k "$KEY"
    assert_match "$output" 'denied: WATCH'
    run -77 --separate-stderr rlock -k "$KEY" -- touch "$DIR/started"
    redis_cli acl setuser noscripts +watch
    assert_line "'watch'"
    [[ ! -e $DIR/started ]]
    gone "$KEY"
}

@test "doctor without scripts executes no command that writes, whatever the user may do" {
    local rights
    redis_rule 'noscripts on .*' noscripts
    redis_cli config resetstat >/dev/null
    for rights in +discard -discard '-multi -incr' '+multi +incr -set -pexpire -del'; do
        # shellcheck disable=SC2086
        redis_cli acl setuser noscripts $rights >/dev/null
        run --separate-stderr rlock doctor -k "$KEY"
    done
    assert_match "$output" 'denied: SET PEXPIRE DEL .*; allow the user .set .pexpire .del'
    refute_match "$(redis_cli info commandstats)" 'cmdstat_(set|incr|pexpire|del):calls=[1-9]'
}
