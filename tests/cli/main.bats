#!/usr/bin/env bats
# main: what the server holds while a command runs and afterwards, and whom the lock keeps out.

load ../helpers/common
load ../helpers/server

TOKEN='[0-9a-f]{32}'

fence_key() { echo "{$1}:rlock:fence"; } # KEY must have no braces

# monitored COMMAND...: as `run`; the requests that the server got meanwhile are in $DIR/monitor.
monitored() {
    redis_monitor "$DIR/monitor"
    run --separate-stderr "$@"
    redis_cli echo "end of $KEY" >/dev/null
    eventually 5 file_has "$DIR/monitor" '"echo" "end of'
}

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

@test "a run sends two requests: one script to acquire, one to release" {
    redis_load_scripts
    redis_cli config resetstat
    monitored rlock -k "$KEY" -- true
    assert_status 0
    assert_eq "$(grep -v '\[0 lua\]' "$DIR/monitor" | grep -oE '\] "[^"]*"' | tr -d '\n')" \
        '] "EVALSHA"] "EVALSHA"] "echo"'
    assert_match "$(redis_cli info commandstats)" 'cmdstat_evalsha:calls=2,'
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

@test "within another rlock, the command's environment has the inner lock's key and token" {
    run -0 --separate-stderr rlock -k "$KEY:outer" -t 5 -- sh -c \
        'echo "$RLOCK_KEY $RLOCK_TOKEN"; "$1" -k "$2" -t 3 -- \
            sh -c "echo \$RLOCK_KEY \$RLOCK_TOKEN \$RLOCK_TTL_MS"' - "$RLOCK" "$KEY"
    assert_match "$output" "^$KEY:outer ($TOKEN)"$'\n'"$KEY ($TOKEN) 3000$"
    [[ ${BASH_REMATCH[1]} != "${BASH_REMATCH[2]}" ]] ||
        fail "the inner command has the token of the outer lock"
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

@test "a label of any bytes is one word of printable characters in the value" {
    local label w='[!-~]+' words
    words="v1 try=1 ttl=30000 host=$w pid=[0-9]+ user=$w command=sh( label=$w)? since=[0-9]+"
    for label in 'a command=evil since=1' $'line\nfeed' $'\e[2J\a' '100 %41' $'\xff\xc3' \
        "$(printf 'x%.0s' {1..1000})" ''; do
        hold job -k "$KEY" --label "$label"
        assert_match "$(value "$KEY")" "^$TOKEN $words$"
        let_pass job
    done
}

# ---- the rlock that finds the lock held ----

# bats test_tags=smoke
@test "a refused rlock names the holder: program, user, host, PID and label" {
    hold job -k "$KEY" -t 20 --label 'the nightly one'
    run -75 --separate-stderr rlock -n -k "$KEY" -- touch "$DIR/ran"
    assert_line "^rlock: $KEY: busy: held for [0-9]s by sh of $(id -un)@$(uname -n), pid $pid"
    assert_match "$stderr" '\(the nightly one\)$'
    run -75 --separate-stderr rlock -w 0.3 -k "$KEY" -- touch "$DIR/ran"
    assert_line "^rlock: $KEY: timeout: after 0\.[3-9]s: held for [0-9]s by sh of .*, pid $pid "
    [[ ! -e $DIR/ran ]]
    let_pass job
}

# ---- keys of all kinds ----

@test "a key has any bytes, up to 64 KiB, and its helper key is in the same Cluster slot" {
    local key long helper slot
    long=$(printf '%65536s' '' | tr ' ' k)
    # A Cluster refuses a script whose keys are in different slots.
    redis_start cluster --cluster-enabled yes
    eval "$(asking) cluster addslots {0..16383}" >/dev/null
    eventually 10 cluster_serves
    RLOCK_URL=unix://$REDIS_SOCKET
    for key in 'with space' $'new\nline' '{tag}x' 'a{tag}x' '{' '}{tag}' 'a{b' '{a}b}' \
        '{a}{b}' '{{a}}' $'\xff\xfe\x80' '%n%s\x41' $'quote\'"\\$(x)`x`' -k '*?[a]' \
        "$long" "{${long:2}}"; do
        redis_cli flushall >/dev/null
        run -0 --separate-stderr rlock --key="$key" -- bash -c \
            '[[ $RLOCK_KEY == "$1" ]] && '"$(asking)"' exists "$1"' - "$key"
        assert_eq "$output|$stderr" '1|' "${key:0:40}"
        gone "$key"
        assert_eq "$(redis_cli dbsize)" 1
        helper=$(redis_cli randomkey)
        slot=$(printf %s "$helper" | redis_cli -x cluster keyslot)
        assert_eq "$slot" "$(printf %s "$key" | redis_cli -x cluster keyslot)" "slot: ${key:0:40}"
    done
}

cluster_serves() { [[ $(redis_cli cluster info) == *cluster_state:ok* ]]; }

# ---- other programs that use the key ----

@test "rlock waits for a key that never expires, and doesn't overwrite it" {
    redis_cli set "$KEY" other
    run -75 --separate-stderr rlock -w 0.5 -k "$KEY" -- touch "$DIR/ran"
    assert_line "^rlock: $KEY: timeout: after [0-9.]+s: held by another program .*; never expires$"
    start waiter "$RLOCK" -k "$KEY" -- true
    never 1 dead "$pid"
    assert_eq "$(value "$KEY"), $(redis_cli ttl "$KEY")" 'other, -1'
    [[ ! -e $DIR/ran ]]
    redis_cli del "$KEY"
    ended 0 waiter
}

@test "redis-py's Lock and rlock exclude each other" {
    /usr/bin/python3 -c 'import redis' 2>/dev/null || skip 'no Python module redis here'
    cat >"$DIR/lock.py" <<'END'
import os, redis, sys
lock = redis.Redis(unix_socket_path=os.environ["REDIS_SOCKET"]).lock(sys.argv[1], timeout=20)
print("got" if lock.acquire(blocking=False) else "refused", flush=True)
if lock.owned():
    sys.stdin.readline()
    lock.extend(5)
    lock.release() # release() raises an exception if the lock isn't held any more
    print("released", flush=True)
END
    hold job -k "$KEY"
    run -0 /usr/bin/python3 "$DIR/lock.py" "$KEY"
    assert_eq "$output" refused
    let_pass job 5

    mkfifo "$DIR/go"
    start other bash -c 'exec /usr/bin/python3 "$0" "$1" <"$2"' "$DIR/lock.py" "$KEY" "$DIR/go"
    exec {go}>"$DIR/go"
    eventually 10 file_has "$DIR/other.out" '^got$'
    run -75 rlock -n -k "$KEY" -- touch "$DIR/ran"
    start waiter "$RLOCK" -w 20 -k "$KEY" -- touch "$DIR/ran"
    never 1 dead "$pid"
    [[ ! -e $DIR/ran ]]
    echo >&"$go"
    finish other
    assert_eq "$status $output" $'0 got\nreleased'
    ended 0 waiter
    [[ -e $DIR/ran ]]
}
