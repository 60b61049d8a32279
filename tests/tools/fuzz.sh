#!/usr/bin/env bash
# fuzz: runs the fuzz targets that `make fuzz` has built, keeps what they find, measures coverage.
#
#     tests/tools/fuzz.sh run SECONDS TARGET...   run each target for SECONDS, two at a time; with
#                                                 FUZZ_SEED=N it tries the same inputs each time
#     tests/tools/fuzz.sh keep TARGET...          merge what they found into tests/fuzz/corpus
#     tests/tools/fuzz.sh coverage TARGET...      print the lines that the corpus reaches, by file
#
# The script keeps a target's new inputs in build/fuzz/found/TARGET, so that the next run goes on
# where the last one ended. If an input breaks a promise, libFuzzer writes the input to the file
# build/fuzz/found/TARGET-crash-..., and the script exits with status 1.
#
# SPDX-License-Identifier: MIT

set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

found=build/fuzz/found
mkdir -p "$found"

# run_one TARGET: runs the target for $seconds; the output goes to build/fuzz/found/TARGET.log.
run_one() {
    local target=$1 log=$found/$1.log n
    mkdir -p "$found/$target"
    if build/fuzz/"$target" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
        -seed="${FUZZ_SEED:-0}" \
        -artifact_prefix="$found/$target-" "$found/$target" \
        "tests/fuzz/corpus/${target#fuzz_}" >"$log" 2>&1; then
        n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "ok - $target: $n executions"
        return
    fi
    echo "not ok - $target: see $log"
    grep -E '^==|ERROR|SUMMARY|Test unit written|runtime error|    #[0-9] ' "$log" | head -n 20 |
        sed 's/^/# /'
    return 1
}

run() {
    export seconds=$1 found FUZZ_SEED
    shift
    export -f run_one
    printf '%s\n' "$@" | xargs -P 2 -I @ bash -c 'run_one @' | tee "$found/results"
    awk '/^ok/ { n += $(NF - 1) } /^not ok/ { bad++ }
        END { printf "# %d executions\n", n; exit bad > 0 }' "$found/results"
}

keep() {
    local target
    for target; do
        build/fuzz/"$target" -merge=1 "tests/fuzz/corpus/${target#fuzz_}" "$found/$target" \
            >"$found/$target-merge.log" 2>&1
        echo "$target: $(find "tests/fuzz/corpus/${target#fuzz_}" -type f | wc -l) inputs"
    done
}

# coverage TARGET...: runs the targets over the corpus and over the inputs that `make fuzz` has
# found. Prints for each file of tests/fuzz/parsers.tsv which part of its lines the targets in its
# row reach, and fails if that is less than 80 percent. The lines that are not
# reached are in build/coverage/fuzz/missed.
coverage() {
    local target file targets folder=build/coverage/fuzz
    rm -rf "$folder"
    mkdir -p "$folder"
    for target in "${@#fuzz_}"; do
        mkdir -p "$found/fuzz_$target"
        find "tests/fuzz/corpus/$target" "$found/fuzz_$target" -type f -print0 |
            LLVM_PROFILE_FILE=$folder/$target-%p.profraw \
                xargs -0 -n 4000 "build/coverage/unit/fuzz_$target" >/dev/null
        llvm-profdata merge -sparse "$folder/$target"-*.profraw -o "$folder/$target.profdata"
    done
    while IFS=$'\t' read -r file targets; do
        for target in $targets; do
            llvm-cov export -format=lcov -instr-profile "$folder/$target.profdata" \
                "build/coverage/unit/fuzz_$target"
        done | awk -v file="$file" -v targets="$targets" -v missed="$folder/missed" '
            /^SF:/ { is_it = index($0 "\n", "/" file "\n") > 0 }
            is_it && /^DA:/ { split(substr($0, 4), at, ","); reached[at[1]] += at[2] }
            END {
                for (line in reached) {
                    n++
                    if (reached[line] > 0) hit++
                    else print file ":" line >>missed
                }
                printf "%5.1f %% of %4d lines: %-34s (%s)\n", 100 * hit / n, n, file, targets
                close(missed)
            }'
    done <tests/fuzz/parsers.tsv | tee "$folder/report"
    awk '$1 < 80 { bad++ } END { exit bad > 0 }' "$folder/report"
}

"$@"
