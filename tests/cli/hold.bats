#!/usr/bin/env bats
# hold: a person holds a lock without a command, and ends the hold without knowing its token.

load ../helpers/common
load ../helpers/fake
load ../helpers/span

# hold_files: prints the names of the files that have tokens of holds.
hold_files() { ls -A "$RLOCK_HOLD_DIR" 2>/dev/null; }
break_it() { rlock break -k "$KEY" --yes 2>"$DIR/broken"; }
WHEN='20[0-9-]{8}T[0-9:]{8}[+-][0-9:]{5}'

# ---- what a hold is ----

@test "hold takes the lock for --for, says until when and how to end it, and leaves no process" {
    run -0 --separate-stderr rlock hold -k "$KEY" --for 2h --label 'incident 42: ask ann'
    assert_eq "$stderr" ""
    assert_eq "${lines[0]}" "$KEY: held by you"
    assert_match "${lines[1]}" "^    until    $WHEN, for 2h00m$"
    assert_eq "${lines[2]}" "    to end   rlock release -k $KEY"
    assert_eq "${#lines[@]}" 3
    assert_between "$(ttl_ms "$KEY")" 7100000 7200000
    assert_eq "$(value "$KEY" | sed -E 's/^[0-9a-f]{32} //; s/(host|user|since)=[^ ]+/\1=/g')" \
        'v1 try=1 ttl=7200000 host= user= label=incident%2042:%20ask%20ann hold=7200000 since='
    alone
}

@test "the lease is of 30 s until the token is stored, and then of --for" {
    redis_monitor "$DIR/monitor"
    rlock hold -k "$KEY" --for 2h >/dev/null
    eventually 5 file_has "$DIR/monitor" '"7200000"'
    assert_eq "$(grep -oE '"(30000|7200000)"' "$DIR/monitor" | uniq | xargs)" '30000 7200000'
}

@test "status, list and busy messages name the user, host, label and end, and no process" {
    local who until
    rlock hold -k "$KEY" --for 5m --label 'incident 42' >/dev/null
    who="$(id -un) on $(uname -n) \(incident 42\)"
    run -75 rlock status -k "$KEY"
    assert_match "$output" "    holder   $who"$'\n'
    assert_match "$output" "    until    $WHEN, in 4m5[0-9]s"$'\n'
    run -0 rlock list
    assert_match "$output" "$who, until ([0-9-]* )?[0-9:]{5,8}$"
    run -75 --separate-stderr rlock -k "$KEY" -n -- true
    assert_line "busy: held for [0-9]+s by $who, until ([0-9-]* )?[0-9:]{5,8}$"
    refute_match "$stderr$(rlock status -k "$KEY" || :)" 'pid|a program'
}

@test "hold --json writes until, left_ms, fence, and with --slots the slot" {
    rlock hold -k "$KEY" --for 1h --json >"$DIR/json"
    assert_match "$(<"$DIR/json")" \
        '^\{"until":"20[0-9-]{8}T[0-9:.]{12}Z","left_ms":3[56][0-9]{5},"fence":[0-9]{16}\}$'
    rlock hold -k "$KEY:2" --for 1h --slots 2 --json >"$DIR/json"
    assert_match "$(<"$DIR/json")" ',"slot":0\}$'
    run -0 rlock hold -k "$KEY:3" --for 1h --slots 2
    assert_match "$output" '    slot     0'
}

@test "the command printed to end the hold names the server if -u did, without the password" {
    redis_start own --requirepass s3cr3t
    run -0 rlock hold -k 'a b' --for 1h -u "redis://:s3cr3t@127.0.0.1:$REDIS_PORT"
    assert_eq "${lines[2]}" "    to end   rlock release -u redis://127.0.0.1:$REDIS_PORT -k 'a b'"
    redis_use redis
}

# ---- how hold waits ----

@test "hold ends with 75 if the lock is taken and -n or -w is given, and a signal ends its wait" {
    hold first -k "$KEY"
    run -75 --separate-stderr rlock hold -k "$KEY" --for 1h -n
    assert_line 'busy: held for'
    run -9 --separate-stderr rlock hold -k "$KEY" --for 1h -w 2 -E 9
    assert_line 'timeout: after'
    start ann "$RLOCK" hold -k "$KEY" --for 1h
    eventually 5 in_line 1
    kill -INT "$pid"
    ended 130 ann
    in_line 0
    [[ -z $(hold_files) ]]
}

# ---- release and renew find the token ----

@test "release finds the token of a hold, frees the lock and removes the file" {
    rlock hold -k "$KEY" --for 1h >/dev/null
    run -0 --separate-stderr rlock release -k "$KEY"
    assert_eq "$output$stderr" ""
    gone "$KEY"
    [[ -z $(hold_files) ]]
    run -64 --separate-stderr rlock release -k "$KEY"
    assert_line 'usage: no token: set RLOCK_TOKEN, .* or take the lock by rlock hold'
}

stored_until() { head -qn 1 "$RLOCK_HOLD_DIR/"* | cut -d ' ' -f 2; }

@test "renew lets a hold last for --for from now, or for -t, and never makes it shorter" {
    local until
    rlock hold -k "$KEY" --for 1h >/dev/null
    until=$(stored_until)
    rlock renew -k "$KEY"
    (($(stored_until) >= until)) || fail "the hold ended at $until, and now at $(stored_until)"
    RLOCK_TTL=5s rlock renew -k "$KEY" -t 3h
    assert_between "$(ttl_ms "$KEY")" 10700000 10800000
    rlock renew -k "$KEY" -t 1m
    assert_between "$(ttl_ms "$KEY")" 10700000 10800000
    redis_cli pexpire "$KEY" 60000
    RLOCK_TTL=5s rlock renew -k "$KEY"
    assert_between "$(ttl_ms "$KEY")" 10700000 10800000
    run -75 --separate-stderr rlock hold -k "$KEY" --for 1h
    rlock status -k "$KEY" >"$DIR/status" || :
    assert_line "busy: you hold it already, until $WHEN"
    grep -q 'in 2h59m' "$DIR/status"
}

@test "release ends the hold of the given key on the given server, and no other hold" {
    local first=$RLOCK_URL
    rlock hold -k "$KEY" --for 1h >/dev/null
    redis_start own
    RLOCK_URL=unix://$REDIS_SOCKET rlock hold -k "$KEY" --for 1h >/dev/null
    RLOCK_URL=unix://$REDIS_SOCKET rlock release -k "$KEY"
    gone "$KEY"
    redis_use redis
    exists "$KEY"
    RLOCK_URL=$first run -64 rlock release -k "$KEY:2"
    RLOCK_URL=$first rlock release -k "$KEY"
}

@test "a second hold of a key says that the user holds it already, and changes nothing" {
    rlock hold -k "$KEY" --for 1h >/dev/null
    unchanged run -75 --separate-stderr rlock hold -k "$KEY" --for 2h
    assert_line "busy: you hold it already, until $WHEN; to end that hold: rlock release -k $KEY"
    assert_eq "$output" ""
    redis_cli pexpire "$KEY" 60000
    unchanged run -75 --separate-stderr rlock hold -k "$KEY:2" -k "$KEY" --for 2h
    assert_between "$(ttl_ms "$KEY")" 1 60000
    assert_line "busy: you hold $KEY already, until $WHEN; to end that hold: rlock release -k $KEY$"
    gone "$KEY:2"
    rlock release -k "$KEY"
}

# ---- a hold that has ended ----

# ended_by WAY: ends the hold of $KEY on the server. The file with its token stays.
ended_by() {
    case $1 in
        break) break_it ;;
        expiry) redis_cli del "$KEY" ;;
        another) redis_cli set "$KEY" other PX 60000 ;;
    esac >/dev/null
}

@test "release and renew say that a hold has ended, remove its file and exit with 76" {
    local way verb
    for way in break expiry another; do
        for verb in release renew; do
            rlock hold -k "$KEY" --for 1h >/dev/null
            ended_by "$way"
            unchanged run -76 --separate-stderr rlock "$verb" -k "$KEY"
            assert_line "not-yours: your hold, which was to last until $WHEN, has ended early: "
            [[ -z $(hold_files) ]]
            redis_cli flushall >/dev/null
        done
    done
}

@test "release says that the time of a hold is over; with --quiet-if-gone it says nothing" {
    rlock hold -k "$KEY" --for 1 >/dev/null
    eventually 5 gone "$KEY"
    run -76 --separate-stderr rlock release -k "$KEY"
    assert_line "not-yours: your hold has ended at $WHEN, when its time was over"
    rlock hold -k "$KEY" --for 1 >/dev/null
    eventually 5 gone "$KEY"
    run -0 --separate-stderr rlock release -k "$KEY" --quiet-if-gone
    assert_eq "$stderr" ""
    [[ -z $(hold_files) ]]
}

# ---- failures of hold ----

@test "if the token or the result can't be written, hold gives the lock back and exits with 71" {
    # shellcheck disable=SC2016
    run -71 bash -c '(ulimit -f 0; exec "$RLOCK" hold -k "$KEY" --for 1h) 2>&1 | cat
        exit "${PIPESTATUS[0]}"'
    assert_match "$output" ': system: the token could not be stored .* given back: File too large$'
    gone "$KEY"
    [[ -z $(hold_files) ]]
    # shellcheck disable=SC2016
    run -71 --separate-stderr bash -c 'exec "$RLOCK" hold -k "$KEY" --for 1h >/dev/full'
    assert_line "system: can't write to standard output: No space left"
    gone "$KEY"
    [[ -z $(hold_files) ]]
    # shellcheck disable=SC2016
    run -71 --separate-stderr bash -c 'exec "$RLOCK" hold -k "$KEY" --for 1h --renew >/dev/full'
    gone "$KEY"
    [[ -z $(hold_files) ]]
    alone
}

@test "if nobody reads the result, a signal ends hold, which gives the lock back" {
    local renew
    mkfifo "$DIR/unread"
    exec 7<>"$DIR/unread"
    head -c 65536 /dev/zero >&7
    for renew in '' --renew; do
        # shellcheck disable=SC2016,SC2086
        start unread bash -c 'exec "$RLOCK" hold "$@" >"$DIR/unread"' _ -k "$KEY" --for 1h $renew
        eventually 10 exists "$KEY"
        kill "$pid"
        ended 143 unread
        gone "$KEY"
        [[ -z $(hold_files) ]]
    done
    exec 7>&-
}

# ---- --renew ----

# renewer_of NAME: prints the pid of the process that renews the lease: `rlock hold --renew`, which
# `start NAME` ran, has printed it.
renewer_of() { sed -n 's/^    renewed  by process //p' "$DIR/$1.out"; }
# renewed NAME OPTION...: runs `rlock hold --renew` with a TTL of 3 s; the renewing process stays.
renewed() {
    local name=$1
    shift
    start "$name" "$RLOCK" hold -k "$KEY" --for 1h --renew -t 3 --log "$DIR/log" "$@"
    ended 0 "$name"
    alive "$(renewer_of "$name")"
}

# time_of MEMBER: prints the time in the member MEMBER of the JSON in $output, in ms since 1970.
time_of() { date -d "$(sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$output")" +%s%3N; }

@test "hold --renew: a process without a terminal renews a short lease until release" {
    renewed ann
    assert_eq "$(cut -d')' -f2 "/proc/$(renewer_of ann)/stat" | cut -d' ' -f5)" \
        "$(renewer_of ann)" 'its session'
    never 4 gone "$KEY"
    assert_between "$(ttl_ms "$KEY")" 1 3000
    assert_match "$(rlock status -k "$KEY")" "    until    $WHEN, in 59m5"
    run -75 rlock status -k "$KEY" --json
    (($(time_of renewed_at) > $(time_of since) + 1000)) || fail 'no renewal is told' "$output"
    rlock release -k "$KEY"
    gone "$KEY"
    eventually 10 alone
    assert_match "$(<"$DIR/log")" "rlock: $KEY: released: another process released the lock by "
    [[ -z $(hold_files) ]]
}

@test "hold --renew: TERM and INT to the renewing process release the lock and remove the file" {
    local signal
    for signal in TERM INT; do
        renewed ann
        kill -"$signal" "$(renewer_of ann)"
        eventually 5 gone "$KEY"
        eventually 5 alone
        [[ -z $(hold_files) ]]
        assert_match "$(<"$DIR/log")" "rlock: $KEY: ended: a signal has ended the hold$"
        rm "$DIR/log"
    done
}

@test "hold --renew: when the time is over, the renewing process releases the lock and says so" {
    start ann "$RLOCK" hold -k "$KEY" --for 2 --renew --log "$DIR/log"
    ended 0 ann
    eventually 10 alone
    gone "$KEY"
    assert_match "$(<"$DIR/log")" "^$WHEN rlock: $KEY: ended: the time of the hold is over$"
    [[ -z $(hold_files) ]]
}

@test "renew refuses a hold that a process renews with 64, and changes nothing" {
    renewed ann
    run -64 --separate-stderr rlock renew -k "$KEY" -t 2h
    assert_line 'usage: a process renews this hold until the hold.s end'
    assert_between "$(ttl_ms "$KEY")" 1 3000
    rlock release -k "$KEY"
}

# ---- other locks and servers ----

@test "hold -s holds a shared lock, beside others that share it" {
    hold first -k "$KEY" -s
    rlock hold -k "$KEY" -s --for 1h >/dev/null
    run -75 --separate-stderr rlock hold -k "$KEY" -s --for 1h
    assert_line 'busy: you hold it already'
    let_go first
    assert_between "$(ttl_ms "$KEY")" 3500000 3600000
    rlock release -k "$KEY"
    gone "$KEY"
}
