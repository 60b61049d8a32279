#!/usr/bin/env bats
# tools: the measures are measured first: fakeredis, cutline, show_signals, the terminal.

load ../helpers/common
load ../helpers/fake
load ../helpers/pty

# talk PORT [BYTES]: sends them (printf's escapes) and prints what comes back until the end.
talk() {
    exec {peer}<>"/dev/tcp/127.0.0.1/$1"
    printf "${2:-}" >&"$peer"
    timeout 10 cat <&"$peer"
}

ping='*1\r\n$4\r\nPING\r\n'

@test "fakeredis: answers what it expects, and logs it" {
    fake_start <<'END'
ACCEPT
EXPECT set * 30
SEND +OK\r\n-\x41\\\r\n
CLOSE
END
    run talk "$FAKE_PORT" '*4\r\n$3\r\nSET\r\n$3\r\na\nb\r\n$2\r\n30\r\n$2\r\nNX\r\n'
    assert_eq "$output" $'+OK\r\n-A\\\r'
    fake_end
    assert_status 0
    assert_eq "$(fake_log)" "READY $FAKE_PORT"$'\nACCEPT\nGOT SET a\\x0ab 30 NX'
}

@test "fakeredis: another command than expected ends it with 1" {
    fake_start <<<$'ACCEPT\nEXPECT GET\nSEND +OK\\r\\n'
    run talk "$FAKE_PORT" "$ping"
    assert_eq "$output" ""
    fake_end
    assert_status 1
    assert_match "$(fake_log)" 'MISMATCH word 1: wanted GET'
}

@test "fakeredis: RESET resets, and LOOP serves the next" {
    fake_start <<<$'ACCEPT\nREAD\nRESET\nLOOP 2'
    for _ in 1 2; do
        run talk "$FAKE_PORT" "$ping"
        assert_match "$output" 'Connection reset'
    done
    fake_end
    assert_status 0
}

@test "fakeredis: STALL lasts until the peer goes, or so long as said, and loses nothing" {
    fake_start <<<$'ACCEPT\nSTALL 100\nREAD\nSTALL'
    exec {peer}<>"/dev/tcp/127.0.0.1/$FAKE_PORT"
    printf "$ping" >&"$peer"
    eventually 5 file_has "$DIR/fake.out" 'GOT PING'
    never 1 file_has "$DIR/fake.out" CLOSED
    exec {peer}>&-
    fake_end
    assert_status 0
    assert_match "$(fake_log)" CLOSED
}

@test "fakeredis: CLOCK tells when, on the clock that rlock uses" {
    local before
    before=$(now_ms)
    fake_start <<<$'ACCEPT\nREAD\nCLOCK\nCLOSE'
    run talk "$FAKE_PORT" "$ping"
    fake_end
    assert_between "$(fake_log | sed -n 's/^CLOCK //p')" "$before" "$(now_ms)" 'the time'
}

@test "fakeredis: a peer that goes ends its part of the script" {
    fake_start <<<$'ACCEPT\nREAD\nSEND +OK\\r\\n\nSTALL\nLOOP 2'
    exec {peer}<>"/dev/tcp/127.0.0.1/$FAKE_PORT" {peer}>&-
    exec {peer}<>"/dev/tcp/127.0.0.1/$FAKE_PORT" {peer}>&-
    fake_end
    assert_status 0
}

@test "fakeredis: BULK, DEPTH and GARBAGE send what they say" {
    fake_start <<<$'ACCEPT\nBULK 1073741824\nDEPTH 3\nCLOSE\nACCEPT\nGARBAGE 1000\nCLOSE\nLOOP 2'
    run talk "$FAKE_PORT"
    assert_eq "$output" $'$1073741824\r\n*1\r\n*1\r\n*1\r'
    talk "$FAKE_PORT" >"$DIR/noise"
    talk "$FAKE_PORT" >"$DIR/other"
    talk "$FAKE_PORT" >"$DIR/noise2"
    assert_eq "$(wc -c <"$DIR/noise")" 1000
    cmp "$DIR/noise" "$DIR/noise2"
}

@test "fakeredis: STREAM goes on until the peer goes" {
    fake_start <<<$'ACCEPT\nSTREAM :1\\r\\n'
    exec {peer}<>"/dev/tcp/127.0.0.1/$FAKE_PORT"
    head -c 4000000 <&"$peer" >"$DIR/stream"
    exec {peer}>&-
    assert_eq "$(head -c 9 "$DIR/stream")" $':1\r\n:1\r\n:'
    assert_eq "$(wc -c <"$DIR/stream")" 4000000
    fake_end
    assert_status 0
}

@test "fakeredis: listens on a Unix socket" {
    fake_start -u "$DIR/fake" <<<$'ACCEPT\nEXPECT PING\nSEND +PONG\\r\\n\nCLOSE'
    REDIS_SOCKET=$DIR/fake run redis_cli ping
    assert_eq "$output" PONG
    fake_end
}

@test "fakeredis: ends by itself when its time is over" {
    fake_start -t 1 <<<ACCEPT
    fake_end
    assert_status $((128 + 14))
}

# ---- cutline ----

through_line() { redis-cli -h 127.0.0.1 -p "$LINE_PORT" "$@"; }
spoilt_line() { redis_start && line_start "$REDIS_PORT"; }
is_set() { [[ $(redis_cli get "$1") == "$2" ]]; }

@test "cutline: passes on, in both directions" {
    spoilt_line
    run through_line set "$KEY" 1
    assert_eq "$output" OK
    assert_eq "$(redis_cli get "$KEY")" 1
}

@test "cutline: what it does not know is refused" {
    line_start 1
    run line sing
    assert_status 1
    run line drop sideways on
    assert_status 1
    run line delay soon
    assert_status 1
}

@test "cutline: delay" {
    spoilt_line
    line delay 300
    local before
    before=$(now_ms)
    assert_eq "$(through_line ping)" PONG
    assert_between $(($(now_ms) - before)) 600 3000
}

@test "cutline: what was on its way arrives although the client gave up" {
    spoilt_line
    line delay 500
    run timeout -s KILL 0.2 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" late
    assert_eq "$(redis_cli get "$KEY")" ""
    eventually 5 is_set "$KEY" late
}

@test "cutline: trickle" {
    spoilt_line
    line trickle 20
    local before
    before=$(now_ms)
    assert_eq "$(through_line ping)" PONG
    assert_between $(($(now_ms) - before)) 300 5000
}

@test "cutline: drop down swallows the answer, drop up the request" {
    spoilt_line
    line drop down on
    run timeout 0.5 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" 1
    assert_status 124
    assert_eq "$(redis_cli get "$KEY")" 1
    line drop down off
    line drop up on
    run timeout 0.5 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" 2
    assert_status 124
    assert_eq "$(redis_cli get "$KEY")" 1
    line drop up off
    assert_eq "$(through_line ping)" PONG
}

@test "cutline: cut-after-request lets the server do it, and nobody know" {
    spoilt_line
    line cut-after-request 2
    assert_eq "$(through_line set "$KEY" 1)" OK
    run through_line set "$KEY" 2
    refute_match "$output" OK
    eventually 5 is_set "$KEY" 2
    assert_eq "$(through_line set "$KEY" 3)" OK
}

@test "cutline: half-close and reset" {
    spoilt_line
    start peer talk "$LINE_PORT"
    eventually 5 has_clients 2
    line half-close
    finish peer
    assert_status 0
    start peer talk "$LINE_PORT"
    eventually 5 has_clients 2
    line reset
    finish peer
    assert_match "$stderr" 'Connection reset'
}

has_clients() { [[ $(redis_cli client list | wc -l) == "$1" ]]; }

@test "cutline: refuse, and the same port again" {
    spoilt_line
    line refuse on
    run through_line ping
    assert_match "$output" 'Connection refused'
    line refuse off
    assert_eq "$(through_line ping)" PONG
}

@test "cutline: a paused server does not stop the line" {
    spoilt_line
    redis_pause
    run timeout 0.3 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" 1
    assert_status 124
    redis_continue
    eventually 5 is_set "$KEY" 1
}

# ---- the others ----

@test "redis: a crash and a restart on the same port" {
    redis_start
    local port=$REDIS_PORT
    redis_cli set "$KEY" 1
    redis_crash
    redis_restart
    assert_eq "$(redis_cli get "$KEY")" ""
    assert_eq "$(redis_cli config get port | tail -n 1)" "$port"
    redis_monitor "$DIR/monitor"
    redis_cli set "$KEY" 2
    eventually 5 file_has "$DIR/monitor" '"set"'
    redis_stop
}

@test "redis: two servers, one with a password" {
    redis_start one
    redis_start two --requirepass secret
    assert_match "$(redis_cli ping)" NOAUTH
    redis_use one
    assert_eq "$(redis_cli ping)" PONG
}

@test "show_signals: each signal that can be caught" {
    start shown "$TOOLS/show_signals" -e 15 -s 7
    eventually 5 file_has "$DIR/shown.out" "^ready $pid$"
    local n
    for n in {1..64}; do
        # KILL, ALRM, TERM (comes last), STOP, those that stop, those of the C library
        [[ $n == @(9|14|15|19|20|21|22|32|33) ]] && continue
        kill "-$n" "$pid"
        eventually 5 file_has "$DIR/shown.out" "^$n [A-Z0-9]+ $BASHPID$"
    done
    for n in 20 21 22; do
        kill "-$n" "$pid"
        eventually 5 stopped "$pid"
        kill -CONT "$pid"
        eventually 5 alive "$pid"
    done
    kill -TERM "$pid"
    finish shown
    assert_status 7
    assert_eq "$(grep -cE '^(20|21|22) ' "$DIR/shown.out")" 3
}

@test "hold_clock: one line each so often, and the clock is the kernel's" {
    start clock "$TOOLS/hold_clock" "$DIR/clock" 10
    eventually 5 test -s "$DIR/clock"
    local last
    last=$(tail -n 1 "$DIR/clock")
    assert_between $(($(now_ms) - last)) 0 1000
    sleep 0.3
    kill "$pid"
    finish clock
    assert_between "$(wc -l <"$DIR/clock")" 5 200
}

@test "turn: counts, and says so if it is not alone" {
    "$TOOLS/turn" "$DIR/sum" one
    "$TOOLS/turn" "$DIR/sum" two
    run -1 flock "$DIR/sum" "$TOOLS/turn" "$DIR/sum" three
    assert_match "$output" 'not alone'
    assert_eq "$(<"$DIR/sum")" 2
    assert_eq "$(xargs <"$DIR/sum.names")" 'one two'
}

@test "pty: keys, job control, and reading from the terminal" {
    pty_start
    pty_type '"$TOOLS/show_signals" -e 3'
    pty_expect 5 'ready [0-9]+'
    pty_key C-c
    pty_expect 5 '2 INT 0'
    pty_key C-z
    pty_expect 5 '20 TSTP 0'
    pty_expect 5 'Stopped'
    pty_prompt
    pty_type fg
    pty_expect 5 '18 CONT'
    pty_key 'C-\'
    pty_expect 5 '3 QUIT 0'
    pty_prompt
    pty_type 'read -r x; echo "<$x>"'
    pty_type 'from the keyboard'
    pty_expect 5 '<from the keyboard>'
    pty_end
    assert_status 0
}

@test "common: what was started is ended, also when it got away" {
    start away bash -c 'setsid sleep 100 & exec sleep 100'
    eventually 5 two_marked
    start function_in_a_fork two_marked_for_ever
    end_all
    assert_eq "$(started)$(marked)" ""
}

two_marked() { [[ $(marked) == *$'\n'* ]]; }
two_marked_for_ever() { while :; do sleep 0.1; done; }
