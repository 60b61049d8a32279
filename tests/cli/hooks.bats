#!/usr/bin/env bats
# hooks: the command of --on-event, here called the hook: at which events rlock runs the hook, and
# what the hook gets. Whatever the hook does, it changes neither a run nor its status.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}

# The command in most tests: it adds a line to $DIR/events.
NOTE='echo "$RLOCK_EVENT ${RLOCK_FENCE:+fence} $RLOCK_EVENT_HOLDER" >>"$DIR/events"'
# A command that ignores TERM, writes its pid, and hangs.
HANG='trap "" TERM; echo $$ >>"$DIR/hanging"; exec sleep 1000'

# events: the events for which the command of --on-event has run, in one line.
events() { cut -d' ' -f1 "$DIR/events" 2>/dev/null | xargs; }
events_are() { [[ $(events) == "$1" ]]; }

# end_hanging: kills the commands that hang.
end_hanging() {
    local pid
    while read -r pid; do
        kill -KILL "$pid" 2>/dev/null || :
    done <"$DIR/hanging"
}

# ---- at which events the hook runs ----

@test "a run that gets the lock: the hook runs at granted and released, and gets the fence" {
    run -3 --separate-stderr rlock -k "$KEY" --on-event "$NOTE" -- sh -c 'exit 3'
    assert_eq "$stderr" ''
    eventually 5 events_are 'granted released'
    assert_eq "$(cut -d' ' -f2 "$DIR/events" | xargs)" 'fence fence'
}

@test "a run that doesn't get the lock: the hook runs at busy, and gets the holder's name" {
    hold holder -k "$KEY" --label nightly
    run -75 --separate-stderr rlock -n -k "$KEY" --on-event "$NOTE" -- true
    eventually 5 events_are busy
    assert_match "$(<"$DIR/events")" "^busy  sh of .* \(nightly\)$"
    run -9 --separate-stderr rlock -w 0.1 -E 9 -q -k "$KEY" --on-event "$NOTE" -- true
    eventually 5 events_are 'busy busy'
    let_go holder
}

@test "a long wait: the hook runs once at waiting-long, then at granted" {
    hold holder -k "$KEY" -t 60
    start waiter "$RLOCK" -q -k "$KEY" --warn-wait 0.001 --on-event "$NOTE" -- true
    eventually 10 events_are waiting-long
    assert_match "$(<"$DIR/events")" '^waiting-long  sh of '
    let_go holder
    finish waiter
    assert_eq "$status$stderr" 0
    eventually 5 events_are 'waiting-long granted released'
}

@test "a lock that another owner takes: the hook runs at lost, and gets the new holder's name" {
    run -76 rlock -q -k "$KEY" -t 4 --on-event "$NOTE" \
        -c "$(asking) set '$KEY' other >/dev/null; sleep 20"
    eventually 5 events_are 'granted lost'
    assert_match "$(<"$DIR/events")" $'\nlost fence another program'
}

@test "if rlock is killed, the guard lets the hook run at lost" {
    hold job -k "$KEY" --on-event "$NOTE"
    eventually 5 events_are granted
    kill -KILL "$(<"$DIR/pids/job")"
    finish job
    eventually 5 events_are 'granted lost'
}

@test "a run that ends for another reason than its lock doesn't run the hook" {
    run -69 rlock -u redis://127.0.0.1:1 -n -k "$KEY" --on-event "$NOTE" -- true
    run -76 rlock --nested -k "$KEY" --on-event "$NOTE" -- true
    run -64 rlock --on-event "$NOTE" -- true
    run rlock --explain -k "$KEY" --on-event "$NOTE" -- true
    run -0 rlock -k "$KEY" --on-event "$NOTE" -- true
    eventually 5 events_are 'granted released'
}

# ---- whatever the hook does ----

@test "a command of --on-event that hangs delays no part of the run, and changes no status" {
    hold holder -k "$KEY:2"
    run -5 --separate-stderr rlock -k "$KEY" --on-event "$HANG" --wait-all -- sh -c 'exit 5'
    assert_eq "$stderr" ''
    # The first command still hangs, so rlock has not waited for its end.
    eventually 5 file_has "$DIR/hanging" .
    alive "$(<"$DIR/hanging")"
    gone "$KEY"
    run -75 rlock -q -n -k "$KEY:2" --on-event "$HANG" -- true
    start waiter "$RLOCK" -k "$KEY:2" --warn-wait 0.001 --on-event "$HANG" -- true
    eventually 10 eval '(($(wc -l <"$DIR/hanging") == 3))'
    let_go holder
    finish waiter
    assert_status 0
    run -76 rlock -q -k "$KEY" -t 4 --on-event "$HANG" \
        -c "$(asking) set '$KEY' other >/dev/null; sleep 20"
    alive "$(tail -n 1 "$DIR/hanging")"
    end_hanging
}

# bats test_tags=long
@test "a command of --on-event that hangs is killed after 10 s, with its process group" {
    # shellcheck disable=SC2016
    run -0 rlock -k "$KEY" --on-event 'sleep 1000 & echo $! >>"$DIR/hanging"; '"$HANG" -- true
    eventually 5 eval '(($(wc -l <"$DIR/hanging") == 2))'
    cp "$DIR/hanging" "$DIR/first"
    never 5 dead "$(tail -n 1 "$DIR/first")"
    eventually 20 dead "$(tail -n 1 "$DIR/first")"
    eventually 5 dead "$(head -n 1 "$DIR/first")"
    # The hook process then runs the command for the next event, `released`, which hangs, too.
    eventually 5 eval '(($(wc -l <"$DIR/hanging") == 4))'
    end_hanging
}

@test "rlock says once that the command of --on-event has failed, and keeps its own status" {
    local failing why
    while IFS='|' read -r failing why; do
        # shellcheck disable=SC2016
        start job "$RLOCK" -k "$KEY" --on-event "$failing" -- \
            sh -c 'until grep -q . "$DIR/job.err"; do sleep 0.05; done; exit 4'
        finish job
        assert_status 4
        assert_line "^rlock: $KEY: warning: --on-event: for granted the command $why$"
        run -4 --separate-stderr rlock -q -k "$KEY" --on-event "$failing" -- sh -c 'exit 4'
        assert_eq "$stderr" ''
    done <<'END'
exit 1|ended with status 1
exec /no/such/program 2>/dev/null|ended with status 127
kill -TERM $$|was ended by signal 15
END
}

@test "if the process that runs the command is killed, rlock goes on, and says so" {
    local hook
    hold job -k "$KEY" --on-event "$NOTE"
    eventually 5 events_are granted
    hook=$(hook_of "$(<"$DIR/pids/job")")
    kill -KILL "$hook"
    eventually 5 file_has "$DIR/job.err" 'the process that runs the command was killed'
    let_go job 6
    assert_status 6
    assert_line "^rlock: $KEY: warning: --on-event: the process that runs the command was killed$"
}
# hook_of PID: prints the PID of the process that runs the command of --on-event for rlock PID.
hook_of() {
    local child name
    for child in $(children "$1"); do
        read -r name <"/proc/$child/comm"
        [[ $name != rlock-hook ]] || echo "$child"
    done
}

@test "if the guard is killed, rlock ends its command, but not the command of --on-event" {
    hold job -k "$KEY" --on-event "$HANG"
    eventually 5 file_has "$DIR/hanging" .
    kill -KILL "$(guard_of "$(<"$DIR/pids/job")")"
    finish job
    assert_status 71
    alive "$(<"$DIR/hanging")"
    end_hanging
}

# ---- what the hook gets ----

@test "the command of --on-event is a session leader, and gets no descriptor, token or password" {
    local pid sid
    exec 7>"$DIR/inherited"
    # shellcheck disable=SC2016
    export RLOCK_SENTINEL_PASSWORD=secret1 REDIS_URL=redis://u:secret2@h
    # shellcheck disable=SC2016
    run -0 rlock -k "$KEY" --on-event \
        '[ "$RLOCK_EVENT" = granted ] || exit 0
         cat /proc/$$/environ >"$DIR/environ.new"; ls -l /proc/$$/fd >"$DIR/fds"
         ps -o pid=,sid= -p $$ >"$DIR/ids"; mv "$DIR/environ.new" "$DIR/environ"' -- \
        sh -c 'until test -s "$DIR/environ"; do :; done; echo "$RLOCK_TOKEN" >"$DIR/token"'
    exec 7>&-
    read -r pid sid <"$DIR/ids"
    assert_eq "$sid" "$pid"
    assert_match "$(<"$DIR/fds")" ' 0 -> /dev/null'
    refute_match "$(<"$DIR/fds")" ' [3-9] -> (/[^p]|socket|pipe)'
    [[ -s $DIR/token ]]
    run -1 grep -aF -e secret1 -e secret2 -e "$(<"$DIR/token")" "$DIR/environ"
}

@test "an rlock that the command of --on-event starts runs no such command" {
    local inner="$RLOCK -k $KEY:inner -- $RLOCK -k $KEY:inner2 -- true"
    echo "on-event = echo inner >>$DIR/events; $inner; echo end >>$DIR/events" >"$DIR/config"
    RLOCK_CONFIG=$DIR/config run -0 rlock -k "$KEY" -- true
    eventually 10 events_are 'inner end inner end'
    never 1 eval '! events_are "inner end inner end"'
}

# bats test_tags=long
@test "rlock keeps no pipe open for a command of --on-event that hangs" {
    # cat ends when rlock ends. If the command had the pipe open, cat would wait for the command.
    timeout 9 bash -c '"$0" -k "$1" --on-event "$2" -- true 2>&1 | cat' "$RLOCK" "$KEY" "$HANG"
    eventually 5 file_has "$DIR/hanging" .
    alive "$(<"$DIR/hanging")"
    end_hanging
}
