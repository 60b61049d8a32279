#!/usr/bin/env bats
# report: what is said and how: text, JSON, --report, -q and -v.

load ../helpers/common
load ../helpers/redis
load ../helpers/hold

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() {
    common_setup
    need python3
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}
teardown() { common_teardown; }

# json FILE EXPRESSION: of each line of the file as a JSON object `o`, whose members keep their
# order; fails if a line is none, or if it has a member twice.
json() {
    python3 - "$@" <<'END'
import json, sys
def members(pairs):
    assert len(dict(pairs)) == len(pairs), "a member comes twice"
    return dict(pairs)
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        o = json.loads(line, object_pairs_hook=members)
        assert isinstance(o, dict), "no object"
        value = eval(" ".join(sys.argv[2].split()))
        print(value if isinstance(value, str) else json.dumps(value))
END
}

# said STATUS EVENTS ARG...: rlock with --json; its messages are in $DIR/said, and all are JSON.
said() {
    local wanted=$1 events=$2
    shift 2
    run "-$wanted" --separate-stderr rlock --json -k "$KEY" "$@"
    printf '%s\n' "$stderr" >"$DIR/said"
    json "$DIR/said" '"good" if list(o)[0] == "event" and type(o["elapsed_ms"]) is int
        and set(o) <= {"event", "key", "why", "hint", "elapsed_ms"}
        and 0 <= o["elapsed_ms"] < 60000 else o' | uniq >"$DIR/good"
    assert_eq "$(<"$DIR/good")" good "what is bad"
    assert_eq "$(cut -d '"' -f 4 "$DIR/said" | uniq | xargs)" "$events"
}

# ---- messages ----

@test "each message with --json is one JSON object on a line, with the event first" {
    said 0 'granted renewed released' -v -t 1 -- sleep 0.6
    said 124 max-hold --max-hold 0.1 -- sleep 20
    said 127 not-found -- "$DIR/none"
    said 126 not-executable -- "$DIR"
    said 78 misconfigured -u bad -- true
    said 69 unreachable --connect-timeout 0.1 -u "unix://$DIR/none" -- true
    said 0 no-report --report "$DIR/none/report" -- true
    said 76 lost -t 1 -c "$(asking) set '$KEY' other; sleep 20"
    said 75 busy -n -- true
    said 75 timeout -w 0.1 -- true
    redis_cli del "$KEY"
    redis_cli rpush "$KEY" a
    said 77 refused -- true
}

@test "behind --json a wrong command line is JSON, too" {
    said 64 usage --no-such-option -- true
    said 64 usage
}

@test "JSON stays JSON, whatever bytes are in the key and in other programs' values" {
    local value odd=$'"\\\e[2J\n\t/<\u2028\u00e9\xff\xc3(\xed\xa0\x80\xf4\x90\x80\x80\x7f{}'
    KEY+=$odd
    for value in "$odd" 'a"b\' '' "$(printf '%40000s' '' | tr ' ' '"')"; do
        redis_cli set "$KEY" "$value" PX 60000
        said 75 busy -v -n -- true
        assert_match "$(json "$DIR/said" 'o["key"]')" "^test:report\.bats:[0-9]+\"\\\\"
    done
    KEY=$(printf '%65536s' '' | tr ' ' '"')
    said 0 'granted released' -v --report "$DIR/report" -- true
    assert_eq "$(json "$DIR/report" 'len(o["key"])')" 65536
}

@test "-q says failures only, and not that the lock was not had" {
    redis_cli set "$KEY" other PX 60000
    run -75 --separate-stderr rlock -q -n -k "$KEY" -- true
    assert_eq "$stderr" ""
    run -75 --separate-stderr rlock -q -w 0.1 -k "$KEY" -- true
    assert_eq "$stderr" ""
    run -127 --separate-stderr rlock -q -k "$KEY:2" -- "$DIR/none"
    assert_line "^rlock: $KEY:2: not-found: "
    run -78 --separate-stderr rlock -q -k "$KEY" -u bad -- true
    assert_line "^rlock: $KEY: misconfigured: "
    run -64 --separate-stderr rlock -q -k "$KEY"
    assert_line '^rlock: '
    run -0 --separate-stderr rlock -q -k "$KEY:2" --report "$DIR" -- true
    assert_eq "$stderr" ""
}

@test "nothing is said of a run without trouble; with -v every step, with its time" {
    local line before now=0
    run -3 --separate-stderr rlock -k "$KEY" -t 1 -- \
        sh -c 'sleep 0.6; echo out; echo err >&2; exit 3'
    assert_eq "$output|$stderr" 'out|err'
    run -3 --separate-stderr rlock -v -k "$KEY" -t 1 -- sh -c 'sleep 0.6; exit 3'
    assert_eq "$(sed 's/ ([0-9]*\.[0-9]* s)$//' <<<"$stderr" | uniq)" \
        "$(printf "rlock: $KEY: %s\n" granted renewed released)"
    while IFS= read -r line; do
        before=$now
        [[ $line =~ ' ('([0-9]+)\.([0-9]{3})' s)'$ ]] || fail "no time: $line"
        now=$((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]}))
        ((now >= before)) || fail "time goes back: $stderr"
    done <<<"$stderr"
    ((now >= 600)) || fail "the release came after $now ms"
}

@test "-v tells of a signal that is passed on" {
    start job "$RLOCK" -v -k "$KEY" -- \
        sh -c 'trap "exit 4" USR1; echo ready; while :; do sleep 0.01; done'
    eventually 5 file_has "$DIR/job.out" ready
    kill -USR1 "$pid"
    finish job
    assert_status 4
    assert_match "$stderr" "rlock: $KEY: signal: User defined signal 1 \("
}

# ---- the report ----

# reports VERDICT STATUS ARG...: rlock with these words ends so, and reports it.
reports() {
    local verdict=$1 wanted=$2
    shift 2
    run "-$wanted" --separate-stderr rlock -k "$KEY" --report "$DIR/report" "$@"
    assert_report "$verdict" "$wanted"
}

assert_report() { # VERDICT STATUS
    assert_eq "$(json "$DIR/report" '"%s %s %s: %s" % (o["verdict"], o["status"], o["key"],
        " ".join(k for k, v in o.items() if (type(v) is str) == (k in ("verdict", "key"))
            and (type(v) is str or type(v) is int and v >= 0)))')" \
        "$1 $2 $KEY: verdict status waited_ms held_ms renewals paused_ms fence key" \
        "$(<"$DIR/report")"
    assert_eq "$(wc -l <"$DIR/report")" 1
}

@test "the report tells each verdict with its status" {
    reports granted 0 -- true
    reports granted 76 -- sh -c 'exit 76' # the command's own
    reports granted 137 -- sh -c 'kill -9 $$'
    reports max-hold 124 --max-hold 0.1 -- sleep 20
    reports not-executable 126 -- "$DIR"
    reports not-found 127 -- "$DIR/none"
    reports usage 64 -t 1 --kill-after 5 -- true
    reports unreachable 69 --connect-timeout 0.1 -u "unix://$DIR/none" -- true
    reports misconfigured 78 -u bad -- true
    reports misconfigured 78 --password-file "$DIR/none" -- true
    reports lost 76 -c "$(asking) del '$KEY'"
    redis_cli set "$KEY" other PX 60000
    reports busy 75 -n -- true
    reports timeout 9 -w 0.1 -E 9 -- true
    redis_cli del "$KEY"
    redis_cli rpush "$KEY" a
    reports refused 77 -- true
}

@test "the report tells of a signal that ended the wait" {
    redis_cli set "$KEY" other PX 60000
    start waiter env --default-signal "$RLOCK" -k "$KEY" --report "$DIR/report" -- true
    never 1 dead "$pid" # long enough that it has taken its signals over
    kill -TERM "$pid"
    finish waiter
    assert_status 143
    assert_report interrupted 143
    assert_between "$(json "$DIR/report" 'o["waited_ms"]')" 500 60000 waited_ms
    assert_eq "$(json "$DIR/report" '[o["held_ms"], o["renewals"], o["fence"]]')" '[0, 0, 0]'
}

@test "the report tells that the system failed rlock" {
    need strace
    run --separate-stderr without_leaks strace -f -qq -o /dev/null -e trace=clone,fork \
        -e inject=clone,fork:error=EAGAIN "$RLOCK" -k "$KEY" --report "$DIR/report" -- true
    assert_status 71
    assert_report system 71
}

@test "the report tells how long rlock waited and held, how often it renewed, and the fence" {
    redis_cli set "$KEY" other PX 1000
    reports granted 0 -t 1 -- sh -c 'echo "$RLOCK_FENCE" >"$DIR/fence"; sleep 1'
    assert_eq "$(json "$DIR/report" 'o["fence"]')" "$(<"$DIR/fence")"
    # the other's lease was 1 s, of which some had passed before rlock was there
    assert_between "$(json "$DIR/report" 'o["waited_ms"]')" 200 20000 waited_ms
    assert_between "$(json "$DIR/report" 'o["held_ms"]')" 1000 20000 held_ms
    assert_between "$(json "$DIR/report" 'o["renewals"]')" 1 100 renewals
    reports granted 0 -- true
    assert_between "$(json "$DIR/report" 'o["held_ms"]')" 0 900 held_ms
    assert_eq "$(json "$DIR/report" 'o["renewals"]')" 0
}

@test "a report takes the place of an older one" {
    printf '%5000s\n' x >"$DIR/report"
    reports granted 0 -- true
}

@test "a report that can't be written changes no status, and is said" {
    local path
    mkfifo "$DIR/unread"
    for path in /dev/full "$DIR/none/report" "$DIR" "$DIR/unread"; do
        run -3 --separate-stderr timeout -k 1 10 \
            "$RLOCK" -k "$KEY" --report "$path" -- sh -c 'exit 3'
        assert_line "^rlock: $KEY: no-report: $path: "
        gone "$KEY"
        redis_cli set "$KEY" other PX 60000
        run -75 --separate-stderr timeout -k 1 10 \
            "$RLOCK" -n -k "$KEY" --report "$path" -- true
        assert_match "$stderr" "^rlock: $KEY: busy: .*rlock: $KEY: no-report: $path: "
        redis_cli del "$KEY"
    done
}
