#!/usr/bin/env bats
# tools: tests of the programs that other tests use, such as fakeredis and cutline.

load ../helpers/common
load ../helpers/fake
load ../helpers/pty

# talk PORT [BYTES]: connects, sends BYTES (with escapes as for printf), and prints all that it
# receives until the connection is closed.
talk() {
    exec {peer}<>"/dev/tcp/127.0.0.1/$1"
    printf "${2:-}" >&"$peer"
    timeout 10 cat <&"$peer"
}

ping='*1\r\n$4\r\nPING\r\n'

@test "fakeredis: EXPECT matches a request, SEND replies, and both are in the log" {
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

@test "fakeredis: a command that doesn't match EXPECT ends it with status 1" {
    fake_start <<<$'ACCEPT\nEXPECT GET\nSEND +OK\\r\\n'
    run talk "$FAKE_PORT" "$ping"
    assert_eq "$output" ""
    fake_end
    assert_status 1
    assert_match "$(fake_log)" 'MISMATCH word 1: wanted GET'
}

@test "fakeredis: RESET resets the connection, and LOOP accepts the next one" {
    fake_start <<<$'ACCEPT\nREAD\nRESET\nLOOP 2'
    for _ in 1 2; do
        run talk "$FAKE_PORT" "$ping"
        assert_match "$output" 'Connection reset'
    done
    fake_end
    assert_status 0
}

@test "fakeredis: STALL lasts until the peer closes, or for its MS, and loses no request" {
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

@test "fakeredis: CLOCK prints the time on the clock that rlock uses" {
    local before
    before=$(now_ms)
    fake_start <<<$'ACCEPT\nREAD\nCLOCK\nCLOSE'
    run talk "$FAKE_PORT" "$ping"
    fake_end
    assert_between "$(fake_log | sed -n 's/^CLOCK //p')" "$before" "$(now_ms)" 'the time'
}

@test "fakeredis: BULK, DEPTH and GARBAGE send a length, nested arrays, the same noise each time" {
    fake_start <<<$'ACCEPT\nBULK 1073741824\nDEPTH 3\nCLOSE\nACCEPT\nGARBAGE 1000\nCLOSE\nLOOP 2'
    run talk "$FAKE_PORT"
    assert_eq "$output" $'$1073741824\r\n*1\r\n*1\r\n*1\r'
    talk "$FAKE_PORT" >"$DIR/noise"
    talk "$FAKE_PORT" >"$DIR/other"
    talk "$FAKE_PORT" >"$DIR/noise2"
    assert_eq "$(wc -c <"$DIR/noise")" 1000
    cmp "$DIR/noise" "$DIR/noise2"
}

# ---- tests of cutline ----

through_line() { redis-cli -h 127.0.0.1 -p "$LINE_PORT" "$@"; }
spoilt_line() { redis_start && line_start "$REDIS_PORT"; }
is_set() { [[ $(redis_cli get "$1") == "$2" ]]; }
has_clients() { [[ $(redis_cli client list | wc -l) == "$1" ]]; }

@test "cutline: without a command it passes on all; it refuses unknown commands and arguments" {
    spoilt_line
    assert_eq "$(through_line set "$KEY" 1)" OK
    assert_eq "$(redis_cli get "$KEY")" 1
    run -1 line sing
    run -1 line drop sideways on
    run -1 line delay soon
}

@test "cutline: delay MS holds up requests and replies, also of a client that has gone away" {
    local before
    spoilt_line
    line delay 300
    before=$(now_ms)
    assert_eq "$(through_line ping)" PONG
    assert_between $(($(now_ms) - before)) 600 60000 'ms until the reply'
    line delay 2000
    run timeout -s KILL 1 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" late
    eventually 20 is_set "$KEY" late
}

@test "cutline: drop down discards replies, drop up discards requests, lose one request" {
    spoilt_line
    line drop down on
    run -124 timeout 1 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" 1
    eventually 10 is_set "$KEY" 1
    line drop down off
    line drop up on
    run -124 timeout 1 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" 2
    assert_eq "$(redis_cli get "$KEY")" 1
    line drop up off
    line lose 1
    run -124 timeout 1 redis-cli -h 127.0.0.1 -p "$LINE_PORT" set "$KEY" 3
    assert_eq "$(redis_cli get "$KEY")" 1
    assert_eq "$(through_line ping)" PONG
}

@test "cutline: cut-after-request passes on the request, and resets before the reply" {
    spoilt_line
    line cut-after-request 2
    assert_eq "$(through_line set "$KEY" 1)" OK
    run through_line set "$KEY" 2
    refute_match "$output" OK
    eventually 10 is_set "$KEY" 2
    assert_eq "$(through_line set "$KEY" 3)" OK
}

@test "cutline: half-close ends the server's side, reset resets, refuse closes the port" {
    spoilt_line
    start peer talk "$LINE_PORT"
    eventually 10 has_clients 2
    line half-close
    finish peer
    assert_status 0
    start peer talk "$LINE_PORT"
    eventually 10 has_clients 2
    line reset
    finish peer
    assert_match "$stderr" 'Connection reset'
    line refuse on
    run through_line ping
    assert_match "$output" 'Connection refused'
    line refuse off
    assert_eq "$(through_line ping)" PONG
}

# ---- servers, show_signals, clocks, the terminal ----

# bats test_tags=long
@test "show_signals: it prints number, name and sender of each signal that can be caught" {
    start shown "$TOOLS/show_signals" -e 15 -s 7
    eventually 5 file_has "$DIR/shown.out" "^ready $pid$"
    local n
    for n in {1..64}; do
        # skipped: KILL, ALRM, TERM (the last one to be sent), STOP and other signals that stop a
        # process, and those that the C library uses
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

# bats test_tags=long
@test "crowd: states and end ignore another crowd's process that has got the pid of a dead one" {
    local up_ms from_ms
    start old "$TOOLS/crowd" "$DIR/old.crowd" 0 0 0
    eventually 5 test -e "$DIR/old.crowd.ready"
    "$TOOLS/crowd" end "$DIR/old.crowd"
    finish old
    # crowd tells processes with the same pid apart by their start times, in units of 10 ms.
    read_up_ms
    from_ms=$up_ms
    while ((up_ms == from_ms)); do read_up_ms; done
    start new "$TOOLS/crowd" "$DIR/new.crowd" 0 0 0
    eventually 5 test -e "$DIR/new.crowd.ready"
    # Write the pid of the new process over that of the dead process.
    assert_eq "$(od -An -tu4 -j 16 -N 4 "$DIR/new.crowd")" "$(printf '%11d' "$pid")" 'the first pid'
    dd if="$DIR/new.crowd" of="$DIR/old.crowd" bs=4 skip=4 seek=4 count=1 conv=notrunc status=none
    assert_eq "$("$TOOLS/crowd" states "$DIR/old.crowd")" '' 'living processes of the old crowd'
    "$TOOLS/crowd" end "$DIR/old.crowd"
    assert_eq "$("$TOOLS/crowd" states "$DIR/new.crowd")" '1 S' 'the new crowd'
}

@test "results: it prints failed tests with their comments and counts; none passed: status 1" {
    local results=$ROOT/tests/tools/results.awk
    printf '%s\n' 'ok 1 a' '# of a' 'not ok 2 b' '# of b' 'CC b.o' 'ok 3 c # skip no d' >"$DIR/tap"
    run -1 awk -f "$results" "$DIR/tap"
    assert_eq "$output" $'\nnot ok 2 b\n# of b\n\n1 passed, 1 failed, 1 skipped'
    { echo 'not ok 1 a' && seq -f '# %g' 30; } >"$DIR/tap"
    run -1 awk -f "$results" "$DIR/tap"
    assert_match "$output" "# 20.# \.\.\. 10 more lines in $DIR/tap..0 passed, 1 failed$"
    run -1 awk -f "$results" /dev/null
    assert_eq "$output" '0 passed, 0 failed'
}

@test "run_tests: a test that fails, hangs or crashes, and a program without a plan, are results" {
    unset RUN_TESTS # it is set if run_tests runs this file
    mkdir "$DIR/unit"
    cd "$DIR"
    sed 's/^%/@/' >some.bats <<'END'
%test "passes" { true; }
%test "fails" { echo why && false; }
# bats test_tags=long
%test "isn't chosen" { false; }
END
    printf '%%test "hangs" { sleep 100; }\n' | tr % @ >hanging.bats
    printf '# bats file_tags=long\n%%test "none chosen" { false; }\n' | tr % @ >long.bats
    printf '#!/bin/sh\n%s\n' "echo '# begins: b'; kill -SEGV \$\$" >unit/crashing
    printf '#!/bin/sh\necho ok 1 - a\n' >unit/silent
    printf '#!/bin/sh\necho ok 1 - a; echo 1..1\n' >unit/good
    chmod +x unit/*
    JOBS=2 BATS_TEST_TIMEOUT=1 BATSFLAGS='--filter-tags !long' \
        run -1 "$ROOT/tests/tools/run_tests.sh" unit/* *.bats
    assert_match "$output" '# why'
    assert_eq "$(sed -nE '/^1\.\./p; s/^((not )?ok) -/\1/p' <<<"$output" | LC_ALL=C sort)" "\
1..7
not ok crashing: ended too early: status 139; began: b
not ok hanging: hangs # timeout after 1s
not ok silent: ended too early: status 0
not ok some: fails
ok good: a
ok silent: a
ok some: passes"
}

@test "suite: a part that ends without a failed test, and a build that fails, are failed tests" {
    cd "$DIR"
    printf '%s:\n\t@%s\n' good 'echo ok 1 a' bad 'echo ok 1 b; exit 3' \
        broken 'echo no compiler; false' skipped 'echo ok 1 c' >Makefile
    run -1 "$ROOT/tests/tools/suite.sh" logs \
        'good: good &' 'bad: bad' 'build: broken' 'skipped: skipped'
    assert_match "$output" 'good +[0-9]+ s   1 passed, 0 failed'
    assert_match "$output" 'not ok - bad: make bad.*not ok - build: make broken.# no compiler'
    assert_match "$output" $'\n\n2 passed, 2 failed$'
    [[ ! -e logs/skipped.log ]]
    run -0 "$ROOT/tests/tools/suite.sh" logs 'good: good'
}

@test "turn: it counts its runs, and fails if another process has locked the file" {
    "$TOOLS/turn" "$DIR/sum" one
    "$TOOLS/turn" "$DIR/sum" two
    run -1 flock "$DIR/sum" "$TOOLS/turn" "$DIR/sum" three
    assert_match "$output" 'not alone'
    assert_eq "$(<"$DIR/sum")" 2
    assert_eq "$(xargs <"$DIR/sum.names")" 'one two'
}

@test "pty: keys send signals, jobs stop and go on, and a program reads what is typed" {
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

@test "common: end_all ends the processes of a test, also those in another session" {
    start away bash -c 'setsid sleep 100 & exec sleep 100'
    eventually 5 two_marked
    start function_in_a_fork sleep_for_ever
    end_all
    assert_eq "$(started)$(marked)" ""
}

@test "common: a test that fails prints the load, and what the programs it started said" {
    # bats would take lines that begin with @test for tests of this file
    sed 's/^%/@/' >"$DIR/failing.bats" <<END
load $ROOT/tests/helpers/common
%test "fails" {
    start program sh -c 'echo "reason of the program" >&2'
    finish program
    run --separate-stderr sh -c 'echo "reason of the run" >&2'
    false
}
%test "passes" {
    start program sh -c 'echo "said by what passed" >&2'
    finish program
}
END
    run -1 env -u BATS_TEST_COMPLETED bats --tap "$DIR/failing.bats"
    assert_match "$output" "not ok 1 fails.*# load: [0-9.]+ .* on $PROCESSORS processors"
    assert_match "$output" '# --- stderr of the last run.# reason of the run'
    assert_match "$output" '# --- program.err.# reason of the program'
    assert_match "$output" 'ok 2 passes$'
    refute_match "$output" 'said by what passed'
}

two_marked() { [[ $(marked) == *$'\n'* ]]; }
sleep_for_ever() { while :; do sleep 0.1; done; }
