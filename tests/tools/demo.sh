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

# show COMMAND...: prints the command with the quotes that a shell needs, runs it, and sets status.
show() {
    printf '$'
    for word; do
        case $word in
            *[!A-Za-z0-9_./:-]*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    status=0
    "$@" || status=$?
}

# expect WHICH STATUS: ends the demonstration unless this rlock ended with STATUS.
expect() {
    [ "$status" -eq "$2" ] && return
    echo "demo: the $1 rlock ended with the status $status instead of $2" >&2
    exit 1
}

# Single quotes: these variables are for the job's shell.
job='echo "   first: has the lock, fence $RLOCK_FENCE"; touch "$STARTED"; '
job=$job'sleep 3; echo "   first: ready"'

say 'A job that takes 3 seconds, under the lock "demo":'
{
    show "$rlock" -u local: -k demo -- sh -c "$job"
    echo "$status" >"$dir/first"
} &
first=$!
until [ -e "$STARTED" ] || [ -s "$dir/first" ]; do
    sleep 0.1
done
if [ ! -e "$STARTED" ]; then
    read -r status <"$dir/first"
    expect first 0
fi

say 'The same job, started a second time while the first one runs, does not wait (-n):'
show "$rlock" -u local: -k demo -n -- echo '   second: has the lock'
expect second 75
echo "   rlock did not run the second job; its exit status is $status: the lock is held"

say 'The same job, started a third time, waits until the first one ends:'
show "$rlock" -u local: -k demo -- sh -c 'echo "   third: has the lock, fence $RLOCK_FENCE"'
expect third 0

wait "$first"
first=
read -r status <"$dir/first"
expect first 0
say 'The jobs ran one after the other. Each got a higher fence than the one before it.'
