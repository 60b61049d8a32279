#!/usr/bin/env bash
# run_bats: runs bats files side by side, and prints their results as one TAP stream.
#
#     run_bats.sh FILE_OR_FOLDER...
#
#   JOBS       how many files run at the same time; default: 3 for each processor
#   BATSFLAGS  for each bats, say `-f 'a name'` or --timing
#
# Tests wait more than they work, so more files run at once than there are processors. The tests of
# a file run in their order, and its results are shown when it has ended. The files that took
# longest the last time start first, so that none of them is left over at the end; how long each
# took is kept in build/bats/ (before the first run the longest text counts as the slowest).
#
# A file with a line that begins with `# run: alone` starts hundreds of processes. Such files run
# one after the other, when all others have ended: beside them nobody else is scheduled in time.

set -uo pipefail

jobs=${JOBS:-$((3 * $(nproc)))}
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

# run FILE: its results go to a file of their own. A bats that says nothing of a failure fails, too.
run() {
    local name out from=$SECONDS
    name=$(name_of "$1")
    out=$work/$name
    # shellcheck disable=SC2086
    bats --tap ${BATSFLAGS:-} "$1" >"$out" 2>&1 </dev/null || grep -q '^not ok ' "$out" ||
        echo "not ok 0 $1: bats ended with a failure" >>"$out"
    echo $((SECONDS - from)) >"$times/$name"
    mv "$out" "$out.done"
}

n=0
n_failed=0

# show_ended: prints what has ended and was not shown yet, numbered on, with the file's name.
show_ended() {
    local out name
    for out in "$work"/*.done; do
        [[ -e $out ]] || continue
        name=${out##*/}
        name=${name%.done}
        awk -v n="$n" -v name="${name/_//}" '
            /^1\.\./ { next }
            /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n " " name ":") }
            { print }' "$out"
        n=$((n + $(grep -cE '^(not )?ok ' "$out")))
        n_failed=$((n_failed + $(grep -c '^not ok ' "$out")))
        rm -f "$out"
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
echo "1..$n"
((n > 0 && n_failed == 0))
