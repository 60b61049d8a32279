#!/bin/sh
# run: runs unit test programs, and prints their results as one TAP stream.
#
#     tests/unit/run.sh PROGRAM...
#
# A program that crashes, hangs, or ends with another status than its results deserve counts as
# one more failure. Reports of sanitizers, which go to files beside the programs, are shown.
# RLOCK_TEST_JOBS programs run at the same time; by default it is one after the other.

set -u

# one PROGRAM: runs it, and prints its results.
one() {
    program=$1
    name=${program##*/}
    output=$(timeout 120 "$program" 2>&1 </dev/null)
    status=$?
    printf '%s\n' "$output" | sed "/^1\.\.[0-9]*$/d; s/^\(not \)\{0,1\}ok [0-9]* - /&$name: /"
    failed=$(printf '%s\n' "$output" | grep -c '^not ok')
    if ! printf '%s\n' "$output" | grep -q '^1\.\.[1-9]' ||
        { [ "$failed" -eq 0 ] && [ "$status" -ne 0 ]; }; then
        echo "not ok 0 - $name: ended too early, status $status"
        cat "${program%/unit/*}"/report.* 2>/dev/null | sed 's/^/# /'
    fi
    rm -f "${program%/unit/*}"/report.* # or the next suite would take them for its own
}

# several PROGRAM...: the same of each, at the same time; the results come one program at a time.
several() {
    folder=$(mktemp -d) || exit
    trap 'rm -rf "$folder"' EXIT
    printf '%s\n' "$@" | RLOCK_TEST_RESULTS=$folder xargs -P "$RLOCK_TEST_JOBS" -n 1 "$0"
    cat "$folder"/*
}

if [ -n "${RLOCK_TEST_RESULTS:-}" ]; then # one of several
    one "$1" >"$RLOCK_TEST_RESULTS/${1##*/}"
    exit
fi

if [ "${RLOCK_TEST_JOBS:-1}" -gt 1 ]; then
    several "$@"
else
    for each; do
        one "$each"
    done
fi | awk '
    /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) }
    /^not ok /    { failed++ }
                  { print; fflush() }
    END           { print "1.." n + 0; exit failed > 0 || n == 0 }'
