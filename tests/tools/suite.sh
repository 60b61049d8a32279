#!/bin/sh
# suite: runs parts of the tests; prints a line for each part, then what failed, then the counts.
#
#     suite.sh LOGS 'NAME: ARGUMENT...'...
#
# A part is a call of make with these arguments; its output is in LOGS/NAME.log. With V=1 the output
# is printed as well. A part that ends in & runs beside the next one. If a part fails without a
# failed test, its end counts as a failed test, and its last lines are shown. If `deps` or a build
# fails, no further part is run.
#
# The last line is `N passed, N failed`, followed by `, N skipped` if tests were skipped. The exit
# status is 0 if tests were run and none failed.

set -u

logs=$1
shift
here=${0%/*}
results=$here/results.awk
rm -rf "$logs"
mkdir -p "$logs"

# copy FILE: writes stdin to the file; with V=1, prints it as well.
copy() { if [ -n "${V:-}" ]; then tee "$1"; else cat >"$1"; fi; }

# run NAME ARGUMENT...: runs a part, and prints its line.
run() {
    name=$1 log=$logs/$1.log began=$(date +%s)
    shift
    [ ! -t 1 ] || printf '%s ...\r' "$name"
    { "${MAKE:-make}" "$@" || echo "# make: status $?"; } 2>&1 </dev/null | copy "$log"
    if tail -n 1 "$log" | grep -q '^# make: status' && ! grep -q '^not ok ' "$log"; then
        last=$(tail -n 20 "$log" | sed 's/^\(# \)*/# /')
        printf 'not ok - %s: make %s\n%s\n' "$name" "$*" "$last" >>"$log"
    fi
    counts=$(awk -f "$results" "$log" | tail -n 1)
    [ "$counts" != '0 passed, 0 failed' ] || counts=
    printf '%-14s %5d s   %s\n' "$name" $(($(date +%s) - began)) "$counts"
    grep '^left out: ' "$log"
    ! grep -q '^not ok ' "$log"
}

for part; do
    # shellcheck disable=SC2086 # the arguments of make are several words
    case $part in
        *'&')
            part=${part%&}
            run "${part%%:*}" ${part#*:} &
            ;;
        deps:* | *build:*) run "${part%%:*}" ${part#*:} || break ;;
        *) run "${part%%:*}" ${part#*:} ;;
    esac
done
wait
awk -f "$results" "$logs"/*.log
