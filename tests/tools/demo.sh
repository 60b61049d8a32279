#!/bin/sh
# demo: the main job, for a person to watch (`make demo`).
#
# The lock is in a private server, which the first rlock starts and which ends after the last.

set -eu
cd "$(dirname "$0")/../.."

first=
RLOCK_LOCAL_DIR=$(mktemp -d)
export RLOCK_LOCAL_DIR
trap 'kill $first 2>/dev/null || :; rm -rf "$RLOCK_LOCAL_DIR"' EXIT
trap 'exit 1' HUP INT TERM

say() { printf '\n%s\n' "$*"; }

# Shows the command as it could be typed, and runs it.
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

say 'A job that takes 3 seconds, under the lock "demo":'
show ./rlock -u local: -k demo -- \
    sh -c 'echo "   first: has the lock, fence $RLOCK_FENCE"; sleep 3; echo "   first: ready"' &
first=$!
while ./rlock -q -u local: -k demo -n true; do # until the first one has it
    sleep 0.1
done

say 'The same job, started a second time meanwhile, does not wait (-n):'
status=0
show ./rlock -u local: -k demo -n -- echo '   this is not run' || status=$?
echo "   its status is $status"

say 'And a third time, waiting for its turn:'
show ./rlock -u local: -k demo -- sh -c 'echo "   third: has the lock, fence $RLOCK_FENCE"'

wait "$first"
first=
[ "$status" -eq 75 ]
say 'One at a time, and each grant with a higher fence.'
