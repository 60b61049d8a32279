#!/usr/bin/env bats
# lease: rlock holds the lock for as long as the command runs, also if the server hangs or restarts
# within the lease. If another program changes the lock's key, rlock puts it back, or the lock is
# lost, and no value of another program is touched.
#
# When rlock renews, and after which replies it tries again, tests/unit/test_renewer.c and
# test_quorum.c show; tests/fault/processes.bats has what happens at the end of a lease.

load ../helpers/common
load ../helpers/server

# is_renewed: true if the key lasts longer than await_renewal has made it last.
is_renewed() { (($(redis_cli pttl "$KEY") > 10000)); }
await_renewal() {
    redis_cli pexpire "$KEY" 9000 >/dev/null
    eventually 20 is_renewed
}
has_failed() { file_has "$DIR/holder.err" ': renewal-failed'; }

# assert_lost REGEX: rlock has printed exactly one line `lost`, with a reason that matches.
assert_lost() {
    assert_eq "$(grep -c ": lost: " <<<"$stderr")" 1 "number of lines that say lost"
    assert_match "$stderr" "rlock: $KEY: lost: $1"
}

@test "a server that hangs, then is a replica for a while: the holder renews as soon as it can" {
    local held
    hold holder -k "$KEY" -t 12 --kill-after 100ms
    held=$(value "$KEY")
    await_renewal
    redis_pause
    eventually 20 has_failed
    redis_continue
    await_renewal
    redis_cli replicaof 127.0.0.1 1 >/dev/null
    eventually 20 file_has "$DIR/holder.err" ': renewal-failed: .*READONLY'
    redis_cli replicaof no one >/dev/null
    await_renewal
    assert_eq "$(value "$KEY")" "$held"
    let_pass holder 7
    refute_match "$stderr" ': (lost|restored)'
    gone "$KEY"
}

@test "a server that restarts without its data: rlock ends the command, status 76" {
    redis_start empty
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    hold holder -k "$KEY" -t 12
    redis_crash
    redis_restart
    ended 76 holder 30
    assert_lost 'the server no longer has the lock'
    gone "$KEY"
}

# ---- keys that other clients change ----

@test "a key that was deleted: the next renewal puts it back for the same holder, and says so" {
    local held fence
    hold holder -k "$KEY" -t 12
    held=$(env_of holder RLOCK_TOKEN)
    fence=$(redis_cli get "{$KEY}:rlock:fence")
    redis_cli del "$KEY" >/dev/null
    eventually 20 exists "$KEY"
    assert_match "$(value "$KEY")" "^$held v1 "
    assert_eq "$(redis_cli get "{$KEY}:rlock:fence")" "$fence" 'fence'
    assert_between "$(redis_cli pttl "$KEY")" 1 12000 'PTTL'
    let_pass holder 7
    assert_match "$stderr" "^rlock: $KEY: restored: [^"$'\n'"]*$"
    gone "$KEY"
}
