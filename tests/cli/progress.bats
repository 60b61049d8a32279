#!/usr/bin/env bats
# progress: the line on the terminal that shows whom rlock waits for, and the messages elsewhere.

load ../helpers/common
load ../helpers/server
load ../helpers/pty

setup() {
    server_setup
    export LC_ALL=C
    # A short key and command name, because the terminal has only 80 columns.
    KEY=k$BATS_TEST_NUMBER
    pty_start
}

taken() { redis_cli set "$KEY" other PX 600000 >/dev/null; }

free() { redis_cli del "$KEY" >/dev/null; }
# drawn: prints each state of the line. The last one may be incomplete.
drawn() { pty_states | grep -a '^rlock: .*: waiting ' || :; }
last_drawn() { drawn | tail -n 2 | head -n 1; }
last_is() { [[ $(last_drawn) =~ $1 ]]; }
assert_cleared() { refute_match "$(pty_rows)" 'waiting' 'the screen'; }

@test "the progress line shows holder, time and place in the queue, and is drawn each second" {
    hold holder -k "$KEY" -t 60 --label 'spring cleaning'
    queued first -- true
    # rlock is second in the queue, and asks the server only every 2.5 s
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 0s, .*, for sh of '
    pty_expect 15 'waiting ([4-9]|[0-9]{2,})s'
    (($(drawn | grep -o 'waiting [0-4]s' | sort -u | wc -l) >= 2)) || fail "$(drawn)"
    assert_match "$(last_drawn)" \
        "^rlock: $KEY: waiting [0-9]+s, place 2, (1m00|[45][0-9])s left, for sh of "
    assert_eq "$(pty_rows | grep -c waiting)" 1 'rows'
    pty_resize 200 # so wide that nothing is cut
    eventually 5 last_is "for sh of [^ ]+@[^ ]+, pid $(<"$DIR/pids/holder") \(spring cleaning\)$"
    let_go holder
    pty_expect 5 $'done\r'
    pty_prompt
    assert_cleared
}

# ---- signals while the line is drawn ----

@test "^Z and ^C clear the progress line, fg draws it again, in the background none is drawn" {
    taken
    pty_type 'rlock -k "$KEY" -- echo done'
    pty_expect 5 'waiting 0s, .*, for '
    pty_key C-z
    pty_expect 5 'Stopped'
    pty_prompt
    assert_cleared
    pty_type 'bg'
    pty_prompt
    eventually 5 in_line 1
    never 1 pty_matches 'waiting'
    pty_type 'fg'
    pty_expect 5 'waiting [0-9]+s, .*, for '
    pty_key C-c
    pty_prompt
    pty_status 130
    assert_cleared
    in_line 0
}

# bats test_tags=long
@test "a terminal that ^S has stopped doesn't delay rlock when it is granted the lock" {
    taken
    pty_type 'rlock -k "$KEY" -- touch "$DIR/ran"'
    pty_expect 5 'waiting 1s, .*, for '
    pty_key C-s
    never 2 pty_matches 'waiting 9s' # rlock goes on drawing, but the terminal takes nothing
    free
    eventually 5 test -e "$DIR/ran"
    pty_key C-q
    pty_prompt
}

# ---- where no line is drawn ----

@test "no progress line is drawn with -q, --json or -v, nor if stderr isn't the terminal" {
    local words
    taken
    for words in '-q' '--json' '-v' '-v --json' '2>"$DIR/err"' '2>&1 | cat'; do
        pty_type "rlock -k \"\$KEY\" -c true $words"
        eventually 5 waits
        free
        pty_prompt
        taken
    done
    assert_none_drawn_in_place
    [[ ! -s $DIR/err ]] || fail "rlock wrote to stderr: $(<"$DIR/err")"
}
assert_none_drawn_in_place() {
    refute_match "$(pty_states)" ': waiting [0-9]' 'the screen'
}
