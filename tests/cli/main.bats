#!/usr/bin/env bats
# main: what the server holds while a command runs and afterwards, and whom the lock keeps out.

load ../helpers/common
load ../helpers/server

TOKEN='[0-9a-f]{32}'

fence_key() { echo "{$1}:rlock:fence"; } # KEY must have no braces

# ---- the lock on the server ----

# bats test_tags=smoke
@test "while the command runs, the key holds a token and expires; afterwards the key is gone" {
    hold job -k "$KEY" -t 30
    assert_match "$(value "$KEY")" "^$TOKEN "
    assert_between "$(redis_cli ttl "$KEY")" 1 30 "TTL"
    let_pass job 3
    assert_eq "$output" running
    assert_eq "$stderr" ""
    gone "$KEY"
}

@test "without a URL, rlock uses the server at 127.0.0.1:6379" {
    unshare -rn ip link set lo up 2>/dev/null || skip 'no network namespaces here'
    printf '#!/bin/sh\necho "$RLOCK_KEY"\nexit 3\n' >"$DIR/backup.sh"
    chmod +x "$DIR/backup.sh"
    cd "$DIR"
    unset RLOCK_URL
    export -f redis_program
    run -3 --separate-stderr unshare -rn bash -c '
        ip link set lo up
        "$1" -n -k job:nightly -- ./backup.sh # no server listens yet
        echo "$?"
        "$(redis_program)" --save "" >server.log 2>&1 &
        until grep -qsi "ready to accept" server.log; do sleep 0.02; done
        "$1" -k job:nightly -t 30 -- ./backup.sh
        status=$?
        kill "$!"
        exit "$status"' - "$RLOCK"
    assert_eq "$output" $'69\njob:nightly'
    assert_line '^rlock: job:nightly: unreachable: .*127\.0\.0\.1:6379.*refused; .*-u .*local:'
}

@test "after a run only the key of the last fence is left, and it expires" {
    redis_cli -n 1 flushdb
    RLOCK_URL+="?db=1"
    run -0 rlock -k "$KEY" -t 2 -- true
    run -7 rlock -k "$KEY" -t 2 -- sh -c 'exit 7'
    run -127 rlock -k "$KEY" -t 2 -- "$DIR/none"
    assert_eq "$(redis_cli -n 1 keys '*')" "$(fence_key "$KEY")"
    # The fence's key is kept for days, longer than any process could go on with an old lease.
    assert_between "$(redis_cli -n 1 ttl "$(fence_key "$KEY")")" $((5 * 86400)) $((30 * 86400))
}

# ---- fences grow ----

fence() { rlock -k "$KEY" -- sh -c 'echo "$RLOCK_FENCE"'; }

# assert_grows FENCE...: each is a number, and greater than the number before it.
assert_grows() {
    local last=0 next
    for next; do
        assert_match "$next" '^[1-9][0-9]*$' fence
        ((next > last)) || fail "the fences do not grow: $*"
        last=$next
    done
}

@test "each grant's fence is greater than all before it, also after the server lost its data" {
    local fences=()
    redis_start own
    RLOCK_URL=unix://$REDIS_SOCKET
    fences+=("$(fence)" "$(fence)" "$(fence)")
    redis_cli flushall
    fences+=("$(fence)" "$(fence)")
    redis_crash
    redis_restart
    fences+=("$(fence)")
    assert_grows "${fences[@]}"
}

# ---- the command's environment ----

# bats test_tags=smoke
@test "the command's environment has the key, token, fence and TTL, whatever it had before" {
    RLOCK_KEY=x RLOCK_TOKEN=x RLOCK_FENCE=x RLOCK_TTL_MS=x hold job -k "$KEY" -t 2.5
    assert_eq "$(env_of job RLOCK_KEY)" "$KEY"
    assert_eq "$(env_of job RLOCK_TOKEN)" "$(value "$KEY" | cut -c1-32)"
    assert_eq "$(env_of job RLOCK_TTL_MS)" 2500
    assert_grows "$(env_of job RLOCK_FENCE)"
    let_pass job
}

# ---- the holder's information in the key ----

@test "the value names the holder and the command, but not the command's arguments" {
    local host words="v1 try=1 ttl=30000 host=%s pid=%s user=%s command=sh label=at%%20night"
    words+=" since=[0-9]{13}"
    hold job -k "$KEY" --label 'at night'
    host=$(uname -n)
    # shellcheck disable=SC2059
    words=$(printf "$words" "${host//./\\.}" "$pid" "$(id -un)")
    assert_match "$(value "$KEY")" "^$TOKEN $words$"
    let_pass job
    rlock -k "$KEY" -c "$(asking) get '$KEY' # hunter2" >"$DIR/value"
    assert_match "$(<"$DIR/value")" ' command=sh since='
    refute_match "$(<"$DIR/value")" 'hunter2|get'
}
