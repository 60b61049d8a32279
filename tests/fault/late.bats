#!/usr/bin/env bats
# late: the reply to a grant or a renewal is late by 1 s. Every process of rlock must count the
# end of the lease from the moment before the request was sent, not from the reply.
#
# A fake server reads a request, prints the time, replies LATE ms after that, and replies to nothing
# else. A process that counts from the reply acts LATE ms too late, so each test asserts that it
# acts at most half of LATE after the right moment. All times are written by the processes that are
# watched. tests/unit/test_lease_end.c has the same for each function of the library.
#
# run: alone

load ../helpers/common
load ../helpers/fake

LATE=1000 # half of what rlock waits for a reply
NOW=1700000000000
GRANT="SEND *3\\r\\n:1\\r\\n:$NOW\\r\\n\$16\\r\\n1700000000000000\\r\\n"
RENEWED="SEND *2\\r\\n:1\\r\\n:$NOW\\r\\n"

# serve STEP...: starts a fake server that does these steps. After these steps the server accepts
# connections and reads requests without a reply. Sets RLOCK_URL.
serve() {
    { printf '%s\n' ACCEPT "$@" && for _ in {1..50}; do printf '%s\n' READ STALL ACCEPT; done; } \
        >"$DIR/server.script"
    start server "$ROOT/tests/tools/fake.py" "$DIR/server.script"
    RLOCK_URL=redis://127.0.0.1:$(ready_words "$DIR/server.out")
    export RLOCK_URL
}

# kill_at TTL_MS: prints when KILL is due: 250 ms before the end of the lease whose request the
# server read at its step CLOCK. The lease ends TTL_MS after that, less 1 % and 2 ms for drift.
kill_at() { echo $(($(sed -n 's/^CLOCK //p' "$DIR/server.out") + $1 - $1 / 100 - 2 - 250)); }

# assert_killed_in_time TTL_MS: the command's last sign of life is at most LATE / 2 after kill_at.
assert_killed_in_time() {
    assert_between $(($(tail -n 1 "$DIR/clock") - $(kill_at "$1"))) -60000 $((LATE / 2)) \
        'ms from the time of KILL to the last run of the command'
}

# A command that ignores TERM, and writes the time into a file every 10 ms.
stubborn=(sh -c 'trap "" TERM; exec "$TOOLS/hold_clock" "$DIR/clock" 10')

# assert_ended_by_guard: stops rlock's main process, so that only the guard can end the command;
# waits until the guard has ended the command, and rlock has ended with 76.
assert_ended_by_guard() {
    local guard
    guard=$(guard_of "$pid")
    stop "$pid"
    eventually 30 childless "$guard"
    kill -CONT "$pid"
    ended 76 job 20
}
childless() { [[ -z $(children "$1") ]]; }

@test "a late grant: the guard kills the command when the lease counted from the request ends" {
    serve READ CLOCK "STALL $LATE" "$GRANT"
    start job "$RLOCK" -k "$KEY" -t 9 -- "${stubborn[@]}"
    eventually 20 test -s "$DIR/clock"
    assert_ended_by_guard
    assert_killed_in_time 9000
}

@test "a late renewal: the guard kills the command when the lease counted from the request ends" {
    serve READ "$GRANT" READ CLOCK "STALL $LATE" "$RENEWED"
    start job "$RLOCK" -v -k "$KEY" -t 12 -- "${stubborn[@]}"
    eventually 20 file_has "$DIR/job.err" ': renewed'
    assert_ended_by_guard
    assert_killed_in_time 12000
}

@test "a late grant, --bind-pid: the process ends when the lease counted from the request ends" {
    serve READ CLOCK "STALL $LATE" "$GRANT"
    start job bash -c 'trap "" TERM
        token=$("$RLOCK" acquire -k "$KEY" -t 9 --bind-pid $$) || exit
        exec "$TOOLS/hold_clock" "$DIR/clock" 10'
    eventually 20 test -s "$DIR/clock"
    kill -STOP "$(named rlock-renewd)" # only the guard can end the process
    ended 137 job 30
    assert_killed_in_time 9000
}
