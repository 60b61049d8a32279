#!/usr/bin/env bats
# replies: whatever a server replies, also nothing, rlock ends with the right status, in time, and
# needs little memory.
#
# Each line of a here-document is a case, with a fakeredis of its own. These cases run at the same
# time, as most of them only wait. With a TTL of 3 s rlock waits 1 s for the reply to an acquire,
# 300 ms for the reply to a renewal.
#
# run: about 60 s

load ../helpers/common
load ../helpers/fake

MEMORY_KIB=16384 # limit of rlock's address space (ulimit -v)

NOW=1700000000000 FENCE=1700000000000000
GRANT="*3\\r\\n:1\\r\\n:$NOW\\r\\n\$16\\r\\n$FENCE\\r\\n"

# fake NAME: starts a fakeredis with the script on stdin, in which `;` and newlines separate steps.
# Unlike fake_start, it can be called several times in a test. Sets FAKE_PORT.
fake() {
    tr ';' '\n' >"$DIR/$1.script"
    start "$1.fake" "$TOOLS/fakeredis" "$DIR/$1.script"
    FAKE_PORT=$(ready_words "$DIR/$1.fake.out")
}

bounded() {
    is_sanitized || ulimit -v "$MEMORY_KIB"
    exec "$@"
}

# ask NAME OPTION... -- COMMAND...: starts rlock with the fakeredis that was started last.
ask() {
    local name=$1
    shift
    start "$name" bounded "$RLOCK" -u "redis://${PASSWORD:+:$PASSWORD@}127.0.0.1:$FAKE_PORT" \
        -k "$KEY:$name" "$@"
}

# assert_ended NAME STATUS_PATTERN [REGEX]: checks that this rlock ends within 6 s, that its status
# matches the pattern, and that its message matches REGEX.
assert_ended() {
    # shellcheck disable=SC2053
    finish "$1" 6 && [[ $status == $2 ]] &&
        assert_match "$stderr" "(^|"$'\n'")rlock: $KEY:$1: ${3:-[a-z-]+: }" ||
        fail "case $1: status is ${status:-not known}, wanted $2" "stderr: ${stderr:-}"
}

# assert_all_ended REGEX NAME:STATUS_PATTERN...: calls assert_ended for each NAME, and prints all
# that fail.
assert_all_ended() {
    local regex=$1 case n_failed=0
    shift
    for case; do
        assert_ended "${case%:*}" "${case#*:}" "$regex" || n_failed=$((n_failed + 1))
    done
    assert_eq "$n_failed" 0 'number of failed cases'
}

# assert_each OPTIONS <<'END': reads a line NAME|STATUS|STEPS for each case. In each case a
# fakeredis does the STEPS on each connection, and an rlock with these OPTIONS asks it. Fails unless
# each rlock ends with its STATUS and runs no command.
assert_each() {
    local name wanted steps cases=''
    while IFS='|' read -r name wanted steps; do
        fake "$name" <<<"ACCEPT;$steps;LOOP"
        # shellcheck disable=SC2086
        ask "$name" $1 -- touch "$DIR/ran"
        cases+=" $name:$wanted"
    done
    # shellcheck disable=SC2086
    assert_all_ended '' $cases
    [[ ! -e $DIR/ran ]] || fail 'a command was run'
}

once='-n -t 3 --connect-timeout 1'

# ---- replies to an acquire ----

@test "acquire: huge, endless, malformed and missing replies: status 69 in time, under 16 MB" {
    assert_each "$once" <<'END'
bulk|69|READ;BULK 1073741824;STALL
bulk_that_comes|69|READ;BULK 1073741824;STREAM
error_without_end|69|READ;SEND -ERR ;STREAM
array_of_4294967295|69|READ;SEND *4294967295\r\n;STREAM :1\r\n
array_of_2_to_the_63|69|READ;SEND *9223372036854775807\r\n;STREAM :1\r\n
array_of_65|69|READ;SEND *65\r\n;STREAM :1\r\n
negative_array|69|READ;SEND *-2\r\n;STALL
negative_bulk|69|READ;SEND $-2\r\n;STALL
bulk_of_2_to_the_63|69|READ;SEND $9223372036854775807\r\n;STREAM
depth|69|READ;DEPTH 100;STALL
depth_without_end|69|READ;STREAM *1\r\n
stream|69|READ;STREAM
stream_of_replies|69|READ;STREAM :1\r\n
stream_before_the_request|69|STREAM :1\r\n
noise|69|READ;GARBAGE 100000;STALL
nothing|69|READ;STALL
not_even_read|69|STALL
half|69|READ;SEND *3\r\n:1\r\n:1700;STALL
half_and_end|69|READ;SEND *3\r\n:1\r\n:1700;CLOSE
half_and_reset|69|READ;SEND *3\r\n:1\r\n:1700;RESET
close|69|CLOSE
close_after_request|69|READ;CLOSE
reset|69|READ;RESET
http|69|READ;SEND HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n;CLOSE
banner|69|SEND 220 mail.example.org ESMTP\r\n;STALL
resp3|69|READ;SEND >2\r\n+invalidate\r\n*0\r\n;STALL
END
}

@test "acquire: a reply of the wrong type or out of range is no grant, status 69" {
    assert_each "$once" <<'END'
integer|69|READ;SEND :1\r\n
text|69|READ;SEND $5\r\nhello\r\n
status|69|READ;SEND +OK\r\n
nil|69|READ;SEND $-1\r\n
nil_array|69|READ;SEND *-1\r\n
empty|69|READ;SEND *0\r\n
short|69|READ;SEND *1\r\n:1\r\n
no_fence|69|READ;SEND *2\r\n:1\r\n:1700000000000\r\n
restored|69|READ;SEND *2\r\n:2\r\n:1700000000000\r\n
nested|69|READ;SEND *3\r\n:1\r\n*1\r\n:1\r\n$1\r\n5\r\n
texts|69|READ;SEND *3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n5\r\n
fence_is_integer|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n:5\r\n
fence_is_nil|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n$-1\r\n
fence_is_zero|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n$1\r\n0\r\n
fence_is_negative|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n$2\r\n-5\r\n
fence_with_rubbish|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n$2\r\n5x\r\n
fence_too_great|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n$20\r\n18446744073709551616\r\n
fence_with_nul|69|READ;SEND *3\r\n:1\r\n:1700000000000\r\n$3\r\n5\x00x\r\n
unknown_code|69|READ;SEND *2\r\n:9\r\n:1700000000000\r\n
gone|69|READ;SEND *2\r\n:-1\r\n:1700000000000\r\n
held_by_nil|69|READ;SEND *7\r\n:0\r\n:9\r\n:5\r\n$-1\r\n:5\r\n$1\r\n0\r\n:0\r\n
held_short|69|READ;SEND *2\r\n:0\r\n:9\r\n
held_without_time|69|READ;SEND *7\r\n:0\r\n:9\r\n$1\r\n5\r\n$1\r\nx\r\n:5\r\n$1\r\n0\r\n:0\r\n
held_without_wait|69|READ;SEND *4\r\n:0\r\n:9\r\n:5\r\n$1\r\nx\r\n
held_for_text|69|READ;SEND *7\r\n:0\r\n:9\r\n:5\r\n$1\r\nx\r\n$1\r\n5\r\n$1\r\n0\r\n:0\r\n
held_for_ever|69|READ;SEND *7\r\n:0\r\n:9\r\n:5\r\n$1\r\nx\r\n:60001\r\n$1\r\n0\r\n:0\r\n
held_ticket_is_nil|69|READ;SEND *7\r\n:0\r\n:9\r\n:5\r\n$1\r\nx\r\n:5\r\n$-1\r\n:0\r\n
held_place_is_text|69|READ;SEND *7\r\n:0\r\n:9\r\n:5\r\n$1\r\nx\r\n:5\r\n$1\r\n0\r\n$1\r\n0\r\n
granted_twice|69|READ;SEND *3\r\n:1\r\n:1\r\n$1\r\n5\r\n*3\r\n:1\r\n:1\r\n$1\r\n5\r\n
END
}

# rlock may take such a reply for valid and end with 75, or refuse it and end with 69, but rlock
# must not crash.
@test "acquire: a reply that the lock is held, with times out of range, crashes nothing" {
    local held='*7\r\n:0\r\n:%s\r\n:%s\r\n$1\r\nx\r\n:%s\r\n$1\r\n%s\r\n:%s\r\n'
    local least=-9223372036854775808 most=9223372036854775807
    held=${held//'\'/'\\'}
    # The second READ is for the BLPOP of the waiter, and *-1 says that it was not woken.
    # shellcheck disable=SC2059
    assert_each "-w 1 -t 3 --connect-timeout 1" <<END
least|[67][59]|READ;SEND $(printf "$held" $least $least 0 0 $least);READ;STALL 20;SEND *-1\r\n
most|[67][59]|READ;SEND $(printf "$held" $most $most 60000 9 $most);READ;STALL 1000;SEND *-1\r\n
wait_too_short|[67][59]|READ;SEND $(printf "$held" $least $least $least 9 1)
wait_too_long|[67][59]|READ;SEND $(printf "$held" $most $most $most 9 1)
END
}

# None of these errors makes rlock ask again, so no case takes long.
@test "acquire: each error reply of a server leads to its exit status" {
    local in_script='ERR Error running script (call to f_0123456789abcdef): @user_script:9: -'
    assert_each "$once" <<END
loading|69|READ;SEND -LOADING Redis is loading the dataset in memory\r\n;STALL
busy|69|READ;SEND -BUSY Redis is busy running a script.\r\n;STALL
oom|69|READ;SEND -OOM command not allowed when used memory > 'maxmemory'.\r\n;STALL
misconf|69|READ;SEND -MISCONF Redis is configured to save RDB snapshots\r\n;STALL
readonly|69|READ;SEND -READONLY You can't write against a read only replica.\r\n;STALL
masterdown|69|READ;SEND -MASTERDOWN Link with MASTER is down\r\n;STALL
noreplicas|69|READ;SEND -NOREPLICAS Not enough good replicas to write.\r\n;STALL
clusterdown|69|READ;SEND -CLUSTERDOWN The cluster is down\r\n;STALL
tryagain|69|READ;SEND -TRYAGAIN Multiple keys request during rehashing of slot\r\n;STALL
clients|69|READ;SEND -ERR max number of clients reached\r\n;CLOSE
clients_unasked|69|SEND -ERR max number of clients reached\r\n;CLOSE
wrongtype|77|READ;SEND -WRONGTYPE Operation against a key holding the wrong kind\r\n;STALL
noauth|77|READ;SEND -NOAUTH Authentication required.\r\n;STALL
noperm|77|READ;SEND -NOPERM this user has no permissions to run the 'eval' command\r\n;STALL
denied|77|SEND -DENIED Redis is running in protected mode\r\n;STALL
moved_to_nowhere|69|READ;SEND -MOVED 3999 there\r\n;STALL
ask_nobody|69|READ;SEND -ASK 3999 :\r\n;STALL
crossslot|78|READ;SEND -CROSSSLOT Keys in request don't hash to the same slot\r\n;STALL
unknown_command|78|READ;SEND -ERR unknown command 'EVAL', with args beginning with: \r\n;STALL
unknown_error|78|READ;SEND -ERR something else\r\n;STALL
no_error|78|READ;SEND -\r\n;STALL
script_oom|69|READ;SEND -${in_script}OOM command not allowed when used memory\r\n;STALL
script_misconf|69|READ;SEND -${in_script}MISCONF Redis is configured to save\r\n;STALL
script_readonly|69|READ;SEND -${in_script}READONLY You can't write\r\n;STALL
script_wrongtype|77|READ;SEND -${in_script}WRONGTYPE Operation against a key\r\n;STALL
script_noperm|77|READ;SEND -ERR The user executing the script can't run this command\r\n;STALL
script_key|77|READ;SEND -ERR The user can't access at least one of the keys\r\n;STALL
END
}

@test "AUTH: each error reply leads to its exit status, and rlock sends nothing after it" {
    PASSWORD=secret assert_each "$once" <<'END'
wrongpass|77|EXPECT AUTH;SEND -WRONGPASS invalid username-password pair\r\n;READ
invalid|77|EXPECT AUTH;SEND -ERR invalid password\r\n;READ
none_set|77|EXPECT AUTH;SEND -ERR Client sent AUTH, but no password is set\r\n;READ
none_configured|77|EXPECT AUTH;SEND -ERR AUTH called without any password configured\r\n;READ
loading|69|EXPECT AUTH;SEND -LOADING Redis is loading the dataset in memory\r\n;READ
integer|69|EXPECT AUTH;SEND :1\r\n;READ
early_grant|69|EXPECT AUTH;SEND +OK\r\n*3\r\n:1\r\n:1\r\n$1\r\n5\r\n;READ
END
    refute_match "$(cat "$DIR"/*.fake.out)" EVAL
    refute_match "$(cat "$DIR"/*.err)" secret
}

@test "acquire: LOADING and BUSY with --wait: rlock asks again until the server grants the lock" {
    fake later <<<"ACCEPT;READ;SEND -LOADING Redis is loading\\r\\n;READ;SEND -BUSY\\r\\n;READ;
SEND $GRANT;READ;SEND :1\\r\\n"
    ask later -t 3 -w 10 -- sh -c 'exit 7'
    finish later
    assert_status 7
    assert_eq "$stderr" ''
}

# ---- replies while rlock holds the lock ----

# answers STEPS: prints a script that replies to the first request with a grant, and does STEPS for
# each of a hundred more requests, each on a connection of its own.
answers() {
    local i
    echo "ACCEPT;READ;SEND $GRANT"
    for i in {1..100}; do
        echo "READ;$1;ACCEPT"
    done
}

# assert_each_held TTL STATUS REGEX COMMAND... <<'END' NAME|STEPS: starts a fakeredis and an rlock
# for each line. The fakeredis grants the lock, and does STEPS for all later requests. Each rlock
# runs COMMAND, and ends with STATUS and a message that matches.
assert_each_held() {
    local ttl=$1 wanted=$2 regex=$3 name steps cases=''
    shift 3
    while IFS='|' read -r name steps; do
        fake "$name" < <(answers "$steps")
        ask "$name" -t "$ttl" --connect-timeout 1 -- "$@"
        cases+=" $name:$wanted"
    done
    # shellcheck disable=SC2086
    assert_all_ended "$regex" $cases
}

@test "renewal: with each bad reply rlock ends the command, status 76" {
    assert_each_held 1 76 'lost: ' sleep 20 <<'END'
loading|SEND -LOADING Redis is loading the dataset in memory\r\n
readonly|SEND -READONLY You can't write against a read only replica.\r\n
noperm|SEND -NOPERM this user has no permissions to run the 'eval' command\r\n
noauth|SEND -NOAUTH Authentication required.\r\n
wrongtype|SEND -WRONGTYPE Operation against a key holding the wrong kind\r\n
moved|SEND -MOVED 3999 127.0.0.1:6381\r\n
unknown_error|SEND -ERR something else\r\n
held|SEND *4\r\n:0\r\n:1700000000000\r\n:5\r\n$5\r\nother\r\n
superseded|SEND *3\r\n:-3\r\n:1700000000000\r\n$0\r\n\r\n
gone|SEND *2\r\n:-1\r\n:1700000000000\r\n
late|SEND *2\r\n:-2\r\n:1700000000000\r\n
unknown_code|SEND *2\r\n:9\r\n:1700000000000\r\n
integer|SEND :1\r\n
status|SEND +OK\r\n
nil|SEND $-1\r\n
short|SEND *1\r\n:1\r\n
half|SEND *2\r\n:1\r\n;STALL 150
bulk|BULK 1073741824;STREAM
depth|DEPTH 100
stream|STREAM :1\r\n
nothing|STALL
close|CLOSE
END
}

@test "release: with each bad reply rlock says not-released, and its status is the command's" {
    # rlock takes a refusal as final, and tries other errors again for at most 2 s
    assert_each_held 30 7 'not-released: .*; the lock is free when its ttl ends' \
        sh -c 'exit 7' <<'END'
loading|SEND -LOADING Redis is loading the dataset in memory\r\n
readonly|SEND -READONLY You can't write against a read only replica.\r\n
noperm|SEND -NOPERM this user has no permissions to run the 'eval' command\r\n
wrongtype|SEND -WRONGTYPE Operation against a key holding the wrong kind\r\n
array|SEND *1\r\n:1\r\n
unknown_code|SEND :9\r\n
text|SEND $1\r\n1\r\n
half|SEND :1
bulk|BULK 1073741824;STREAM
stream|STREAM :1\r\n
nothing|STALL
close|CLOSE
END
}

# send_unasked NAME: runs rlock with a fakeredis that sends a reply which rlock didn't ask for, when
# the command runs, and so rlock has read the grant. 100 ms after the grant rlock sends the next
# request, CLUSTER NODES. Returns 1 if rlock did so before it could get the reply.
send_unasked() {
    fake "$1" <<<"ACCEPT;READ;SEND $GRANT;AWAIT $DIR/$1.runs;SEND *2\\r\\n:1\\r\\n:$NOW\\r\\n
IDLE;STALL;ACCEPT;READ;SEND *2\\r\\n:1\\r\\n:$NOW\\r\\n;READ;SEND :1\\r\\n"
    ask "$1" -t 3 --kill-after 100ms -- sh -c ": >$DIR/$1.runs; sleep 1.2; exit 7"
    finish "$1"
    file_has "$DIR/$1.fake.out" '^IDLE'
}

@test "a reply that rlock didn't ask for: the next request goes by a new connection" {
    local n=1
    while ! send_unasked "try$n" && ((n < 20)); do n=$((n + 1)); done # on a busy machine try again
    assert_status 7
    assert_eq "$stderr" ''
    assert_match "$(tr '\n' ' ' <"$DIR/try$n.fake.out")" \
        'IDLE CLOSED ACCEPT GOT EVALSHA .*GOT EVALSHA '
}

# ---- real servers ----

try() {
    start try "$RLOCK" -u "${URL:-redis://127.0.0.1:$REDIS_PORT}" -k "$KEY" "$@"
    finish try 15
}

@test "a lock's key of another type: status 77 at once, also with --wait" {
    local wait
    redis_start
    redis_cli rpush "$KEY" a
    for wait in -n '-w 20' ''; do
        # shellcheck disable=SC2086
        try $wait -- true
        assert_status 77
        assert_match "$stderr" "^rlock: $KEY: refused: .*WRONGTYPE"
    done
    assert_eq "$(redis_cli lrange "$KEY" 0 -1)" a
}

@test "a user without the rights for the commands of the scripts: status 77" {
    local rights
    redis_start
    for rights in '~* +eval +get +time' '~* +set' '~other* +@all'; do
        # shellcheck disable=SC2086
        redis_cli acl setuser somebody reset on '>secret' $rights
        URL=redis://somebody:secret@127.0.0.1:$REDIS_PORT try -- true
        assert_status 77
        assert_match "$stderr" "^rlock: $KEY: refused: "
        refute_match "$stderr" secret
    done
    assert_eq "$(redis_cli dbsize)" 0
}

@test "a user without the right to EVALSHA: rlock sends the text of the scripts by EVAL" {
    redis_start
    redis_cli acl setuser somebody on '>secret' '~*' +@all -evalsha
    redis_cli set "$KEY" foreign px 500
    URL=redis://somebody:secret@127.0.0.1:$REDIS_PORT try -w 10 -- sh -c 'exit 7'
    assert_status 7
    assert_eq "$stderr" ''
    assert_match "$(redis_cli acl log)" evalsha
    assert_eq "$(redis_cli exists "$KEY")" 0
}

@test "a server at its maxclients: status 69 with -n; with --wait rlock asks until there is room" {
    redis_start redis --maxclients 1
    start client true
    eventually 5 fills_server
    try -n --connect-timeout 1 -- true
    assert_status 69
    start waiter "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" -w 10 -- sh -c 'exit 7'
    never 1 dead "$pid"
    kill "$(<"$DIR/pids/client")" "$(children "$(<"$DIR/pids/client")")" || :
    finish waiter
    assert_status 7
}

# fills_server: true if `client`, a redis_cli that blocks in BLPOP, has the only connection that the
# server allows. While the server still counts the connection of another redis_cli that has just
# ended, it refuses `client`, which ends: then fills_server starts `client` again.
fills_server() {
    alive "$(<"$DIR/pids/client")" || start client redis_cli blpop "$KEY:none" 0
    alive_and_served
}
alive_and_served() { alive "$(<"$DIR/pids/client")" && has_no_room; }
has_no_room() { [[ $(redis_cli ping 2>&1) != PONG ]]; }

@test "a server that is loading its data: status 69 after --connect-timeout; --wait waits for it" {
    redis_start redis --key-load-delay 1000 --loading-process-events-interval-bytes 1024
    redis_cli eval 'for i = 1, 2000 do redis.call("SET", "filler" .. i, i) end' 0
    redis_cli save
    redis_crash
    start restart redis_restart
    eventually 5 is_loading
    try -n --connect-timeout 1 -- true
    assert_status 69
    assert_match "$stderr" "^rlock: $KEY: unreachable: .*LOADING"
    try -w 10 -- sh -c 'exit 7'
    assert_status 7
    # `start` ran redis_restart in a subshell: read the new REDIS_PID, and stop the server here, as
    # end_all doesn't find it.
    redis_use redis
    redis_stop
}

is_loading() { [[ $(redis_cli ping 2>&1) == LOADING* ]]; }

# start_holder PORT KEY OPTION...: starts rlock with a command that runs until end_holder.
start_holder() {
    mkfifo "$DIR/go"
    start holder "$RLOCK" -u "redis://127.0.0.1:$1" -k "$2" "${@:3}" -- \
        sh -c 'read -r status <"$0"; exit "$status"' "$DIR/go"
    eventually 5 has_key "$2"
}
end_holder() { # end_holder STATUS
    timeout 10 tee "$DIR/go" <<<"$1" >/dev/null
    finish holder
}

@test "a server that runs a script for too long: an acquire gets 69, a holder keeps its lock" {
    redis_start redis --lua-time-limit 50
    start_holder "$REDIS_PORT" "$KEY:held" -t "$(lease 6)" --kill-after 100ms
    start script redis_cli eval 'while true do end' 0
    eventually 5 file_has "$DIR/holder.err" ': renewal-failed: .*BUSY'
    try -n --connect-timeout 1 -- true
    assert_status 69
    assert_match "$stderr" "^rlock: $KEY: unreachable: .*BUSY"
    redis_cli script kill
    eventually 5 file_has "$DIR/holder.err" ': renewed'
    end_holder 7
    assert_status 7
}

@test "a server that runs a script when the command ends: rlock ends, and the release comes later" {
    local before
    redis_start redis --lua-time-limit 50
    mkfifo "$DIR/go"
    # shellcheck disable=SC2016
    start job bash -c '"$@" 2>&1 | cat' "$0" "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" \
        -k "$KEY" -t 60 -- sh -c 'echo held; read -r go <"$0"' "$DIR/go"
    eventually 5 has_key "$KEY"
    start script redis_cli eval 'while true do end' 0
    eventually 5 is_busy
    before=$(now_ms)
    echo >"$DIR/go"
    finish job 8 # `cat` ends when no process has rlock's stderr open any more
    assert_status 0
    is_sanitized ||
        assert_between $(($(now_ms) - before)) 0 $((4000 + $(busy_ms 1000))) 'ms until rlock ended'
    assert_match "$output" 'not-released: .*; the lock is free when its ttl ends, or sooner'
    redis_cli script kill
    eventually 10 hasnt_key "$KEY"
}
is_busy() { [[ $(redis_cli ping 2>&1) == *BUSY* ]]; }
hasnt_key() { ! has_key "$1"; }

has_key() { [[ $(redis_cli exists "$1") == 1 ]]; }

@test "a server that accepts and never replies: status 69 in time, with -n, -w and neither" {
    local name options
    redis_start
    redis_pause
    FAKE_PORT=$REDIS_PORT
    while read -r name options; do
        # shellcheck disable=SC2086
        ask $name -t 3 --connect-timeout 1 $options -- touch "$DIR/ran"
    done <<<$'once -n\nwait -w 1500ms\ndefault'
    assert_all_ended 'unreachable: .*no answer in time' once:69 wait:69 default:69
    [[ ! -e $DIR/ran ]] || fail 'a command was run'
}

@test "after a half-closed connection, or one that passes nothing on, the renewer makes a new one" {
    redis_start
    line_start "$REDIS_PORT"
    start_holder "$LINE_PORT" "$KEY" -v -t "$(lease 3)" --kill-after 100ms
    line half-close
    eventually 5 file_has "$DIR/holder.err" ': renewed'
    refute_match "$(<"$DIR/holder.err")" ': renewal-failed'
    line drop up on
    line drop down on
    eventually 5 file_has "$DIR/holder.err" ': renewal-failed: .*no answer in time'
    line drop up off
    line drop down off
    eventually 5 file_has_after "$DIR/holder.err" ': renewal-failed' ': renewed'
    end_holder 7
    assert_status 7
    assert_match "$stderr" ': renewal-failed.*: renewed.*: released'
}
file_has_after() { sed -n "/$2/,\$p" "$1" | grep -q "$3"; } # file_has_after FILE REGEX REGEX

@test "a server that can't be reached: status 69, and the message says which server and why" {
    local url why
    redis_start
    redis_crash
    touch "$DIR/file"
    while IFS='|' read -r url why; do
        URL=$url try -n --connect-timeout 3 -- true
        assert_status 69
        assert_match "$stderr" "^rlock: $KEY: unreachable: [^"$'\n'"]*${why}[^"$'\n'"]*$" "of $url"
    done <<END
redis://127.0.0.1:$REDIS_PORT|127.0.0.1:$REDIS_PORT: connect: Connection refused
unix://$DIR/missing|missing: connect: No such file or directory
unix://$DIR/file|file: connect: Connection refused
redis://no-such-host.invalid|no-such-host.invalid.*: resolve:
END
}

@test "localhost: rlock tries its addresses until a server replies" {
    redis_start
    URL=redis://localhost:$REDIS_PORT try -n -- sh -c 'exit 7'
    assert_status 7
}
