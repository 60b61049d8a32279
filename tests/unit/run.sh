#!/bin/sh
# run: runs unit test programs, and prints their results as one TAP stream.
#
#     tests/unit/run.sh PROGRAM...
#
# A program that crashes, runs for longer than 120 s (600 s in an emulator), prints no plan, or ends
# with a status other than 0 without a failed test adds one failed test. Sanitizers write their
# reports to files in the folder above the programs; after such a failure the reports are printed.
#
# A program whose checks fail runs a second time, and the second run counts. The reason: some checks
# compare times that two processes take, and fail without a fault of rlock if the machine stands
# still between the two. The failed checks of the first run are printed as comments, so that
# somebody finds out why. A program that crashed, hung, or made a sanitizer report runs only once.
#
#   RLOCK_TEST_JOBS      how many programs run at the same time; default: 1
#   RLOCK_TEST_EMULATOR  a program that runs each test program, which is its argument; default: none

set -u

limit=${RLOCK_TEST_EMULATOR:+600}
limit=${limit:-120}

# run_program PROGRAM: runs the program. Sets `output`, `status`, and `failed`, the number of checks
# that failed.
run_program() {
    # shellcheck disable=SC2086 # unquoted: an empty RLOCK_TEST_EMULATOR must add no argument
    output=$(timeout -k 5 "$limit" ${RLOCK_TEST_EMULATOR:-} "$1" 2>&1 </dev/null)
    status=$?
    failed=$(printf '%s\n' "$output" | grep -c '^not ok')
}

# run_one PROGRAM: runs the program, twice if checks fail, and prints its results without the plan,
# with its name added.
run_one() {
    program=$1
    name=${program##*/}
    run_program "$program"
    if [ "$failed" -gt 0 ] && [ "$status" -eq 1 ] && ! has_report "$program"; then
        printf '%s\n' "$output" | sed -n "/^not ok /{ s/^/# failed once: $name: /p
            :more
            n
            s/^#/# &/p
            t more
        }"
        run_program "$program"
    fi
    printf '%s\n' "$output" | sed "/^1\.\.[0-9]*$/d; s/^\(not \)\{0,1\}ok [0-9]* - /&$name: /"
    if ! printf '%s\n' "$output" | grep -q '^1\.\.[1-9]' ||
        { [ "$failed" -eq 0 ] && [ "$status" -ne 0 ]; }; then
        echo "not ok 0 - $name: ended too early, status $status"
        cat "${program%/unit/*}"/report.* 2>/dev/null | sed 's/^/# /'
    fi
    # The reports of this program must not be printed for the next program that fails.
    rm -f "${program%/unit/*}"/report.*
}

# has_report PROGRAM: returns 0 if a sanitizer has written a report.
has_report() {
    set -- "${1%/unit/*}"/report.*
    [ -e "$1" ]
}

# run_side_by_side PROGRAM...: runs this script once for each program, RLOCK_TEST_JOBS at the same
# time, each writing to a file of its own; then prints these files, so that results don't mix.
run_side_by_side() {
    folder=$(mktemp -d) || exit
    trap 'rm -rf "$folder"' EXIT
    printf '%s\n' "$@" | RLOCK_TEST_RESULTS=$folder xargs -P "$RLOCK_TEST_JOBS" -n 1 "$0"
    cat "$folder"/*
}

if [ -n "${RLOCK_TEST_RESULTS:-}" ]; then # run_side_by_side has called this script
    run_one "$1" >"$RLOCK_TEST_RESULTS/${1##*/}"
    exit
fi

if [ "${RLOCK_TEST_JOBS:-1}" -gt 1 ]; then
    run_side_by_side "$@"
else
    for each; do
        run_one "$each"
    done
fi | awk '
    /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) }
    /^not ok /    { failed++ }
                  { print; fflush() }
    END           { print "1.." n + 0; exit failed > 0 || n == 0 }'
