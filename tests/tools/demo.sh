#!/bin/sh
# demo: three runs of a command under the same lock, for a person to watch (`make demo`).
#
# The first rlock starts a private Redis server for the lock (`-u local:`). The server ends by
# itself after the last rlock has ended. RLOCK names another rlock than ./rlock.

set -eu
cd "$(dirname "$0")/../.."

rlock=${RLOCK:-./rlock}
first=
dir=$(mktemp -d)
export RLOCK_LOCAL_DIR="$dir/local" STARTED="$dir/started"
trap 'kill $first 2>/dev/null || :; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

say() { printf '\n%s\n' "$*"; }

# show COMMAND...: prints the command with the quotes that a shell needs, and runs it.
show() {
    printf '$'
    for word; do
        case $word in
            *[!A-Za-z0-9_./:-]*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

# Single quotes: these variables are for the job's shell.
job='echo "   first: has the lock, fence $RLOCK_FENCE"; touch "$STARTED"; '
job=$job'sleep 3; echo "   first: ready"'

say 'A job that takes 3 seconds, under the lock "demo":'
# The trap is for an rlock that fails before the job starts.
(trap 'touch "$STARTED"' EXIT && show "$rlock" -u local: -k demo -- sh -c "$job") &
first=$!
until [ -e "$STARTED" ]; do
    sleep 0.1
done

say 'The same job, started a second time while the first one runs, does not wait (-n):'
status=0
show "$rlock" -u local: -k demo -n -- echo '   second: has the lock' || status=$?
[ "$status" -eq 75 ]
echo "   rlock did not run the second job; its exit status is $status: the lock is held"

say 'The same job, started a third time, waits until the first one ends:'
show "$rlock" -u local: -k demo -- sh -c 'echo "   third: has the lock, fence $RLOCK_FENCE"'

wait "$first"
first=
say 'The jobs ran one after the other. Each got a higher fence than the one before it.'
