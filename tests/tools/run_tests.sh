#!/usr/bin/env bash
# run_tests: runs unit test programs and bats files, and prints their results as one TAP stream.
#
#     run_tests.sh FILE_OR_FOLDER...
#
#   JOBS                 how many files run at the same time; default: one for each processor
#   BATSFLAGS            options for each call of bats, for example `-f 'part of a test name'`
#   RLOCK_TEST_EMULATOR  a program that runs each unit test program, which is its argument
#
# A file's results are printed when its last test has ended. A file with a line that begins with
# `# run: alone` starts hundreds of processes: such files run one at a time, after all others.
#
# A file adds a failed test if it crashes, hangs (the limits are ten times what a file takes), ends
# without a plan or before it, or fails without a failed test. Sanitizers' reports are printed, too.

set -uo pipefail

bats_s=1800
program_s=600

# name_of FILE: prints cli/main for tests/cli/main.bats, and test_url for build/plain/unit/test_url.
name_of() {
    local name=${1%.bats}
    if [[ $1 == *.bats ]]; then echo "${name#tests/}"; else echo "${1##*/}"; fi
}

# run_one FILE: runs one file, and prints its results.
run_one() {
    local file=$1 out=$RUN_TESTS/$BASHPID status command options=() name
    if [[ $file == *.bats ]]; then
        eval "options=(${BATSFLAGS:-})"
        command=("$bats_s" bats --tap "${options[@]}" "$file")
    else
        command=("$program_s" ${RLOCK_TEST_EMULATOR:+"$RLOCK_TEST_EMULATOR"} "$file")
        for name in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
            export "$name=${!name:-}:log_path=$out.report"
        done
    fi
    # A shell starts `make test &` with INT and QUIT ignored, and no shell in a test could undo
    # that.
    env --default-signal=INT,QUIT timeout -k 10 "${command[@]}" >"$out" 2>&1 </dev/null
    status=$?
    cat "$out".report.* >>"$out" 2>/dev/null
    awk -v name="$(name_of "$file")" -v status="$status" '
        /^1\.\.[0-9]+$/ { planned = substr($0, 4); next }
        /^# begins: /   { began = "; began: " substr($0, 11); next }
        /^(not )?ok /   {
            n++
            failed += /^not/
            began = ""
            sub(/ok [0-9]+( -)? /, "ok - " name ": ")
            n_said = 0
        }
        { print line = (/^(#|(not )?ok )/ ? "" : "# ") $0; if (line ~ /^#/) said[n_said++] = line }
        END {
            if (planned == "" || (!failed && (n + 0 != planned + 0 || status != 0))) {
                print "not ok - " name ": ended too early: status " status began
                for (i = n_said > 10 ? n_said - 10 : 0; i < n_said; i++)
                    print said[i] # its last words, which stand before this result, too
            }
        }' "$out" >"$out.tap"
    flock "$RUN_TESTS" cat "$out.tap"
    rm -f "$out" "$out".*
}

if [[ -n ${RUN_TESTS:-} ]]; then # called by xargs below
    run_one "$1"
    exit
fi

RUN_TESTS=$(mktemp -d) || exit
export RUN_TESTS
trap 'rm -rf "$RUN_TESTS"' EXIT

# With the version manager pyenv, `python3` is a shell script, which starts dozens of processes.
# Then the tests use the system's Python, for which deps.sh installs the modules.
IFS= read -r -n 2 head 2>/dev/null <"$(type -P python3)"
if [[ ${head:-} == '#!' && -x /usr/bin/python3 ]]; then
    mkdir "$RUN_TESTS/bin" && ln -s /usr/bin/python3 "$RUN_TESTS/bin/python3"
    export PATH=$RUN_TESTS/bin:$PATH
fi

files=()
for place; do
    [[ -e $place ]] || { echo "run_tests: $place: no such file" >&2 && exit 2; }
    if [[ -d $place ]]; then files+=("$place"/*.bats); else files+=("$place"); fi
done
# The largest files start first, so that none of them runs alone at the end.
mapfile -t files < <(ls -S "${files[@]}")
{
    grep -L '^# run: alone' "${files[@]}" | xargs -r -n 1 -P "${JOBS:-$(nproc)}" "$0"
    grep -l '^# run: alone' "${files[@]}" | xargs -r -n 1 "$0"
    true # the results tell which tests failed, not the status of xargs
} | tee "$RUN_TESTS/all"
n=$(grep -cE '^(not )?ok ' "$RUN_TESTS/all")
echo "1..$n"
((n > 0)) && ! grep -q '^not ok ' "$RUN_TESTS/all"
