#!/usr/bin/env bats
# late: replies that are late by a known time, and nothing behind them: the end of a lease is
# counted from before its request was sent, by all that act on it.
#
# A server reads a request, prints the time, and answers LATE ms after that. What is to happen at a
# moment of the lease then happens so much sooner than if it were counted from the reply; the limit
# lies in the middle. A busy machine may be late by that much on its own: then it gets another try.
# What is counted from the reply is late in each.
#
# tests/unit/test_lease_end.c has the same for the library.

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

# serve STEP...: a server that does this and then reads on without an answer; sets RLOCK_URL. What
# is asked again comes by a new connection.
serve() {
    { printf '%s\n' ACCEPT "$@" && for _ in {1..50}; do printf '%s\n' READ STALL ACCEPT; done; } \
        >"$DIR/server.script"
    start server "$TOOLS/fakeredis" "$DIR/server.script"
    RLOCK_URL=redis://127.0.0.1:$(ready_words "$DIR/server.out")
    export RLOCK_URL
}

# read_at N: when the server had read the N-th request of those whose time it prints
read_at() { sed -n 's/^CLOCK //p' "$DIR/server.out" | sed -n "$1p"; }
has_read() { [[ -n $(read_at "$1") ]]; }

# kill_at TTL N: when a lease comes to KILL that is counted from then, as its margin is 250 ms
kill_at() { echo $(($(read_at "$2") + $1 - $1 / 100 - 2 - 250)); }

# in_time MOMENT LIMIT [SLACK]
in_time() {
    MISSED=$(($1 - $2))
    ((MISSED <= ${3:-$((LATE / 2))}))
}

# try COMMAND...: until it succeeds; what it runs is in a condition, so a failure must be its last
try() {
    local each
    for ((each = 0; each < TRIES; each++)); do
        rm -f "$DIR"/{clock,ran} "$DIR"/{job,server}.*
        MISSED=''
        ! "$@" || return 0
        echo "late by ${MISSED:-?} ms, and the reply by $LATE" >&2
        end_all
    done
    fail "in none of $TRIES tries: $*"
}

# ---- a command ----

# It doesn't heed TERM, and shows until when it runs.
stubborn=(sh -c 'trap "" TERM; exec "$TOOLS/hold_clock" "$DIR/clock" 5')
last_sign() { sort -n "$DIR/clock" | tail -n 1; }

# rlock itself is stopped by then, so it is the guard that ends the command, by what it was told.
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
        in_time "$(last_sign)" "$(kill_at 3000 1)"
}

@test "a grant that is late: the command has ended as if it had not been" {
    try killed_by_grant
}

with_renewal() { # OPTION...
    LATE=330
    serve READ "$GRANT" READ CLOCK "STALL $LATE" "$RENEWED"
    start job "$RLOCK" -v -k "$KEY" -t 5 "$@" -- "${stubborn[@]}"
    eventually 10 file_has "$DIR/job.err" ': renewed'
}

killed_by_renewal() {
    with_renewal && ended_by_guard && in_time "$(last_sign)" "$(kill_at 5000 1)"
}

@test "a renewal that is late: the command has ended as if it had not been" {
    try killed_by_renewal
}

# The time of an answer before KILL, 0.5 s, it is to stop.
frozen_by_renewal() {
    with_renewal --on-lost pause && eventually 15 file_has "$DIR/job.err" ': paused' &&
        in_time "$(last_sign)" $(($(kill_at 5000 1) - 500))
}

@test "a renewal that is late, --on-lost pause: the command is frozen as if it had not been" {
    try frozen_by_renewal
}

# The guard is stopped while the grant is on its way, and goes on when it is too late to start.
started_too_late() {
    local guard began
    LATE=1500
    serve READ CLOCK "STALL $LATE" "$GRANT"
    start job "$RLOCK" -k "$KEY" -t 6 -- touch "$DIR/ran"
    eventually 5 has_read 1 && eventually 5 has_guard && guard=$(guard_of "$pid") &&
        kill -STOP "$guard" && eventually 5 stopped "$guard" || return
    (($(now_ms) < $(read_at 1) + LATE)) || return # it may have begun
    began=$(($(kill_at 6000 1) - 1000 + LATE / 10)) # TERM comes 1 s before KILL
    eventually 10 is_past "$began"
    kill -CONT "$guard"
    finish job && assert_status 76 && [[ ! -e $DIR/ran ]] &&
        assert_match "$stderr" 'the lease ended before the command was started'
}
has_guard() { [[ -n $(guard_of "$pid") ]]; }
is_past() { (($(now_ms) > $1)); }

@test "a grant that is late, and a guard that is stopped: the command is not started too late" {
    try started_too_late
}

# The time law leaves room for two answers behind the first renewal, whenever the grant was heard.
renewed_first() {
    LATE=1800
    serve READ CLOCK "STALL $LATE" "$GRANT" READ CLOCK
    start job "$RLOCK" -k "$KEY" -t 6 -- sleep 10
    eventually 10 has_read 2 && in_time "$(read_at 2)" $(($(read_at 1) + 2000)) 400
}

@test "a grant that is late: the first renewal is not" {
    try renewed_first
}

# ---- a lock without a command ----

# bound TTL: the same command, to which the lease is bound
bound() {
    start job bash -c 'trap "" TERM
        token=$("$RLOCK" acquire -k "$KEY" -t "$1" --bind-pid $$) || exit
        exec "$TOOLS/hold_clock" "$DIR/clock" 5' bash "$1"
}

# The renew daemon is stopped, so the deadline killer ends the command.
bound_by_grant() {
    local stayed
    LATE=900
    serve READ CLOCK "STALL $LATE" "$GRANT"
    bound 3
    eventually 5 test -s "$DIR/clock" && stayed=$(of_name rlock-renewd) && kill -STOP "$stayed" &&
        finish job && assert_status 137 && in_time "$(last_sign)" "$(kill_at 3000 1)"
}

@test "a grant that is late: what it is bound to has ended as if it had not been" {
    try bound_by_grant
}

bound_by_renewal() {
    LATE=330
    serve READ CLOCK "$GRANT" READ CLOCK "STALL $LATE" "$RENEWED"
    bound 5
    finish job && assert_status 137 && (($(last_sign) > $(kill_at 5000 1) + 500)) &&
        in_time "$(last_sign)" "$(kill_at 5000 2)"
}

@test "a renewal that is late: what it is bound to has ended as if it had not been" {
    try bound_by_renewal
}

@test "acquire --json: expires_ms is what is left when it is printed" {
    serve READ "STALL 500" "$GRANT"
    run -0 --separate-stderr rlock acquire --json -k "$KEY" -t 10
    assert_match "$output" '"expires_ms":[0-9]+'
    output=${output#*\"expires_ms\":}
    assert_between "${output%%[!0-9]*}" 1 $((9898 - 500)) expires_ms
}

@test "renew -v: it tells what is left by then" {
    serve READ "STALL 700" "$RENEWED"
    RLOCK_TOKEN=0123456789abcdef0123456789abcdef \
        run -0 --separate-stderr rlock renew -v -k "$KEY" -t 10
    assert_match "$stderr" ': renewed: for [0-9]\.[0-9] s'
    stderr=${stderr#*: for }
    stderr=${stderr%% s*}
    assert_between "${stderr/./}" 1 91 'tenths of a second' # of 9.898 s less 0.7 s
}

# A token that nobody reads is given back when there is no room for it by the time of KILL.
untold() {
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

@test "acquire: a token that can't be written is given back as if the grant had not been late" {
    try untold
}
