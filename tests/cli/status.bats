#!/usr/bin/env bats
# status: who holds a lock and who waits for it, for people and for programs.

load ../helpers/common
load ../helpers/server
load ../helpers/pty

TOKEN=0123456789abcdef0123456789abcdef

setup() {
    server_setup
    need python3
    export TZ=UTC
}

# told EXPRESSION: prints the Python expression for the output, which is one JSON object, `it`.
told() { python3 -c 'import json, sys; it = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' \
    "$output" "$1"; }

status_of() { run --separate-stderr "$RLOCK" status -k "$KEY" "$@"; }

@test "status: it shows the holder, the time left, the fence, and the waiters in their order" {
    hold first -k "$KEY" -t 30 --label 'a b%'
    queued second --label two -- true
    queued third -- true
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
    queued third --slots 2 -- true
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

@test "status: the members of its JSON are those in the manual" {
    hold first -k "$KEY" --label x --slots 1
    queued second --label x --slots 1 -- true
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

@test "status --watch: without a terminal it prints again when a holder or waiter comes or goes" {
    times() { [[ $(grep -c "^$KEY: $1" "$DIR/watch.out") == "$2" ]]; }
    start watch "$RLOCK" status -k "$KEY" --watch
    eventually 5 times free 1
    hold first -k "$KEY" -t 10
    eventually 5 times held 1
    queued second -- true
    eventually 5 file_has "$DIR/watch.out" 'waiting  1'
    times held 2
    never 1 times held 3 # renewals and passing time are not shown as changes
    kill "$(<"$DIR/pids/second")"
    eventually 5 times held 3
    let_go first
    eventually 5 times free 2
    kill -TERM "$(<"$DIR/pids/watch")"
    ended 143 watch
    assert_eq "$stderr" ""
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
    pty_status 130
}
