#!/usr/bin/env bats
# status: who holds a lock and who waits for it, for people and for programs.

load ../helpers/common
load ../helpers/pty

TOKEN=0123456789abcdef0123456789abcdef

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    need python3
    export RLOCK_URL=unix://$REDIS_SOCKET TZ=UTC
    redis_cli flushall >/dev/null
}

in_line() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }

# waiter NAME OPTION...: starts an rlock that waits, and returns when it has joined the queue.
waiter() {
    local before name=$1
    shift
    before=$(redis_cli zcard "{$KEY}:rlock:queue")
    start "$name" "$RLOCK" -k "$KEY" "$@" -- true
    eventually 5 in_line $((before + 1))
}

# told EXPRESSION: prints the Python expression for the output, which is one JSON object, `it`.
told() { python3 -c 'import json, sys; it = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' \
    "$output" "$1"; }

status_of() { run --separate-stderr "$RLOCK" status -k "$KEY" "$@"; }

@test "status: a free lock has status 0, and nothing is left on the server" {
    status_of
    assert_status 0
    assert_eq "$output" "$KEY: free"
    assert_eq "$stderr" ""
    assert_eq "$(redis_cli dbsize)" 0
}

@test "status: it shows the holder, the time left, the fence, and the waiters in their order" {
    hold first -k "$KEY" -t 30 --label 'a b%'
    waiter second --label two
    waiter third
    status_of
    assert_status 75
    assert_eq "$stderr" ""
    assert_match "$output" "^$KEY: held"$'\n'
    assert_match "$output" "holder   sh of $(id -un)@$(uname -n), pid [0-9]+ \(a b%\)"
    assert_match "$output" 'since    20[0-9-]{8}T[0-9:]{8}[+-][0-9:]{5}, for [0-9.]+s'
    assert_match "$output" 'left     (30|2[0-9])s'
    assert_match "$output" "fence    $(env_of first RLOCK_FENCE)"$'\n'
    assert_match "$output" 'waiting  2'$'\n''          1  true of .* \(two\), for [0-9.]+s'$'\n'
    assert_match "$output" $'\n''          2  true of [^()]*, for [0-9.]+s$'
    refute_match "$output" "$(env_of first RLOCK_TOKEN)"
    status_of --json
    assert_status 75
    assert_eq "$(told 'it["key"], it["mode"], it["waiting"], it["fence"]')" \
        "('$KEY', 'exclusive', 2, $(env_of first RLOCK_FENCE))"
    assert_eq "$(told 'it["holders"][0]["pid"], it["holders"][0]["label"]')" \
        "($(<"$DIR/pids/first"), 'a b%')"
    assert_eq "$(told '[w["pid"] for w in it["waiters"]]')" \
        "[$(<"$DIR/pids/second"), $(<"$DIR/pids/third")]"
    assert_eq "$(told '28000 < it["left_ms"] <= 30000')" True
    assert_eq "$(told '0 <= it["holders"][0]["held_ms"] < 9000')" True
    assert_eq "$(told '0 <= it["waiters"][0]["waited_ms"] < 9000')" True
    refute_match "$output" "$(env_of first RLOCK_TOKEN)"
}

@test "status: it shows all holders with their slots, and locks that --once or --min-hold keeps" {
    hold first -k "$KEY" --slots 2 --label one
    hold second -k "$KEY" --slots 2 -t 1m --label two
    waiter third --slots 2
    status_of
    assert_status 75
    assert_match "$output" "^$KEY: held, by slots"$'\n'
    assert_match "$output" '\(one\)'$'\n''    slot     0'$'\n'
    assert_match "$output" '\(two\)'$'\n''    slot     1'$'\n'
    assert_match "$output" 'waiting  1'
    status_of --json
    assert_eq "$(told 'it["mode"], [(h["slot"], h["label"]) for h in it["holders"]]')" \
        "('slots', [(0, 'one'), (1, 'two')])"
    assert_eq "$(told '[h["left_ms"] > 30000 for h in it["holders"]]')" '[False, True]'
    run "$RLOCK" list
    assert_match "$output" 'slots .* \(one\), and 1 more'
    hold shared -k "$KEY:2" -s
    hold shared2 -k "$KEY:2" -s
    run "$RLOCK" status -k "$KEY:2"
    assert_match "$output" 'held, shared'$'\n''.*holder .*holder '
    "$RLOCK" -k "$KEY:done" --once 1m -- true
    run -75 "$RLOCK" status -k "$KEY:done"
    assert_match "$output" "^$KEY:done: done"
    "$RLOCK" -k "$KEY:rest" --min-hold 1m -- true
    run -75 "$RLOCK" status -k "$KEY:rest"
    assert_match "$output" "^$KEY:rest: still taken after its holder has ended"
    run "$RLOCK" list
    assert_eq "$(awk 'NR > 1 { print $2 }' <<<"$output")" slots$'\n'shared$'\n'done$'\n'rest
}

# manual_members: prints the members of a lock and of its holders, without those of `history`.
manual_members() {
    sed '/^\.Cm history/,/^\.El/d' "$ROOT/man/rlock-verbs.1" |
        sed -n '/^\.Sh JSON RESULTS/,/^\.Sh EX/s/^\.It Va //p' | sed 's/ , /\n/g'
}

@test "status and list: of 25 holders 20 are shown, and all are counted" {
    local each
    for each in {1..25}; do
        "$RLOCK" acquire -k "$KEY" -s -t 1m >/dev/null
    done
    status_of
    assert_match "$output" 'holders  5 more'
    status_of --json
    assert_eq "$(told 'len(it["holders"])')" 20 'holders in JSON'
    run "$RLOCK" list
    assert_match "$output" ', and 24 more'
}

@test "status: the members of its JSON are those in the manual" {
    hold first -k "$KEY" --label x --slots 1
    waiter second --label x --slots 1
    redis_cli set "$KEY:foreign" value ex 100
    "$RLOCK" -k "$KEY:done" --once 1m -- true
    "$RLOCK" -k "$KEY:rest" --min-hold 1m -- true
    "$RLOCK" hold -k "$KEY:hold" --for 1m
    run "$RLOCK" status --json -k "$KEY" -k "$KEY:foreign" -k "$KEY:done" -k "$KEY:rest" \
        -k "$KEY:hold"
    # Only the locks of a quorum have `members` and `alike`, only a damaged lock has `wrong`, and
    # only a lock between its release and the grant to the first waiter has `next`.
    assert_eq "$(grep -oE '"[a-z_]+":' <<<"$output" | tr -d '":' | sort -u)" \
        "$(manual_members | sort -u | grep -vxE 'members|alike|wrong|next')"
}

@test "status: it shows the keys in the order given, or all locks; 75 if one is taken" {
    hold first -k "$KEY:b"
    run "$RLOCK" status -k "$KEY:c" -k "$KEY:b" -k "$KEY:a"
    assert_status 75
    assert_eq "$(grep -o '^[^ ].*' <<<"$output")" \
        "$KEY:c: free"$'\n'"$KEY:b: held"$'\n'"$KEY:a: free"
    run "$RLOCK" status -k "$KEY:c" -k "$KEY:a"
    assert_status 0
    run "$RLOCK" status -k "$KEY:c" -k "$KEY:c" -kx{1..100}
    assert_status 0
    assert_eq "$(wc -l <<<"$output")" 102
    hold second -k "$KEY:a"
    redis_cli set "$KEY:not-a-lock" 1
    run "$RLOCK" status
    assert_status 75
    assert_eq "$(grep -o '^[^ ].*' <<<"$output")" "$KEY:a: held"$'\n'"$KEY:b: held"
    let_go first && let_go second
    run "$RLOCK" status
    assert_status 0
    assert_eq "$output" ""
}

@test "status: control and invisible characters are escaped, as text and as JSON" {
    local hidden=$'\u009b31m\u202eabc\u2066\u200f\u200b' shown='\\xc2\\x9b31m\\xe2\\x80\\xaeabc'
    start one "$RLOCK" -k "$KEY" --label "x $hidden é" -- sleep 30
    eventually 5 is_held
    LC_ALL=C status_of
    assert_match "$output" "x $shown"
    status_of --json
    assert_match "$output" 'x \\u009b31m\\u202eabc\\u2066\\u200f\\u200b é'
    assert_eq "$(told 'ascii(it["holders"][0]["label"])')" \
        "'x \\x9b31m\\u202eabc\\u2066\\u200f\\u200b \\xe9'"
    run --separate-stderr "$RLOCK" --json -n -k "$hidden" -- true
    run --separate-stderr "$RLOCK" --json -n -k "$KEY" -- true
    refute_match "$stderr$output" $'[\u009b\u202e]'
}
is_held() { "$RLOCK" status -k "$KEY" >/dev/null; (($? == 75)); }

@test "status: another program's value is escaped, also one of 64 KiB" {
    redis_cli set "$KEY" "$(printf 'a\033[31m\nb\377\\')" ex 100
    status_of
    assert_status 75
    assert_match "$output" "^$KEY: held by another program"$'\n'
    assert_match "$output" 'another program \("a\\x1b\[31m\\x0ab\\xff\\x5c", not written by rlock\)'
    status_of --json
    assert_eq "$(told 'it["mode"], it["value"], it["holders"]')" \
        "('foreign', 'a\\x1b[31m\\nb�\\\\', [])"
    head -c 65536 /dev/urandom | redis_cli -x set "$KEY"
    LC_ALL=C status_of
    assert_status 75
    assert_match "$output" 'left     for ever'
    ((${#output} < 1000)) || fail "the output has ${#output} bytes"
    [[ $(LC_ALL=C tr -d ' -~\n' <<<"$output") == '' ]] || fail "not printable: $output"
    status_of --json
    assert_eq "$(told 'it["left_ms"]')" -1
}

@test "status: holder information that another program forged is harmless" {
    local hostile
    hostile=$'label=%1B[2J%0A%00x host=\e]0;x\a pid=99999999999999999999 since=-1 user=%zz'
    redis_cli set "$KEY" "$TOKEN v1 try=1 $hostile" ex 100
    redis_cli zadd "{$KEY}:rlock:queue" 1e300 a 5 b -7 c
    for each in a b c; do # a heartbeat, so that they count as alive
        redis_cli hset "{$KEY}:rlock:waiters" "$each" "$(($(date +%s) * 1000)) $hostile"
    done
    LC_ALL=C status_of
    assert_status 75
    [[ $(LC_ALL=C tr -d ' -~\n' <<<"$output") == '' ]] || fail "not printable: $output"
    assert_match "$output" 'waiting  3'
    status_of --json
    assert_eq "$(told 'len(it["waiters"]), it["mode"]')" "(3, 'exclusive')"
    redis_cli set "$KEY" "$TOKEN v2 whatever" ex 100
    status_of
    assert_match "$output" 'another program \("v2 whatever", not written by rlock\)'
    status_of --json
    refute_match "$output" "$TOKEN"
}

# bats test_tags=long
@test "status: all live waiters of a long queue are shown in order, and no dead waiters" {
    local i now
    now=$(($(date +%s) * 1000))
    redis_cli set "$KEY" "$TOKEN v1 try=1 host=h since=1" ex 100
    for i in {100..299}; do
        echo "zadd \"{$KEY}:rlock:queue\" $((now + i))000 t$i"
        # Every tenth waiter gets no heartbeat, like a waiter that was killed long ago.
        ((i % 10 == 0)) ||
            echo "hset \"{$KEY}:rlock:waiters\" t$i \"$((now - i % 10 / 9 * 20000)) pid=$i\""
    done | redis_cli >/dev/null
    status_of --json
    assert_eq "$(told '[w["pid"] for w in it["waiters"]]')" \
        "$(python3 -c 'print([i for i in range(100, 300) if i % 10 not in (0, 9)])')"
    assert_eq "$(told 'it["waiting"]')" 160
}

@test "status: a lock that is kept for the first waiter has no holder" {
    redis_cli set "$KEY" "$(printf '0%.0s' {1..32}) v1 try=0 since=1" ex 100
    status_of --json
    assert_status 75
    assert_eq "$(told 'it["mode"], it["holders"]')" "('kept', [])"
    redis_cli set "$KEY" "$TOKEN v1 try=0 host=h since=1" ex 100
    redis_cli zadd "{$KEY}:rlock:queue" 5 "$TOKEN"
    status_of
    assert_match "$output" "^$KEY: free, and kept for the first in the queue"
    refute_match "$output" 'holder'
}

@test "status: it exits with 77 for a key of another type, 64 for an empty key, 69 for no server" {
    redis_cli lpush "$KEY" x
    status_of
    assert_status 77
    assert_line "^rlock: $KEY: refused: .*WRONGTYPE"
    run -64 "$RLOCK" status -k ''
    run -64 "$RLOCK" status "$KEY" "$KEY:2"
    run -64 "$RLOCK" status -k "$KEY" --yes
    run -69 "$RLOCK" status -k "$KEY" -u redis://127.0.0.1:1
}

@test "status: for a malformed reply of the server it writes one line and exits with 69" {
    local answer empty='$0\r\n\r\n'
    load ../helpers/fake
    for answer in ':1' '*0' '*-1' '$-1' '$1000000000' '*4\r\n:1\r\n*0\r\n$1\r\nx\r\n$100\r\n' \
        "*4\r\n:1\r\n*8\r\n:1\r\n:1\r\n$empty:1\r\n:1\r\n:-1\r\n*0\r\n$empty$empty\$0\r\n"; do
        fake_start <<END
ACCEPT
EXPECT EVALSHA
SEND $answer\r\n
CLOSE
END
        run --separate-stderr "$RLOCK" status -k "$KEY" -u "redis://127.0.0.1:$FAKE_PORT"
        assert_status 69
        assert_line '^rlock: .*unreachable: '
        fake_end || :
    done
}

@test "status --watch: without a terminal it prints again when a holder or waiter comes or goes" {
    times() { [[ $(grep -c "^$KEY: $1" "$DIR/watch.out") == "$2" ]]; }
    start watch "$RLOCK" status -k "$KEY" --watch
    eventually 5 times free 1
    hold first -k "$KEY" -t 10
    eventually 5 times held 1
    waiter second
    eventually 5 file_has "$DIR/watch.out" 'waiting  1'
    times held 2
    never 1 times held 3 # renewals and passing time are not shown as changes
    kill "$(<"$DIR/pids/second")"
    eventually 5 times held 3
    let_go first
    eventually 5 times free 2
    kill -TERM "$(<"$DIR/pids/watch")"
    finish watch
    assert_status 143
    assert_eq "$stderr" ""
}

@test "status --watch: an unreachable server is reported once; a closed pipe ends it" {
    redis_start other
    export RLOCK_URL=unix://$REDIS_SOCKET
    start watch "$RLOCK" status -k "$KEY" --watch --json
    eventually 5 file_has "$DIR/watch.out" '"free"'
    redis_crash
    eventually 5 file_has "$DIR/watch.err" unreachable
    redis_restart
    redis_cli set "$KEY" x ex 100
    eventually 5 file_has "$DIR/watch.out" '"foreign"'
    assert_eq "$(wc -l <"$DIR/watch.err")" 1
    kill "$(<"$DIR/pids/watch")"
    start reader bash -c '"$0" status -k "$1" --watch | head -n 1' "$RLOCK" "$KEY"
    finish reader 5
    assert_match "$output" "^$KEY"
    redis_stop
    redis_use redis
}

# ---- status on a terminal ----

@test "status: it uses colours on a terminal only, and not with NO_COLOR or TERM=dumb" {
    local env
    pty_start
    pty_type 'TERM=xterm "$RLOCK" status -k "$KEY"'
    pty_expect 5 "$(printf '\e')\\[1m$KEY$(printf '\e')\\[0m: $(printf '\e')\\[32mfree"
    pty_prompt
    for env in 'NO_COLOR=1 TERM=xterm' 'TERM=dumb' 'TERM='; do
        pty_type "$env \"\$RLOCK\" status -k \"\$KEY\""
        pty_expect 5 "^$KEY: free" || fail "with $env status shows: $(pty_screen)"
        pty_prompt
    done
    pty_end
    run "$RLOCK" status -k "$KEY"
    refute_match "$output" $'\e'
}

@test "status --watch: on a terminal it redraws in place, and no more lines than the screen has" {
    local i tty
    for i in {10..49}; do
        redis_cli set "$KEY:$i" "$TOKEN v1 try=1 host=h since=1" ex 100
    done
    pty_start
    pty_type 'TERM=xterm "$RLOCK" status --watch'
    pty_expect 5 "$(printf '\e')\\[H$(printf '\e')\\[\\?7l"
    pty_expect 5 '^\.\.\.'
    pty_expect 5 "$(printf '\e')\\[H"
    refute_match "$(pty_screen)" "$KEY:19"
    tty=$(<"$DIR/tty")
    stty -F "$tty" rows 200 # the user makes the window higher
    pty_expect 5 "$KEY:49"
    pty_key C-c
    pty_prompt
    pty_type 'echo "status $?."'
    pty_expect 5 'status 130\.'
}
