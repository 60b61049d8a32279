#!/usr/bin/env bats
# progress: the line on the terminal that shows whom rlock waits for, and the messages elsewhere.

load ../helpers/common
load ../helpers/pty

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET LC_ALL=C
    redis_cli flushall >/dev/null
    # A short key and command name, because the terminal has only 80 columns.
    KEY=k$BATS_TEST_NUMBER
    pty_start
}

taken() { redis_cli set "$KEY" other PX 600000 >/dev/null; }
# type_key KEY: sets KEY here and in the shell on the terminal.
type_key() {
    KEY=$1
    printf '%s' "$KEY" >"$DIR/key"
    pty_type 'KEY=$(<"$DIR/key")'
    pty_prompt
}

free() { redis_cli del "$KEY" >/dev/null; }
waits() { redis_cli client list | grep -Eq 'cmd=blpop '; }
in_line() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }

# drawn: prints each state of the line. The last one may be incomplete.
drawn() { pty_states | grep -a '^rlock: .*: waiting ' || :; }
last_drawn() { drawn | tail -n 2 | head -n 1; }
last_is() { [[ $(last_drawn) =~ $1 ]]; }
assert_none_drawn() { assert_eq "$(drawn)" '' 'what was drawn'; }
assert_cleared() { refute_match "$(pty_rows)" 'waiting' 'the screen'; }

@test "the progress line shows holder, time and place in the queue, and is drawn each second" {
    hold holder -k "$KEY" -t 60 --label 'spring cleaning'
    start first "$RLOCK" -k "$KEY" -- true
    eventually 5 in_line 1
    # rlock is second in the queue, and asks the server only every 2.5 s
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 0s, .*, for sh of '
    pty_expect 15 'waiting ([4-9]|[0-9]{2,})s'
    (($(drawn | grep -o 'waiting [0-4]s' | sort -u | wc -l) >= 2)) || fail "$(drawn)"
    assert_match "$(last_drawn)" \
        "^rlock: $KEY: waiting [0-9]+s, place 2, (1m00|[45][0-9])s left, for sh of "
    assert_eq "$(pty_rows | grep -c waiting)" 1 'rows'
    pty_resize 200 # so wide that nothing is cut
    eventually 5 last_is "for sh of [^ ]+@[^ ]+, pid $(<"$DIR/pids/holder") \(spring cleaning\)$"
    let_go holder
    pty_prompt
}

@test "the progress line is cleared when the command starts" {
    taken
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 0s, .*, for another program \("other"'
    free
    pty_expect 5 $'done\r'
    pty_prompt
    assert_cleared
    assert_match "$(pty_rows)" $'\ndone\n' 'the screen'
}

@test "the progress line is cleared before the message of a timeout or a fault" {
    # a key that never expires, so that the drawn line is longer than the message
    redis_cli set "$KEY" other >/dev/null
    pty_type 'rlock -k "$KEY" -w 0.3 -- true'
    pty_expect 5 'waiting 0s, .*, for '
    pty_prompt
    assert_cleared
    assert_match "$(pty_rows)" \
        $'\n'"rlock: $KEY: timeout: after [0-9.]+s: held by .*; never expires"$'\n' 'the screen'
    pty_type 'rlock -k "$KEY" -- true'
    pty_expect 5 'waiting 0s, .*, for '
    redis_cli eval 'redis.call("DEL", KEYS[1]) redis.call("RPUSH", KEYS[1], "a")' 1 "$KEY"
    pty_prompt
    assert_cleared
    assert_match "$(pty_rows)" $'\n'"rlock: $KEY: refused: " 'the screen'
}

@test "the progress line is cut to the width, also after a resize; the last column stays free" {
    local label
    label=$(printf '%0150d' 7)
    type_key "$KEY:$(printf '%0200d' 7)"
    hold holder -k "$KEY" -t 60 --label "$label"
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 1s'
    eventually 10 last_fits 70 79
    eventually 5 last_is '^rlock: k[^ ]*\.\.\.: waiting [0-9]+s, place 1, .*\.\.\.$'
    pty_resize 61
    eventually 10 last_fits 50 60
    assert_eq "$(pty_rows | grep -c 'waiting')" 1 'rows'
    let_go holder
    pty_expect 5 $'done\r'
    assert_cleared
}

# last_fits LOW HIGH: true if the row that was drawn last has so many columns.
last_fits() {
    local columns
    columns=$(last_drawn | awk '{ print length }')
    (($1 <= columns && columns <= $2))
}

@test "key, value and holder of other programs reach the terminal as printable ASCII only" {
    local value odd=$'\e[2J\e]0;title\a\n\r\x9b31m\x7f"\\caf\xc3\xa9'
    type_key "$KEY:$odd:"
    local card='host=%1b[2J pid=1%0a2 user=%9b%00x command=%0d%0a label=caf%C3%A9%E2%80%AE'
    for value in "$odd" "$(printf '%065536d' 7 | tr 07 "$odd")" \
        "$(printf '%032d' 0) v1 try=1 $card since=1" \
        "$(printf '%032d' 0) v1 try=1 host=$odd label=$odd"; do
        printf '%s' "$value" | redis_cli -x setex "$KEY" 600 >/dev/null
        pty_type 'rlock -k "$KEY" -- echo done'
        pty_expect 5 'waiting 0s, .*, for '
        free
        pty_expect 5 $'done\r'
        pty_prompt
    done
    assert_eq "$(pty_states | LC_ALL=C tr -d '\n\40-\176' | od -An -c)" '' \
        'bytes on the screen that are not printable'
    (($(drawn | wc -l) >= 4)) || fail "the line was not drawn 4 times"
    eventually 10 last_fits 60 79
    pty_resize 200
    hold holder -k "$KEY" -t 60 --label $'caf\xc3\xa9 \e[2J'
    pty_type 'rlock -k "$KEY" -- true'
    pty_expect 5 '\(caf\\xc3\\xa9 \\x1b\[2J\)'
    let_go holder
    pty_prompt
}

# ---- signals while the line is drawn ----

@test "^C clears the progress line, and ends rlock by INT" {
    taken
    pty_type 'rlock -k "$KEY" -- true'
    pty_expect 5 'waiting 0s, .*, for '
    pty_key C-c
    pty_prompt
    pty_type 'echo "status $?."'
    pty_expect 5 'status 130\.'
    assert_cleared
    in_line 0
}

@test "^Z clears the progress line, fg draws it again, and in the background none is drawn" {
    taken
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 0s, .*, for '
    pty_key C-z
    pty_expect 5 'Stopped'
    pty_prompt
    assert_cleared
    pty_type 'bg'
    pty_prompt
    eventually 5 in_line 1
    never 1 pty_matches 'waiting'
    pty_type 'fg'
    pty_expect 5 'waiting [0-9]+s, .*, for '
    free
    pty_expect 5 $'done\r'
    pty_prompt
    assert_cleared
}

@test "an rlock started in the background draws the progress line only after fg" {
    taken
    pty_type 'rlock -k "$KEY" -- echo done &'
    pty_prompt
    eventually 5 in_line 1
    never 1 pty_matches 'waiting'
    pty_type 'fg'
    pty_expect 5 'waiting [0-9]+s, .*, for '
    free
    pty_expect 5 $'done\r'
    pty_prompt
    assert_cleared
}

# bats test_tags=long
@test "a terminal that ^S has stopped doesn't delay rlock when it is granted the lock" {
    taken
    pty_type 'rlock -k "$KEY" -- touch "$DIR/ran"'
    pty_expect 5 'waiting 1s, .*, for '
    pty_key C-s
    never 2 pty_matches 'waiting 9s' # rlock goes on drawing, but the terminal takes nothing
    free
    eventually 5 test -e "$DIR/ran"
    pty_key C-q
    pty_prompt
}

# ---- where no line is drawn ----

@test "no progress line is drawn with -q, --json or -v, nor if stderr isn't the terminal" {
    local words
    taken
    for words in '-q' '--json' '-v' '-v --json' '2>"$DIR/err"' '2>&1 | cat'; do
        pty_type "rlock -k \"\$KEY\" -c true $words"
        eventually 5 waits
        free
        pty_prompt
        taken
    done
    assert_none_drawn_in_place
    [[ ! -s $DIR/err ]] || fail "rlock wrote to stderr: $(<"$DIR/err")"
}
assert_none_drawn_in_place() {
    refute_match "$(pty_states)" ': waiting [0-9]' 'the screen'
}

@test "-v reports the begin of the wait once, as text or as JSON" {
    hold holder -k "$KEY" -t 60 --label nightly
    start text "$RLOCK" -v -k "$KEY" -- true
    start json "$RLOCK" -v --json -k "$KEY" -- true
    start none "$RLOCK" -k "$KEY" -- true
    local why='place [0-9]: held for [0-9]+s by sh of .*\(nightly\)'
    eventually 5 file_has "$DIR/text.err" "^rlock: $KEY: waiting: $why \([0-9]\.[0-9]* s\)$"
    eventually 5 file_has "$DIR/json.err" \
        "^\{\"event\":\"waiting\",.*\"key\":\"$KEY\",.*\"why\":\"$why\"\}$"
    eventually 5 in_line 3
    never 1 file_has "$DIR/none.err" .
    let_go holder
    for each in text json none; do
        finish "$each"
        assert_status 0
        ((${#stderr} == 0)) || assert_eq "$(grep -c waiting <<<"$stderr")" 1 'messages'
    done
}

# ---- a server that can't be reached ----

# own_server: starts a server for this test, which may kill it.
own_server() {
    redis_start own
    export RLOCK_URL=unix://$REDIS_SOCKET
    taken
}

@test "the progress line shows an unreachable server; that and its return are reported once" {
    own_server
    pty_type "RLOCK_URL=$RLOCK_URL"
    pty_prompt
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 0s, .*, for '
    redis_crash
    pty_expect 10 "server-unreachable: for [1-9][0-9]*s: .*; still trying"
    pty_expect 10 'waiting [0-9]+s, server unreachable for [0-9]+s: '
    redis_restart
    pty_expect 10 'server-back: after [0-9]+s'
    pty_expect 5 $'done\r'
    pty_prompt
    assert_cleared
    assert_eq "$(grep -ac 'server-unreachable' "$DIR/screen")" 1 'messages'
}

@test "without a terminal an unreachable server and its return are reported, but not with -q" {
    own_server
    start waiter "$RLOCK" -k "$KEY" -- true
    start json "$RLOCK" --json -k "$KEY" -- true
    start quiet "$RLOCK" -q -k "$KEY" -- true
    eventually 5 in_line 3
    redis_crash
    eventually 10 file_has "$DIR/waiter.err" \
        "^rlock: $KEY: server-unreachable: for [0-9]+s: .*/socket: connect: .*; still trying$"
    eventually 10 file_has "$DIR/json.err" '^\{"event":"server-unreachable",.*"why":"for '
    redis_restart
    for each in waiter json quiet; do
        finish "$each"
        assert_status 0
    done
    assert_eq "$(wc -l <"$DIR/waiter.err")" 2 'lines'
    assert_match "$(<"$DIR/waiter.err")" "rlock: $KEY: server-back: after [0-9]+s$"
    assert_eq "$(wc -l <"$DIR/json.err")" 2 'lines of JSON'
    [[ ! -s $DIR/quiet.err ]] || fail "with -q rlock wrote: $(<"$DIR/quiet.err")"
}

@test "if the server dies or hangs, a waiter's timeout message names the server, not the holder" {
    local how
    for how in redis_crash redis_pause; do
        own_server
        start waiter "$RLOCK" -k "$KEY" -w 5 -- true
        eventually 5 in_line 1
        "$how"
        finish waiter 20
        assert_status 75
        assert_match "$(tail -n 1 <<<"$stderr")" \
            "^rlock: $KEY: timeout: after [0-9.]+s: server unreachable for [0-9]+s: .*socket: "
        [[ $how != redis_pause ]] || redis_continue
    done
}
