#!/usr/bin/env bash
# reproducible: checks that two builds of HEAD, in clones at different paths, make the same program
# and the same release, of which each file is compared; and that the tarball is the same a day later
# (by faketime). Results are TAP.
#
#     ARCH='ARCH ...' tests/tools/reproducible.sh       default: all architectures of a release

set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."
. tests/tools/tap.sh reproducible

command -v faketime >/dev/null || {
    echo '1..0 # SKIP reproducible: faketime is not installed'
    exit 0
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# build PATH DATE: clones HEAD to PATH, and builds there what is compared. make itself runs without
# faketime: it would take each file for newer or older than it is.
build() {
    git clone -q . "$1"
    git -C "$1" config core.fsmonitor false
    (
        cd "$1"
        faketime "$2" make dist
        mv build/release/rlock-*.tar.gz dated.tar.gz
        find . -name '*.[ch]' -exec touch -d "$2" {} +
        make all CFLAGS='-O2 -g'
        make release ARCH="${ARCH:-}"
    ) >"$folder/log" 2>&1 || {
        tail -n 20 "$folder/log" >&2
        return 1
    }
}
build "$folder/one" '2026-01-01 00:00:00'
build "$folder/another/place" '2026-01-02 03:04:05'

files=$(cd "$folder/one" && echo dated.tar.gz rlock build/release/*)
for name in $files build/release; do
    [[ $name != build/release ]] || { # each has the same names
        ls "$folder/one/$name" >"$folder/one/names"
        ls "$folder/another/place/$name" >"$folder/another/place/names"
        name=names
    }
    status=0
    cmp "$folder/one/$name" "$folder/another/place/$name" >&2 || status=1
    result "$status" "$name"
done
end_of_results
