#!/usr/bin/env bats
# events: what messages tell of a lock and of its end, as text for people and as JSON that
# docs/messages.schema.json describes.

load ../helpers/common
load ../helpers/server

ME='[^ ]+@[^ ]+, pid [0-9]+'

# told FILE PYTHON: prints the value of the Python expression for each message in FILE, which is the
# object `o`.
told() {
    assert_valid "$1"
    python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    o = json.loads(line)
    print(eval(" ".join(sys.argv[2].split())))' "$@"
}

# one STATUS ARG...: runs rlock --json for $KEY, which must end with STATUS. The messages are in
# $DIR/said.
one() {
    local wanted=$1
    shift
    run "-$wanted" --separate-stderr rlock --json -k "$KEY" "$@"
    printf '%s\n' "$stderr" >"$DIR/said"
}

# ---- who holds the lock, and since when ----

@test "a busy lock: the message says for how long it has been held, and when it was renewed" {
    hold job -k "$KEY" -t 6 --label nightly
    eventually 10 renewed_later
    assert_match "$stderr" "^rlock: $KEY: busy: held for [1-9][0-9]*s by sh of $ME \(nightly\); "
    assert_match "$stderr" '; renewed [0-9]+s ago$'
    one 75 -n -- true
    assert_eq "$(told "$DIR/said" 'o["mode"], o["holder"]["command"], o["holder"]["label"],
        o["holder"]["held_ms"] >= 1000, o["holder"]["since"] < o["holder"]["renewed_at"],
        0 < o["left_ms"] <= 6000')" "('exclusive', 'sh', 'nightly', True, True, True)"
    let_pass job
}
# renewed_later: true if the lock has been held for a second, and its lease renewed since the grant.
renewed_later() {
    run -75 --separate-stderr rlock -k "$KEY" -n -- true
    [[ $stderr =~ 'held for '[1-9] && $stderr =~ renewed ]]
}

@test "the messages timeout and superseded tell the wait and the newer waiter" {
    redis_cli set "$KEY" other PX 60000
    run -75 --separate-stderr rlock -k "$KEY" -w 2 -- true
    assert_line "^rlock: $KEY: timeout: after [2-9]\.[0-9]s: held by another program .*; "
    one 75 -w 2 -- true
    assert_eq "$(told "$DIR/said" '1900 <= o["waited_ms"] < 10000, o["mode"]')" "(True, 'foreign')"
    KEY+=:2
    hold holder -k "$KEY"
    queued old --queue newest -- true
    start json "$RLOCK" --json -k "$KEY" --queue newest -- true
    ended 75 old
    assert_line "^rlock: $KEY: superseded: after [0-9.]+s by a newer waiter: true of $(id -un)@"
    start new "$RLOCK" -k "$KEY" --queue newest --label newest -- true
    ended 75 json
    assert_eq "$(told "$DIR/json.err" 'o["superseded_by"]["label"], o["superseded_by"]["pid"]')" \
        "('newest', $(<"$DIR/pids/new"))"
    let_go holder
    ended 0 new
}

# ---- the end of a lock, and of its command ----

@test "-q keeps the message of a lost lock, but not the message of the command's end" {
    hold job -q -k "$KEY" -t 4
    redis_cli set "$KEY" other XX PX 20000
    finish job
    assert_line "^rlock: $KEY: lost: "
}

# ---- every event ----

# EVENTS_ELSEWHERE: the events that this file doesn't provoke. rlock writes no message if it is
# `interrupted`. tests/fault/rights.bats provokes the other event, which only an rlock without the
# rights of root can write.
EVENTS_ELSEWHERE="can't be ended|interrupted"

# keep STATUS ARG...: runs rlock with ARG, a verb or options, which must end with STATUS, and
# adds its messages to $DIR/all.
keep() {
    run "-$1" --separate-stderr "$RLOCK" "${@:2}"
    printf '%s\n' "$stderr" >>"$DIR/all"
}

# job NAME ARG...: starts an rlock whose command runs until $DIR/NAME.go exists.
job() {
    start "$1" "$RLOCK" "${@:2}" -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$DIR/$1.go"
}
# says NAME EVENT: waits until the rlock that `start NAME` started has said so.
says() { eventually 20 file_has "$DIR/$1.err" "\"event\":\"$2\""; }
# kept NAME: waits for the end of that rlock, and adds its messages to $DIR/all.
kept() {
    finish "$1" 30
    printf '%s\n' "$stderr" >>"$DIR/all"
}
# ends NAME: the same, and lets its command end.
ends() { : >"$DIR/$1.go" && kept "$1"; }

outcomes() {
    job renewed -k "$KEY" -t 10
    says renewed renewed
    ends renewed
    keep 124 -k "$KEY" --max-hold 0.1 -- sleep 20
    keep 126 -k "$KEY" -- "$DIR"
    keep 127 -k "$KEY" -- "$DIR/none"
    keep 69 -k "$KEY" --connect-timeout 0.1 -u "unix://$DIR/none" -- true
    keep 0 -k "$KEY" --report "$DIR/none/report" -- true
    keep 78 -k "$KEY" --password-file "$DIR/none" -- true
    keep 0 -k "$KEY" --once 1m -- true
    keep 0 -k "$KEY" --once 1m -- true
    redis_cli set "$KEY:f" other PX 60000
    keep 75 -k "$KEY:f" -n -- true
    keep 75 -k "$KEY:f" -w 2 -- true
    keep 64 --json --no-such-option
    RLOCK_TOKEN=$(printf '1%.0s' {1..32}) keep 76 renew -k "$KEY:f"
    redis_cli rpush "$KEY:list" a
    keep 77 -k "$KEY:list" -- true
    RLOCK_TOKEN=$(printf '1%.0s' {1..32}) RLOCK_KEY=$KEY:n keep 0 -k "$KEY:n" -- true
    run -71 --separate-stderr sh -c '"$0" --json --help >/dev/full' "$RLOCK"
    printf '%s\n' "$stderr" >>"$DIR/all"
}

broken() {
    KEY+=:4
    job held -k "$KEY" -t 6
    eventually 5 exists "$KEY"
    job old -k "$KEY" --queue newest
    eventually 5 in_line 1
    job new -k "$KEY" --queue newest
    kept old
    keep 0 break --yes -k "$KEY"
    kept held
    ends new
    keep 0 break --yes -k "$KEY"
}

faults() {
    local shared=$RLOCK_URL
    job lost -k "$KEY:5" -t 10
    eventually 5 exists "$KEY:5"
    redis_cli del "$KEY:5"
    says lost restored
    kill -USR1 "$pid" # its command ends by the signal, which rlock passes on
    kept lost
    job unguarded -k "$KEY:6" -t 20
    eventually 5 exists "$KEY:6"
    eventually 5 has_guard
    kill -KILL "$(guard_of "$pid")"
    kept unguarded # says guard-lost
    redis_start own
    export RLOCK_URL=unix://$REDIS_SOCKET
    start full "$RLOCK" -k "$KEY:f" -t 1 -w 20 --connect-timeout 1 --replicas 1 -- true
    says full too-few-replicas
    kill -TERM "$(<"$DIR/pids/full")"
    kept full
    redis_cli config set maxmemory 1
    start unable "$RLOCK" -k "$KEY:u" -w 60 --connect-timeout 1 -- true
    says unable server-unable
    redis_cli config set maxmemory 0
    kept unable
    job pausing -k "$KEY:p" -t 3 --on-lost pause
    eventually 5 exists "$KEY:p"
    redis_cli set "$KEY:w" other PX 600000
    start waiter "$RLOCK" -k "$KEY:w" --warn-wait 0.001 -- true
    says waiter waiting-long
    redis_pause
    says pausing paused # after renewal-failed
    says waiter server-unreachable
    redis_continue
    says waiter server-back
    redis_cli del "$KEY:w"
    kept waiter
    says pausing resumed
    ends pausing
    job left -k "$KEY:l" -t 20
    eventually 5 exists "$KEY:l"
    redis_pause
    ends left # says not-released
    redis_continue
    redis_cli config set maxmemory 1
    start voter "$RLOCK" -k "$KEY:q" -w 3 --connect-timeout 1 -u "$shared" \
        -u "unix://$REDIS_SOCKET" -u "unix://$DIR/none" -- true
    kept voter # says no-quorum
}
has_guard() { [[ -n $(guard_of "$pid") ]]; }

@test "each event that rlock can write is provoked, and each object is as the schema says" {
    need_cgroup # for `paused` and `resumed`
    export RLOCK_JSON=yes RLOCK_VERBOSE=yes
    outcomes
    broken
    faults
    told "$DIR/all" 'o["event"]' | sort -u >"$DIR/seen"
    "$RLOCK" --dump=events | grep -vxE "$EVENTS_ELSEWHERE" | sort >"$DIR/wanted"
    assert_eq "$(diff "$DIR/wanted" "$DIR/seen")" '' 'events that were not provoked'
}
