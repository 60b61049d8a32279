#!/usr/bin/env bats
# hooks: the command of --on-event, here called the hook: at which events rlock runs the hook, and
# what the hook gets. Whatever the hook does, it changes neither a run nor its status.

load ../helpers/common
load ../helpers/server

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

# ---- whatever the hook does ----

@test "if the guard is killed, rlock ends its command, but not the command of --on-event" {
    hold job -k "$KEY" --on-event "$HANG"
    eventually 5 file_has "$DIR/hanging" .
    kill -KILL "$(guard_of "$(<"$DIR/pids/job")")"
    ended 71 job
    alive "$(<"$DIR/hanging")"
    end_hanging
}

# ---- what the hook gets ----

@test "an rlock that the command of --on-event starts runs no such command" {
    local inner="$RLOCK -k $KEY:inner -- $RLOCK -k $KEY:inner2 -- true"
    echo "on-event = echo inner >>$DIR/events; $inner; echo end >>$DIR/events" >"$DIR/config"
    RLOCK_CONFIG=$DIR/config run -0 rlock -k "$KEY" -- true
    eventually 10 events_are 'inner end inner end'
    never 1 eval '! events_are "inner end inner end"'
}
