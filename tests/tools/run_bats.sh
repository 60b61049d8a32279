#!/usr/bin/env bash
# run_bats: runs bats files side by side, and prints their results as one TAP stream.
#
#     run_bats.sh FILE_OR_FOLDER...
#
#   JOBS       how many files run at the same time; default: 3 for each processor
#   AGAIN_MAX  how many tests that fail are run once more; default: 3
#   BATSFLAGS  for each bats, say `-f 'a name'` or --timing
#
# Tests wait more than they work, so more files run at once than there are processors. The tests of
# a file run in their order, and its results are shown when it has ended. The files that took
# longest the last time start first, so that none of them is left over at the end; how long each
# took is kept in build/bats/ (before the first run the longest text counts as the slowest).
#
# A file with a line that begins with `# run: alone` starts hundreds of processes. Such files run
# one after the other, when all others have ended: beside them nobody else is scheduled in time.
#
# A test that fails is run once more, alone, when all else has ended: many tests measure when
# something happens, and a machine that stood still for a second breaks them without a fault of
# rlock's. What the test said the first time is printed as a comment, and the last lines name the
# tests that passed only alone: somebody has to look into them. More than AGAIN_MAX such tests, a
# test that fails twice, and a report of a sanitizer count as failures.

set -uo pipefail

jobs=${JOBS:-$((3 * $(nproc)))}
again_max=${AGAIN_MAX:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
times=build/bats/${RLOCK_TEST_FLAVOUR:-plain}
mkdir -p "$times"

# name_of FILE: tests/cli/main.bats as cli_main.
name_of() {
    local name=${1#tests/}
    name=${name%.bats}
    echo "${name//\//_}"
}

# slowest_first: reads names of files, a line each, and sorts them.
slowest_first() {
    local file seconds
    while read -r file; do
        seconds=$(cat "$times/$(name_of "$file")" 2>/dev/null) ||
            seconds=$(($(wc -l <"$file") / 10))
        printf '%d %s\n' "$seconds" "$file"
    done | sort -k1,1rn -k2 | cut -d ' ' -f 2
}

# run FILE [OPTION...]: its results go to a file of their own. A bats that says nothing of a failure
# fails, too, as does one that found no test.
run() {
    local name out from=$SECONDS
    name=$(name_of "$1")
    out=$work/$name
    # shellcheck disable=SC2086
    bats --tap ${BATSFLAGS:-} "${@:2}" "$1" >"$out" 2>&1 </dev/null || grep -q '^not ok ' "$out" ||
        echo "not ok 0 $1: bats ended with a failure" >>"$out"
    (($# > 1)) || echo $((SECONDS - from)) >"$times/$name"
    echo "$1" >"$out.file"
    mv "$out" "$out.done"
}

n=0
n_failed=0
again=()        # the tests to run alone, each as `FILE<tab>NAME`
passed_again=() # those of them that passed then

# may_run_again FILE OUTPUT: the tests of this output that failed, each as `FILE<tab>NAME`; nothing
# if they can't be excused by a busy machine.
may_run_again() {
    ! grep -qE 'Sanitizer|runtime error:' "$2" || return 0
    sed -n 's/^not ok [1-9][0-9]* //p' "$2" | grep -vE '^(setup_file|teardown_file) failed' |
        sed "s|^|$1\t|"
}

# show FILE OUTPUT: prints these results, numbered on, with the file's name, and counts them.
# Failures that may be run again are printed as comments, and not counted yet.
show() {
    local name new=()
    name=$(name_of "$1")
    mapfile -t new < <(may_run_again "$1" "$2")
    ((${#again[@]} + ${#new[@]} <= again_max)) || new=()
    again+=("${new[@]}")
    printf '%s\n' "${new[@]#*$'\t'}" | awk -v n="$n" -v name="${name/_//}" '
        NR == FNR { is_again[$0] = 1; next }
        /^1\.\./ { next }
        { title = $0; sub(/^not ok [0-9]+ /, "", title) }
        /^not ok / && title in is_again { print "# failed beside others: " name ": " title; next }
        /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n " " name ":") }
        { print }' - "$2"
    n=$((n + $(grep -cE '^(not )?ok ' "$2") - ${#new[@]}))
    n_failed=$((n_failed + $(grep -c '^not ok ' "$2") - ${#new[@]}))
}

# show_ended: shows what has ended and was not shown yet.
show_ended() {
    local out file
    for out in "$work"/*.done; do
        [[ -e $out ]] || continue
        read -r file <"${out%.done}.file"
        show "$file" "$out"
        rm -f "$out"
    done
}

# run_again: runs what failed beside others alone. It must pass now.
run_again() {
    local test file title pattern before
    local again_max=0
    for test in "${again[@]}"; do
        file=${test%%$'\t'*}
        title=${test#*$'\t'}
        # a test's name is text, and --filter takes a pattern
        pattern=$(sed 's/[][\.*^$+?(){}|/]/\\&/g' <<<"$title")
        before=$n_failed
        run "$file" --filter "^$pattern\$"
        show_ended
        ((n_failed > before)) || passed_again+=("$(name_of "$file"): $title")
    done
}

# run_all JOBS FILE...: so many at the same time; returns when all have ended.
run_all() {
    local jobs=$1 running=0 file
    shift
    for file; do
        if ((running == jobs)); then
            wait -n
            running=$((running - 1))
            show_ended
        fi
        run "$file" &
        running=$((running + 1))
    done
    wait
    show_ended
}

mapfile -t files < <(for place; do
    if [[ -d $place ]]; then printf '%s\n' "$place"/*.bats; else echo "$place"; fi
done | slowest_first)
mapfile -t alone < <(grep -l '^# run: alone' "${files[@]}")
mapfile -t together < <(grep -L '^# run: alone' "${files[@]}")

run_all "$jobs" "${together[@]}"
run_all 1 "${alone[@]}"
run_again
((${#passed_again[@]} == 0)) ||
    printf '# failed beside others, passed alone: %s\n' "${passed_again[@]}"
echo "1..$n"
((n > 0 && n_failed == 0))
