#!/usr/bin/env bash
# run_bats: runs several bats files at the same time, and prints their results as one TAP stream.
#
#     run_bats.sh FILE_OR_FOLDER...
#
#   JOBS       how many files run at the same time; default: 4 for each processor
#   AGAIN_MAX  how many failed tests may run a second time; default: 5
#   WITHIN_S   after so many seconds no file is started any more: each file that is left counts as
#              a skipped test; default: no limit
#   BATSFLAGS  options for each call of bats, for example `-f 'part of a test name'` or --timing
#
# More files run at the same time than there are processors, because tests spend most of their time
# waiting. The tests of one file run one after the other; the results of a file are printed when
# its last test has ended.
#
# The slowest files start first, so that no slow file runs alone at the end. build/bats/FLAVOUR/ has
# the seconds that each file took in its last run. For a file that has not run in this flavour yet,
# the script takes the time in another flavour, or N of a line `# run: about N s` in the file, or a
# tenth of a second for each line of the file.
#
# A file with a line that begins with `# run: alone` starts hundreds of processes, which delay other
# tests for longer than their leases last. Such files run one at a time, after all others have
# ended.
#
# A test that fails runs a second time, alone, after all files have ended. The reason: many tests
# measure when something happens, and fail without a fault of rlock if the machine stands still for
# a second. The output of the first run is printed as comments. The last lines name the tests that
# passed only in the second run, so that somebody finds out why. A test that fails twice counts as
# failed. No test runs a second time if a sanitizer reported an error in its file, or if its file
# would make more than AGAIN_MAX tests run again: all failed tests of such a file count as failed.

set -uo pipefail

jobs=${JOBS:-$((4 * $(nproc)))}
again_max=${AGAIN_MAX:-5}
within_s=${WITHIN_S:-86400}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
times=build/bats/${RLOCK_TEST_FLAVOUR:-plain}
mkdir -p "$times"

# With the version manager pyenv, `python3` is a shell script that starts dozens of processes before
# it starts Python. If `python3` is a script, the tests use the system's Python, for which deps.sh
# installs the modules.
first_two=
IFS= read -r -n 2 first_two 2>/dev/null <"$(type -P python3)"
if [[ $first_two == '#!' && -x /usr/bin/python3 ]]; then
    mkdir "$work/bin" && ln -s /usr/bin/python3 "$work/bin/python3"
    export PATH=$work/bin:$PATH
fi

# name_of FILE: prints cli_main for tests/cli/main.bats.
name_of() {
    local name=${1#tests/}
    name=${name%.bats}
    echo "${name//\//_}"
}

# seconds_of FILE: prints an estimate of how many seconds the file will take.
seconds_of() {
    local said
    said=$(sed -n 's/^# run: about \([0-9]*\) s$/\1/p' "$1")
    cat "$times/$(name_of "$1")" 2>/dev/null ||
        cat build/bats/*/"$(name_of "$1")" 2>/dev/null | sort -n | tail -n 1 | grep . ||
        echo "${said:-$(($(wc -l <"$1") / 10))}"
}

# slowest_first: reads paths of bats files, one a line, and prints them in the order to start them.
slowest_first() {
    local file
    while read -r file; do
        printf '%d %s\n' "$(seconds_of "$file")" "$file"
    done | sort -k1,1rn -k2 | cut -d ' ' -f 2
}

# run FILE [OPTION...]: runs one bats file. The results are in $work/NAME while bats runs, and in
# $work/NAME.done when bats has ended. If bats fails without printing a failed test (no test matched
# the options, or bats was killed), a line `not ok` is added.
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
again=()        # failed tests that are to run a second time, each as `FILE<tab>TEST NAME`
passed_again=() # tests that failed first and passed the second time, as `FILE: TEST NAME`

# may_run_again FILE OUTPUT: prints the failed tests of this output, each as `FILE<tab>TEST NAME`.
# Prints none if a sanitizer has reported an error, which a busy machine doesn't cause. A line that
# says that LeakSanitizer could not look for leaks, because the system had no pid left for it, is no
# such report.
may_run_again() {
    ! grep -vE 'LeakSanitizer has encountered a fatal error|HINT: .*LeakSanitizer' "$2" |
        grep -qE 'Sanitizer|runtime error:' || return 0
    sed -n 's/^not ok [1-9][0-9]* //p' "$2" | grep -vE '^(setup_file|teardown_file) failed' |
        sed "s|^|$1\t|"
}

# show FILE OUTPUT: prints and counts the results of one file. show numbers the tests on from those
# of the files before, and adds the file's name. If a failed test will run a second time, show
# prints it as a comment; run_again counts it after that run.
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

# show_ended: shows the results of the files that have ended since the last call.
show_ended() {
    local out file
    for out in "$work"/*.done; do
        [[ -e $out ]] || continue
        read -r file <"${out%.done}.file"
        show "$file" "$out"
        rm -f "$out"
    done
}

# run_again: runs the tests in `again`, one at a time.
run_again() {
    local test file title pattern before
    local again_max=0
    for test in "${again[@]}"; do
        file=${test%%$'\t'*}
        title=${test#*$'\t'}
        # --filter takes a regular expression: escape the characters that are special in one. Remove
        # what bats adds after a test's name: the duration with --timing, and a note of a timeout.
        pattern=$(sed 's/ # timeout after .*//; s/ in [0-9]*ms$//
            s/[][\.*^$+?(){}|/]/\\&/g' <<<"$title")
        before=$n_failed
        run "$file" --filter "^$pattern\$"
        show_ended
        ((n_failed > before)) || passed_again+=("$(name_of "$file"): $title")
    done
}

# run_all JOBS FILE...: runs the files, at most JOBS at the same time; returns when all have ended.
run_all() {
    local jobs=$1 running=0 file
    shift
    for file; do
        if ((running == jobs)); then
            wait -n
            running=$((running - 1))
            show_ended
        fi
        if ((SECONDS > within_s)); then
            n=$((n + 1))
            echo "ok $n $file # skip not started within $within_s s"
            continue
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
