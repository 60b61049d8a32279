#!/usr/bin/env bash
# bugs: does the simulator find a bug that was put into the library on purpose?
#
#     tests/sim/bugs.sh [NAME...]
#     tests/sim/bugs.sh --apply
#
# Each row of bugs.tsv changes one file of a copy of the source, in build/bugs. The simulator
# is built from the copy, and runs worlds of the family in the row, for 60 s at most. In one or more
# of these worlds the simulator must find that rlock breaks a promise. TAP: a line for each bug.

set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1

# applies FILE RULE: does sed's rule RULE change the file? If not, prints so.
applies() {
    ! sed -e "$2" "$1" | cmp -s - "$1" || { echo "the rule changes nothing in $1" && return 1; }
}

if [[ ${1:-} == --apply ]]; then
    if ! told=$(grep -v '^#' tests/sim/bugs.tsv | while IFS=$'\t' read -r name _ file rule; do
        applies "$file" "$rule" | sed "s/^/# $name: /"
    done | grep .); then
        echo 'ok 1 - sim-bugs: each rule of bugs.tsv changes its file'
        exit
    fi
    printf 'not ok 1 - sim-bugs: each rule of bugs.tsv changes its file\n%s\n' "$told"
    exit 1
fi

# build NAME FILE RULE: copies the source to build/bugs/NAME, puts a bug into the copy by sed's rule
# RULE on FILE, and builds the simulator from the copy.
build() {
    local folder=build/bugs/$1
    applies "$2" "$3" || return 1
    rm -rf "$folder"
    mkdir -p "$folder/build" "$folder/tests" "$folder/packaging"
    cp -a Makefile lib "$folder/"
    cp -a packaging/release.mk "$folder/packaging/"
    cp -a tests/sim tests/tests.mk "$folder/tests/"
    cp -a build/gen build/plain "$folder/build/"
    sed -i -e "$3" "$folder/$2" || return 1
    make -s -C "$folder" -j2 build/plain/sim/sim >"$folder/build.log" 2>&1 ||
        { tail -n 3 "$folder/build.log" && return 1; }
}

n=0 n_failed=0
while IFS=$'\t' read -r name family file rule; do
    [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
    n=$((n + 1))
    began=$SECONDS
    if found=$(build "$name" "$file" "$rule" &&
        "build/bugs/$name/build/plain/sim/sim" --seconds 60 --first --family "$family") ||
        [[ $found == *'the rule changes nothing'* || $found != *violation* ]]; then
        n_failed=$((n_failed + 1))
        echo "not ok $n - sim-bugs: $name is found within 60 s"
        sed 's/^/# /' <<<"$found" | tail -n 5
    else
        echo "ok $n - sim-bugs: $name is found within 60 s, with its build $((SECONDS - began)) s"
        grep -m 1 -o 'violation: [a-z]*.*' <<<"$found" | sed 's/^/# /'
    fi
    rm -rf "build/bugs/$name"
done < <(grep -v '^#' tests/sim/bugs.tsv)
echo "1..$n"
((n > 0 && n_failed == 0))
