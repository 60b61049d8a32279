#!/usr/bin/env bats
# evalsha: rlock sends the digest of a script (EVALSHA), and the script itself (EVAL) only to a
# server that doesn't know it. Whenever a server forgets its scripts, each of them costs one request
# more, and no exit status changes. The simulator (tests/sim) does so in thousands of worlds.

load ../helpers/common
load ../helpers/server

setup() {
    common_setup
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}

# forget_scripts: makes the server forget its scripts, and counts its commands anew.
forget_scripts() {
    redis_cli script flush >/dev/null
    redis_cli config resetstat >/dev/null
}

# assert_sent N: the server has got the text of N scripts since forget_scripts.
assert_sent() {
    local stats n=0
    stats=$(redis_cli info commandstats)
    [[ ! $stats =~ cmdstat_eval:calls=([0-9]+) ]] || n=${BASH_REMATCH[1]}
    assert_eq "$n" "$1" 'scripts that were sent'
}

@test "after SCRIPT FLUSH a run sends each script once, and the next run sends none" {
    forget_scripts
    run -7 rlock -k "$KEY" -- sh -c 'exit 7'
    assert_sent 2
    run -7 rlock -k "$KEY" -- sh -c 'exit 7'
    assert_sent 2
}

in_queue() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }
renewed() { (($(redis_cli pttl "$KEY") > 10000)); }

@test "SCRIPT FLUSH during a hold and a wait: renewal, release and the waiter's grant succeed" {
    hold holder -t 15 -k "$KEY"
    start waiter "$RLOCK" -w 600 -t 60 -k "$KEY" -- sh -c 'exit 5'
    eventually 10 in_queue 1
    forget_scripts
    redis_cli pexpire "$KEY" 9000 >/dev/null
    eventually 20 renewed
    let_pass holder 7
    ended 5 waiter 30
    assert_sent 3 # renew, release and acquire
    assert_eq "$(cat "$DIR"/{holder,waiter}.err)" '' 'messages of both'
}
