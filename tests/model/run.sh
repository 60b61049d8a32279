#!/bin/sh
# run: lets spin search all states of each variant of the models in expected.tsv. Writes TAP.
#
#     tests/model/run.sh [quick|full] [NAME...]
#
# quick checks the variants that take three minutes and 2 GB in all; full checks all variants, in
# half an hour and 5 GB. A variant that should be violated and holds is a failure, too: either the
# variant doesn't contain its fault any more, or the check can't find the fault any more. The files
# that spin writes stay in build/model/NAME/. To see the steps that lead to a violation, run there:
# spin -t -p -g FLAGS MODEL.pml

set -u
cd "$(dirname "$0")/../.." || exit 2

set_wanted=quick memory_mb=1900 time_limit=200
case ${1:-} in
    quick) shift ;;
    full) set_wanted=full memory_mb=6000 time_limit=3600 && shift ;;
esac

if ! command -v spin >/dev/null; then
    echo 'model: spin is not installed, so NOTHING was checked; tests/tools/deps.sh test has it' >&2
    if [ "${RLOCK_TEST_STRICT:-}" = 1 ]; then
        echo 'not ok 1 - model: spin is not installed'
    else
        echo 'ok 1 - model # SKIP spin is not installed'
    fi
    echo 1..1
    [ "${RLOCK_TEST_STRICT:-}" != 1 ]
    exit
fi

# search MODEL FLAG...: search all states of the variant of MODEL.pml with these flags, in the
# current directory.
search() {
    model=$1
    shift
    spin -P"${CC:-cc} -E -x c" -a "$@" "$model.pml" &&
        ${CC:-cc} -w -O1 -DSAFETY -DMEMLIM=$memory_mb -o pan pan.c &&
        timeout --kill-after 5 $time_limit ./pan -m5000 -w22
}

# verdict FILE: print what spin found, by its output: holds, violated, or unknown if the search
# failed or wasn't completed.
verdict() {
    if grep -q 'assertion violated' "$1"; then
        echo violated
    elif grep -q 'errors: 0$' "$1" &&
        ! grep -Eq 'not completed|depth too small|out of memory|aborted' "$1"; then
        echo holds
    else
        echo unknown
    fi
}

# check NAME EXPECTED MODEL FLAG...: search the variant of MODEL.pml, and print a line of TAP.
check() {
    name=$1 expected=$2 dir=build/model/$1
    shift 2
    rm -rf "$dir"
    mkdir -p "$dir"
    cp tests/model/*.pml "$dir"
    (cd "$dir" && search "$@") >"$dir/out" 2>&1 </dev/null
    found=$(verdict "$dir/out")
    n=$((n + 1))
    if [ "$found" = "$expected" ]; then
        echo "ok $n - model: $name: $found as expected"
    else
        n_failed=$((n_failed + 1))
        echo "not ok $n - model: $name: $found, expected: $expected"
        echo "# $*"
        sed 's/^/# /' "$dir/out"
    fi
    sed -n 's/^ *\([0-9]*\) states, stored.*/# \1 states/p' "$dir/out"
}

n=0
n_failed=0
only=" $* "
tab=$(printf '\t')
while IFS="$tab" read -r set model name expected flags; do
    case $set in
        quick) ;;
        full) [ "$set_wanted" = full ] || continue ;;
        *) continue ;;
    esac
    if [ "$only" != '  ' ]; then
        case $only in *" $name "*) ;; *) continue ;; esac
    fi
    # shellcheck disable=SC2086 # words
    check "$name" "$expected" "$model" $flags
done <tests/model/expected.tsv

echo "1..$n"
[ "$n_failed" -eq 0 ] && [ "$n" -gt 0 ]
