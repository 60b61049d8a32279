#!/usr/bin/env bats
# report: messages as text and as JSON, --report, -q and -v.

load ../helpers/common
load ../helpers/server

# json FILE EXPRESSION: prints the Python expression for each line of the file, which is the JSON
# object `o` with its members in order. Fails if a line is no object, or has a member twice.
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

@test "-q reports only failures, and a busy lock is not a failure" {
    redis_cli set "$KEY" other PX 60000
    run -75 --separate-stderr rlock -q -n -k "$KEY" -- true
    assert_eq "$stderr" ""
    run -75 --separate-stderr rlock -q -w 2 -k "$KEY" -- true
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

@test "a run without trouble reports nothing, with -v each step with its time" {
    local line before now=0
    run -3 --separate-stderr rlock -k "$KEY" -t 6 -- \
        sh -c 'sleep 2.5; echo out; echo err >&2; exit 3'
    assert_eq "$output|$stderr" 'out|err'
    run -3 --separate-stderr rlock -v -k "$KEY" -t 6 -- sh -c 'sleep 2.5; exit 3'
    assert_eq "$(sed 's/ ([0-9]*\.[0-9]* s)$//' <<<"$stderr" | uniq)" \
        "$(printf "rlock: $KEY: %s\n" granted renewed released)"
    while IFS= read -r line; do
        before=$now
        [[ $line =~ ' ('([0-9]+)\.([0-9]{3})' s)'$ ]] || fail "the message has no time: $line"
        now=$((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]}))
        ((now >= before)) || fail "the times of the messages go back: $stderr"
    done <<<"$stderr"
    ((now >= 2500)) || fail "the release came after $now ms"
}

# ---- --report ----

# reports VERDICT STATUS ARG...: rlock ends with STATUS, and writes a report with VERDICT.
reports() {
    local verdict=$1 wanted=$2
    shift 2
    run "-$wanted" --separate-stderr rlock -k "$KEY" --report "$DIR/report" "$@"
    assert_report "$verdict" "$wanted"
}

# assert_report VERDICT STATUS: $DIR/report is one line, which has this verdict and status, and all
# other members of a report.
assert_report() {
    assert_eq "$(json "$DIR/report" '"%s %s %s: %s" % (o["verdict"], o["status"], o["key"],
        " ".join(k for k, v in o.items() if (type(v) is str) == (k in ("verdict", "key"))
            and (type(v) is str or type(v) is int and v >= 0)))')" \
        "$1 $2 $KEY: verdict status waited_ms held_ms renewals paused_ms fence key" \
        "$(<"$DIR/report")"
    assert_eq "$(wc -l <"$DIR/report")" 1
}

@test "--report has the verdict and the status, for each verdict" {
    reports granted 0 -- true
    reports granted 76 -- sh -c 'exit 76' # the command's status, not that of a lost lock
    reports granted 137 -- sh -c 'kill -9 $$'
    reports max-hold 124 --max-hold 0.1 -- sleep 20
    reports not-executable 126 -- "$DIR"
    reports not-found 127 -- "$DIR/none"
    reports usage 64 -t 1 --kill-after 5 -- true
    reports unreachable 69 --connect-timeout 0.1 -u "unix://$DIR/none" -- true
    reports misconfigured 78 --password-file "$DIR/none" -- true
    reports lost 76 -c "$(asking) del '$KEY'"
    redis_cli set "$KEY" other PX 60000
    reports busy 75 -n -- true
    reports timeout 9 -w 2 -E 9 -- true
    redis_cli del "$KEY"
    redis_cli rpush "$KEY" a
    reports refused 77 -- true
}

@test "--report has the times of wait and hold, the number of renewals and the fence" {
    redis_cli set "$KEY" other PX 1000
    reports granted 0 -t 6 -- sh -c 'echo "$RLOCK_FENCE" >"$DIR/fence"; sleep 2.5'
    assert_eq "$(json "$DIR/report" 'o["fence"]')" "$(<"$DIR/fence")"
    # The other holder's lease was 1 s, and a part of it had passed when rlock started.
    assert_between "$(json "$DIR/report" 'o["waited_ms"]')" 200 20000 waited_ms
    assert_between "$(json "$DIR/report" 'o["held_ms"]')" 1000 20000 held_ms
    assert_between "$(json "$DIR/report" 'o["renewals"]')" 1 100 renewals
    reports granted 0 -- true
    assert_between "$(json "$DIR/report" 'o["held_ms"]')" 0 900 held_ms
    assert_eq "$(json "$DIR/report" 'o["renewals"]')" 0
}

# ---- --report to descriptors, links, and files of other users ----

@test "--report to an inherited pipe writes to it, and --report - to standard output" {
    local path
    cd "$DIR"
    for path in - /dev/stdout /dev/fd/1 /proc/self/fd/1; do
        run -3 --separate-stderr rlock -k "$KEY" --report "$path" -- sh -c 'echo out; exit 3'
        assert_eq "$stderr" ''
        printf '%s\n' "${lines[1]}" >"$DIR/report"
        assert_eq "${lines[0]}, ${#lines[@]}" 'out, 2'
        assert_report granted 3
    done
    [[ ! -e - ]]
    run -0 --separate-stderr rlock -k "$KEY" --report ./- -- true
    assert_eq "$output$stderr" ''
    mv ./- report
    assert_report granted 0
    run -0 --separate-stderr bash -c '"$1" -k "$2" --report - -- true >&-' - "$RLOCK" "$KEY"
    assert_line "^rlock: $KEY: no-report: -: Bad file descriptor"
}

# ---- --report-append ----

@test "--report-append adds a line with the time of day, also beside --report" {
    local wanted='time verdict status waited_ms held_ms renewals paused_ms fence key'
    run -0 --separate-stderr rlock -k "$KEY" --report-append "$DIR/log" -- true
    run -3 --separate-stderr rlock -k "$KEY" --report-append "$DIR/log" \
        --report "$DIR/report" -- sh -c 'exit 3'
    assert_eq "$stderr" ''
    redis_cli set "$KEY" other PX 60000
    RLOCK_REPORT_APPEND=$DIR/log run -75 rlock -k "$KEY" -n -- true
    assert_eq "$(json "$DIR/log" '"%s %s" % (o["verdict"], o["status"])' | xargs)" \
        'granted 0 granted 3 busy 75'
    assert_eq "$(json "$DIR/log" '" ".join(o)' | uniq)" "$wanted"
    assert_eq "$(json "$DIR/log" 'abs((__import__("datetime").datetime.fromisoformat(
        o["time"].replace("Z", "+00:00")) - __import__("datetime").datetime.now(
        __import__("datetime").timezone.utc)).total_seconds()) < 60 and o["time"][-1] == "Z"' |
        uniq)" true
    assert_report granted 3
    run -0 --separate-stderr rlock -k "$KEY:2" --report-append "$DIR/none/log" -- true
    assert_line "^rlock: $KEY:2: no-report: $DIR/none/log: No such file"
}
