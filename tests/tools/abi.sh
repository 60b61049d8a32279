#!/usr/bin/env bash
# abi: compares librlock.so.0 of this commit with that of the last release. `make abi` runs it.
#
#     tests/tools/abi.sh [MAKE_VARIABLE=VALUE]...
#
# The last release is the highest tag vX.Y.Z below HEAD. The script builds both libraries in a
# clone, and fails if abidiff says that a program linked with the last release's could behave
# differently with that of HEAD. packaging/abi.suppr names the changes that are allowed.

set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

tags=$(git tag --list 'v[0-9]*' --merged HEAD --no-contains HEAD --sort=-version:refname)
last=${tags%%$'\n'*}
[[ -n $last ]] || {
    echo 'abi: there is no tag vX.Y.Z below HEAD: no release to compare librlock.so.0 with'
    exit 0
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

git clone -q . "$folder/source"

# build COMMIT NAME [MAKE_VARIABLE=VALUE]...: installs the library of the commit in $folder/NAME. If
# both commits have the same Makefile, the second call compiles only the files that differ.
build() {
    local name=$2
    git -C "$folder/source" diff --quiet "$1" -- Makefile || git -C "$folder/source" clean -qfdx
    git -C "$folder/source" checkout -q "$1"
    make -C "$folder/source" install-library PREFIX="$folder/$name" "${@:3}" \
        >"$folder/log" 2>&1 || {
        tail -n 20 "$folder/log" >&2
        echo "abi: the library of $1 can't be built" >&2
        return 1
    }
}
build "$last" old "$@"
build "$(git rev-parse HEAD)" new "$@"
abidiff --no-added-syms --suppressions packaging/abi.suppr \
    --headers-dir1 "$folder/old/include" --headers-dir2 "$folder/new/include" \
    "$folder/old/lib/librlock.so" "$folder/new/lib/librlock.so" || {
    echo "abi: librlock.so.0 is not compatible with that of $last: undo the change, or raise" \
        "SOVERSION in the Makefile and the number in lib/librlock.map" >&2
    exit 1
}
echo "abi: librlock.so.0 is compatible with that of $last"
