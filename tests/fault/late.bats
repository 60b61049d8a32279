#!/usr/bin/env bats
# late: the reply to a grant or a renewal is late by a known time. Every process of rlock must count
# the end of the lease from the moment before the request was sent, not from the reply.
#
# A fakeredis reads a request, prints the time, replies LATE ms after that, and replies to nothing
# else. A process that counts from the reply acts LATE ms too late, so each test asserts that it
# acts at most half of LATE after the right moment. A busy machine may delay a right process by as
# much, so a test that fails is tried again; a process that counts from the reply fails every time.
#
# tests/unit/test_lease_end.c tests the same for the library.

load ../helpers/common
load ../helpers/fake
load ../helpers/span

setup() {
    common_setup
    export DIR KEY RLOCK TOOLS
}

TRIES=4
NOW=1700000000000
GRANT="SEND *3\\r\\n:1\\r\\n:$NOW\\r\\n\$16\\r\\n1700000000000000\\r\\n"
RENEWED="SEND *2\\r\\n:1\\r\\n:$NOW\\r\\n"

# serve STEP...: starts a fakeredis that does these steps. After these steps the server accepts
# connections and reads requests without a reply. Sets RLOCK_URL.
serve() {
    { printf '%s\n' ACCEPT "$@" && for _ in {1..50}; do printf '%s\n' READ STALL ACCEPT; done; } \
        >"$DIR/server.script"
    start server "$TOOLS/fakeredis" "$DIR/server.script"
    RLOCK_URL=redis://127.0.0.1:$(ready_words "$DIR/server.out")
    export RLOCK_URL
}

# read_at N: prints the N-th of the times that the server has printed, by the step CLOCK.
read_at() { sed -n 's/^CLOCK //p' "$DIR/server.out" | sed -n "$1p"; }
has_read() { [[ -n $(read_at "$1") ]]; }

# kill_at TTL_MS N: prints when KILL is due: 250 ms before the end of the lease whose request the
# server read at `read_at N`. The lease ends TTL_MS after that, less 1 % and 2 ms for clock drift.
kill_at() { echo $(($(read_at "$2") + $1 - $1 / 100 - 2 - 250)); }

# in_time MOMENT LIMIT [SLACK]: true if MOMENT is at most SLACK ms after LIMIT; default: LATE / 2.
in_time() {
    MISSED=$(($1 - $2))
    ((MISSED <= ${3:-$((LATE / 2))}))
}

# try FUNCTION: calls the function up to TRIES times, until it succeeds. Because try calls it in a
# condition, bash ignores `set -e` in the function: so these functions join their steps by &&.
try() {
    local each
    for ((each = 0; each < TRIES; each++)); do
        rm -f "$DIR"/{clock,ran} "$DIR"/{job,server}.*
        MISSED=''
        ! "$@" || return 0
        echo "late by ${MISSED:-?} ms, and the reply by $LATE" >&2
        end_all
    done
    fail "failed in all of $TRIES tries: $*"
}

# ---- rlock with a command ----

# A command that ignores TERM, and writes the time into a file every 5 ms.
stubborn=(sh -c 'trap "" TERM; exec "$TOOLS/hold_clock" "$DIR/clock" 5')
last_run_ms() { sort -n "$DIR/clock" | tail -n 1; }

# ended_by_guard: stops rlock's main process, so that only the guard can end the command; waits
# until the guard has ended the command, and rlock has ended with 76.
ended_by_guard() {
    local guard
    guard=$(guard_of "$pid") && kill -STOP "$pid" && eventually 10 childless "$guard" &&
        kill -CONT "$pid" && finish job && assert_status 76
}
childless() { [[ -z $(children "$1") ]]; }

killed_by_grant() {
    LATE=900
    serve READ CLOCK "STALL $LATE" "$GRANT"
    start job "$RLOCK" -k "$KEY" -t 3 -- "${stubborn[@]}"
    eventually 5 test -s "$DIR/clock" && ended_by_guard &&
        in_time "$(last_run_ms)" "$(kill_at 3000 1)"
}

@test "a late grant: the guard kills the command when the lease counted from the request ends" {
    try killed_by_grant
}

# with_renewal OPTION...: starts rlock. The reply to its acquire comes at once, and the reply to its
# first renewal comes LATE ms late.
with_renewal() {
    LATE=330
    serve READ "$GRANT" READ CLOCK "STALL $LATE" "$RENEWED"
    start job "$RLOCK" -v -k "$KEY" -t 5 "$@" -- "${stubborn[@]}"
    eventually 10 file_has "$DIR/job.err" ': renewed'
}

killed_by_renewal() {
    with_renewal && ended_by_guard && in_time "$(last_run_ms)" "$(kill_at 5000 1)"
}

@test "a late renewal: the guard kills the command when the lease counted from the request ends" {
    try killed_by_renewal
}

# With --on-lost pause the guard freezes the command 0.5 s before KILL is due: a tenth of the TTL.
frozen_by_renewal() {
    with_renewal --on-lost pause && eventually 15 file_has "$DIR/job.err" ': paused' &&
        in_time "$(last_run_ms)" $(($(kill_at 5000 1) - 500))
}

@test "a late renewal, --on-lost pause: the command is frozen in time, counted from the request" {
    try frozen_by_renewal
}

# The test stops the guard before the grant arrives, and continues it after TERM was due: then the
# guard must not start the command any more.
started_too_late() {
    local guard began
    LATE=1500
    serve READ CLOCK "STALL $LATE" "$GRANT"
    start job "$RLOCK" -k "$KEY" -t 6 -- touch "$DIR/ran"
    eventually 5 has_read 1 && eventually 5 has_guard && guard=$(guard_of "$pid") &&
        kill -STOP "$guard" && eventually 5 stopped "$guard" || return
    (($(now_ms) < $(read_at 1) + LATE)) || return # else the command may run already
    began=$(($(kill_at 6000 1) - 1000 + LATE / 10)) # TERM comes 1 s before KILL
    eventually 10 is_past "$began"
    kill -CONT "$guard"
    finish job && assert_status 76 && [[ ! -e $DIR/ran ]] &&
        assert_match "$stderr" 'the lease ended before the command was started'
}
has_guard() { [[ -n $(guard_of "$pid") ]]; }
is_past() { (($(now_ms) > $1)); }

@test "a late grant and a stopped guard: the guard doesn't start the command once TERM is due" {
    try started_too_late
}

# The first renewal is due a third of the TTL after the request for the grant was sent.
renewed_first() {
    LATE=1800
    serve READ CLOCK "STALL $LATE" "$GRANT" READ CLOCK
    start job "$RLOCK" -k "$KEY" -t 6 -- sleep 10
    eventually 10 has_read 2 && in_time "$(read_at 2)" $(($(read_at 1) + 2000)) 400
}

@test "a late grant: the first renewal is sent a third of the TTL after the request" {
    try renewed_first
}

# ---- rlock acquire ----

# bound TTL: starts a process that ignores TERM and writes the time into a file, as `stubborn` does.
# The process first binds itself to a lease by `acquire --bind-pid`.
bound() {
    start job bash -c 'trap "" TERM
        token=$("$RLOCK" acquire -k "$KEY" -t "$1" --bind-pid $$) || exit
        exec "$TOOLS/hold_clock" "$DIR/clock" 5' bash "$1"
}

# The test stops the renew daemon, so that only the deadline killer can end the process.
bound_by_grant() {
    local stayed
    LATE=900
    serve READ CLOCK "STALL $LATE" "$GRANT"
    bound 3
    eventually 5 test -s "$DIR/clock" && stayed=$(renewd) && kill -STOP "$stayed" &&
        finish job && assert_status 137 && in_time "$(last_run_ms)" "$(kill_at 3000 1)"
}

@test "a late grant, --bind-pid: the process ends when the lease counted from the request ends" {
    try bound_by_grant
}

bound_by_renewal() {
    LATE=330
    serve READ CLOCK "$GRANT" READ CLOCK "STALL $LATE" "$RENEWED"
    bound 5
    finish job && assert_status 137 && (($(last_run_ms) > $(kill_at 5000 1) + 500)) &&
        in_time "$(last_run_ms)" "$(kill_at 5000 2)"
}

@test "a late renewal, --bind-pid: the process ends when the lease counted from the request ends" {
    try bound_by_renewal
}

@test "acquire --json after a late grant: left_ms is the time left, without the delay" {
    serve READ "STALL 500" "$GRANT"
    run -0 --separate-stderr rlock acquire --json -k "$KEY" -t 10
    assert_match "$output" '"left_ms":[0-9]+'
    output=${output#*\"left_ms\":}
    assert_between "${output%%[!0-9]*}" 1 $((9898 - 500)) left_ms
}

@test "renew -v after a late reply: the message has the time left, without the delay" {
    serve READ "STALL 700" "$RENEWED"
    RLOCK_TOKEN=0123456789abcdef0123456789abcdef \
        run -0 --separate-stderr rlock renew -v -k "$KEY" -t 10
    assert_match "$stderr" ': renewed: for [0-9]\.[0-9] s'
    stderr=${stderr#*: for }
    stderr=${stderr%% s*}
    assert_between "${stderr/./}" 1 91 'tenths of a second' # 9.898 s minus 0.7 s of delay
}

# acquire writes its token into a full pipe that no process reads. acquire must give up, and release
# the lock, by the time at which a command would get KILL.
token_unwritten() {
    LATE=900
    serve READ CLOCK "STALL $LATE" "$GRANT"
    rm -f "$DIR/full"
    mkfifo "$DIR/full"
    start job bash -c 'exec 7<>"$DIR/full"
        dd if=/dev/zero bs=4096 count=100 oflag=nonblock >&7 2>/dev/null
        exec "$RLOCK" acquire -k "$KEY" -t 3 >&7'
    eventually 10 file_has "$DIR/job.err" 'before the lease ended' &&
        in_time "$(now_ms)" "$(kill_at 3000 1)"
}

@test "acquire after a late grant: rlock gives the lock back in time if it can't write the token" {
    try token_unwritten
}
