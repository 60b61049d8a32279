#!/usr/bin/env bats
# evalsha: rlock sends the digest of a script (EVALSHA), and the script itself (EVAL) only to a
# server that doesn't know it. Whenever a server forgets its scripts, each of them costs one request
# more, and no exit status changes.

load ../helpers/common
load ../helpers/fake
load ../helpers/sentinel
load ../helpers/cluster

setup() { common_setup; }
teardown() { common_teardown; }

NOW=1700000000000 FENCE=1700000000000000
GRANT="*3\\r\\n:1\\r\\n:$NOW\\r\\n\$16\\r\\n$FENCE\\r\\n"
NOSCRIPT='-NOSCRIPT No matching script. Please use EVAL.\r\n'
# The scripted server accepts a connection, and replies that it knows no script.
FIRST_UNKNOWN="ACCEPT
EXPECT EVALSHA
SEND $NOSCRIPT"

serve() {
    redis_start "$@"
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}

forget_scripts() { redis_cli script flush >/dev/null; }

# count COMMAND: prints how often the server has carried out or refused the command.
count() {
    redis_cli info commandstats | tr -d '\r' |
        awk -F '[=,]' -v name="cmdstat_$1:calls" '$1 == name { n = $2 } END { print n + 0 }'
}

# assert_each_once WHAT MOST: checks that rlock has sent the text of at least one and at most MOST
# scripts, none of them twice.
assert_each_once() {
    local twice
    assert_between "$(count eval)" 1 "$2" "scripts that were sent: $1"
    twice=$(grep -av ' lua\]' "$WATCHED" | grep -aoE '"EVAL" "([^"\\]|\\.)*"' |
        sort | uniq -d | wc -l)
    assert_eq "$twice" 0 "scripts that were sent twice: $1"
}

# watch: resets the server's statistics, and starts a MONITOR that writes the requests to the file
# WATCHED. Each call has a new file, because the MONITOR of an earlier call still writes to its own.
watch() {
    redis_cli config resetstat >/dev/null
    WATCHED=$(mktemp "$DIR/monitor.XXXXXX")
    redis_monitor "$WATCHED"
}

renewed() { (($(redis_cli pttl "$KEY") > $1)); }
# is_renewed TTL: waits for a renewal of the lock, whose TTL is TTL s.
is_renewed() {
    redis_cli pexpire "$KEY" $(($1 * 600)) >/dev/null
    eventually "$1" renewed $(($1 * 700))
}
# hold_and_wait TTL: starts a holder, and a waiter, which ends with status 5. Both have this TTL.
hold_and_wait() {
    hold holder -t "$1" -k "$KEY"
    start waiter "$RLOCK" -w 60 -t "$1" -k "$KEY" -- sh -c 'exit 5'
    eventually 5 in_queue 1
}
# assert_both_go_on TTL WHAT: checks that the holder renews its lease and ends with its own status,
# that the waiter runs then, and that the server got each of the three scripts once since `watch`.
assert_both_go_on() {
    is_renewed "$1"
    let_go holder 7
    assert_status 7
    finish waiter 30
    assert_status 5
    assert_each_once "$2" 3
}
in_queue() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }

# ---- how many bytes a run sends ----

# The command is also run by rlock's command, so it is one for sh.
received() { sh -c "$(received_command)"; }
received_command() {
    echo "$(asking) info stats | tr -d '\r' | sed -n 's/^total_net_input_bytes://p'"
}

@test "a run on a server that knows the scripts sends at most 1,500 bytes, 1,400 in a request" {
    local before info after mode acquire release
    serve
    redis_load_scripts
    for mode in -x -s --slots=3; do
        before=$(received)
        info=$(($(received) - before)) # bytes that one call of `received` sends
        before=$(received)
        run -0 --separate-stderr rlock "$mode" -k "backup:$KEY" -- \
            sh -c "$(received_command)"
        after=$(received)
        acquire=$((output - before - info)) release=$((after - output - info))
        assert_between "$acquire" 200 1400 "bytes that the acquire sent: $mode"
        assert_between "$release" 200 1400 "bytes that the release sent: $mode"
        assert_between $((acquire + release)) 400 1500 "bytes that the run sent: $mode"
    done
}

# ---- one request more for each script ----

# costs WHAT STATUS WORD...: checks that rlock with these words ends with STATUS on a server that
# has forgotten its scripts, that it then sends the text of each script once, and that it sends no
# text to a server that knows them. `again` is called before each of the two runs.
costs() {
    local what=$1 wanted=$2
    shift 2
    again
    forget_scripts
    watch
    run "-$wanted" rlock "$@"
    assert_each_once "$what" 2
    again
    redis_cli config resetstat >/dev/null
    run "-$wanted" rlock "$@"
    assert_eq "$(count eval)" 0 "scripts that were sent again: $what"
    assert_between "$(count evalsha)" 1 20 "scripts that were called: $what"
}

@test "after SCRIPT FLUSH each verb sends its script once more, and ends as before" {
    local token=0123456789abcdef0123456789abcdef
    serve
    again() { redis_cli del "$KEY" >/dev/null; }
    costs run 7 -k "$KEY" -- sh -c 'exit 7'
    costs acquire 0 acquire -k "$KEY"
    costs 'status of a free lock' 0 status -k "$KEY"
    costs list 0 list
    costs 'a timestamp lock' 7 --protocol timestamp -k "$KEY:time" -- sh -c 'exit 7'
    again() { redis_cli set "$KEY" "$token v1 try=1 ttl=9000 host=h" px 9000 >/dev/null; }
    costs 'a busy lock' 75 -n -k "$KEY" -- true
    costs status 75 status -k "$KEY"
    RLOCK_TOKEN=$token costs renew 0 renew -k "$KEY"
    RLOCK_TOKEN=$token costs release 0 release -k "$KEY"
    costs break 0 break -k "$KEY" --yes
}

@test "SCRIPT FLUSH during a hold and a wait: renewal, release and the waiter's grant succeed" {
    serve
    hold_and_wait 6
    is_renewed 6
    forget_scripts
    watch
    assert_both_go_on 6 'during a hold and a wait'
    assert_eq "$(cat "$DIR"/{holder,waiter}.err)" '' 'messages of both'
}

@test "SCRIPT FLUSH again and again while workers take turns: no turn fails, none overlaps" {
    local each flusher turns=15
    serve
    work() {
        local turn
        for ((turn = 0; turn < turns; turn++)); do
            "$RLOCK" -w 60 -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$1" || echo "status $?" >&2
        done
    }
    for each in 1 2 3 4; do start "w$each" work "w$each"; done
    flush_often() { until [[ -e $DIR/still ]]; do forget_scripts; done; }
    start flusher flush_often
    for each in 1 2 3 4; do
        finish "w$each" 60
        assert_eq "$stderr" '' "messages of worker $each"
    done
    touch "$DIR/still"
    finish flusher
    assert_eq "$(<"$DIR/sum")" $((4 * turns)) 'turns'
}

@test "a server is restarted during a hold and a wait: it gets each script once, no lock is lost" {
    serve redis --appendonly yes --appendfsync always
    hold_and_wait 12
    redis_crash
    redis_restart
    watch
    assert_both_go_on 12 'after a restart'
}

@test "after a failover the new primary gets the scripts once, and holder and waiter go on" {
    sentinel_start 1
    export RLOCK_URL=redis+sentinel://$SENTINELS/main
    server_at "$(primary_of 1)"
    hold_and_wait 12
    is_renewed 12
    run -0 redis_cli wait 1 5000
    redis_crash
    sentinel_fail_over "$REDIS_PORT"
    server_at "$(primary_of 1)"
    # Before version 7, Redis sends scripts to replicas: the new primary may have got them already.
    forget_scripts
    watch
    assert_both_go_on 12 'after a failover'
}

@test "a slot that moves: the new primary gets the scripts once, and holder and waiter go on" {
    local slot owner other
    cluster_start 2
    slot=$(slot_of "$KEY") owner=$(owner_of "$slot")
    other=$((3 - owner))
    node "$owner"
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    hold_and_wait 12
    node "$other"
    forget_scripts
    watch
    slot_move "$slot" "$owner" "$other"
    node "$other"
    assert_both_go_on 12 'after the slot has moved'
}

# ---- connections that end between NOSCRIPT and EVAL ----

@test "a connection that is closed between NOSCRIPT and EVAL: rlock sends the request again" {
    fake_start <<END
$FIRST_UNKNOWN
CLOSE
ACCEPT
READ
SEND $GRANT
EXPECT EVALSHA
SEND $NOSCRIPT
RESET
ACCEPT
READ
SEND :1\r\n
END
    run -7 --separate-stderr rlock -u "redis://127.0.0.1:$FAKE_PORT" -k "$KEY" -- sh -c 'exit 7'
    assert_eq "$stderr" ''
    fake_end || fail "rlock didn't follow the fake server's script:" "$(fake_log)"
    assert_status 0
    # If rlock notices the close before it sends EVAL, it sends EVAL on the new connection. If rlock
    # notices the close afterwards, it begins with EVALSHA again.
    assert_eq "$(fake_log | grep -c 'GOT EVAL')" 4 'requests'
}

@test "a connection that is reset after EVAL was sent: rlock asks again, and ends as usual" {
    fake_start <<END
$FIRST_UNKNOWN
EXPECT EVAL
RESET
ACCEPT
EXPECT EVALSHA
SEND $GRANT
EXPECT EVALSHA
SEND $NOSCRIPT
EXPECT EVAL
RESET
ACCEPT
EXPECT EVALSHA
SEND :1\r\n
END
    run -7 --separate-stderr rlock -u "redis://127.0.0.1:$FAKE_PORT" -k "$KEY" -- sh -c 'exit 7'
    assert_eq "$stderr" ''
    fake_end || fail "rlock didn't follow the fake server's script:" "$(fake_log)"
    assert_status 0
    assert_eq "$(fake_log | grep -c 'GOT EVAL ')" 2 'scripts that were sent'
}

@test "CLIENT KILL again and again on a server that forgets its scripts: no status changes" {
    local each turn turns=15
    serve
    kill_often() {
        until [[ -e $DIR/still ]]; do
            redis_cli script flush >/dev/null
            redis_cli client kill type normal >/dev/null
        done
    }
    start killer kill_often
    for ((turn = 0; turn < turns; turn++)); do
        run -7 --separate-stderr rlock -w 30 -k "$KEY" -- sh -c 'exit 7'
    done
    touch "$DIR/still"
    finish killer
    gone "$KEY"
}

# ---- requests whose NOSCRIPT nobody would read ----

@test "a release that gets no reply in time: before rlock closes the connection it sends EVAL" {
    fake_start <<END
ACCEPT
EXPECT EVALSHA
SEND $GRANT
EXPECT EVALSHA
EXPECT EVAL
ACCEPT
EXPECT EVALSHA
SEND :0\r\n
END
    run -7 --separate-stderr rlock -u "redis://127.0.0.1:$FAKE_PORT" -t 3 -k "$KEY" -- \
        sh -c 'exit 7'
    fake_end || fail "rlock didn't follow the fake server's script:" "$(fake_log)"
    assert_status 0
    assert_eq "$(fake_log | grep -oE 'GOT EVAL(SHA)?' | tr '\n' ' ')" \
        'GOT EVALSHA GOT EVALSHA GOT EVAL GOT EVALSHA ' 'requests'
}

@test "a quorum's release reaches a member that answers late and doesn't know the script" {
    local urls each
    load ../helpers/quorum
    quorum_start 3
    quorum_is_old 9
    line_start "$(on 3 eval 'echo $REDIS_PORT')"
    read -ra urls <<<"$(quorum_urls 1 2)"
    export RLOCK_URL="${urls[*]} redis://127.0.0.1:$LINE_PORT"
    hold holder -t 9 -k "$KEY"
    eventually 5 on 3 exists "$KEY"
    for each in 1 2 3; do on "$each" forget_scripts; done
    # Once a majority has replied, rlock waits at most 100 ms for this member.
    line delay 500
    let_go holder 7
    assert_status 7
    eventually 4 on 3 gone "$KEY"
    assert_no_locks
}
