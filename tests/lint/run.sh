#!/bin/sh
# run: checks the rules for sources that no compiler checks; prints a TAP line for each rule.

set -u
cd "$(dirname "$0")/../.." || exit 2

n=0
n_failed=0

# check NAME COMMAND...: runs the command as a test. If the command fails, prints its output.
check() {
    name=$1
    shift
    n=$((n + 1))
    if output=$("$@" 2>&1); then
        echo "ok $n - lint: $name"
    else
        n_failed=$((n_failed + 1))
        echo "not ok $n - lint: $name"
        printf '%s\n' "$output" | sed 's/^/# /'
    fi
}

# check_with PROGRAM NAME COMMAND...: does what check does, but skips the test if PROGRAM is not
# installed. In CI (RLOCK_TEST_STRICT=1) check_with runs the test, which then fails.
check_with() {
    program=$1
    shift
    if command -v "$program" >/dev/null || [ "${RLOCK_TEST_STRICT:-}" = 1 ]; then
        check "$@"
    else
        n=$((n + 1))
        echo "ok $n - lint: $1 # SKIP $program is not installed"
    fi
}

# sources: prints the names of all files that people write. No name has a space.
sources() {
    find cmd lib tests .ci Makefile -type f ! -name '*.tsv' ! -name package-lock.json \
        ! -path '*/corpus/*'
}
c_files() { find cmd lib -name '*.[ch]'; }
shell_scripts() { sources | grep -E '\.(sh|bash|bats)$|^\.ci/'; }

heads() {
    failed=0
    for file in $(c_files); do
        name=${file##*/}
        name=${name%.[ch]}
        if ! head -n 3 "$file" | grep -Eq "^(/\*| \*) $name: "; then
            echo "$file: the first comment does not begin with '$name: '"
            failed=1
        fi
    done
    return $failed
}

spaces() {
    # shellcheck disable=SC2046
    ! grep -nE '[[:space:]]$' $(sources) && ! grep -n "$(printf '\t')" $(c_files)
}

widths() {
    # shellcheck disable=SC2046
    awk 'length($0) > 100 { printf "%s:%d: %d columns\n", FILENAME, FNR, length($0); wide = 1 }
         END { exit wide }' $(sources)
}

# pinned: checks that CI and the tests verify everything that they download, so that nobody can
# replace it: GitHub actions are named by their commit, npm packages have a hash (so they may come
# from any registry), and apt checks Debian packages by the signature of Debian's archive.
pinned() {
    lock=tests/interop/package-lock.json
    ! grep -nE 'uses: ' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9.]+$' &&
        [ "$(grep -c '"node_modules/' $lock)" -eq "$(grep -c '"integrity": "sha512-' $lock)" ] &&
        ! grep -n '"resolved"' "$lock" &&
        ! grep -rnE 'npm (install|i) ' tests/tools tests/helpers &&
        ! grep -n 'no-check-gpg' tests/tools/distros.sh &&
        grep -q -e '--force-check-gpg --keyring=' tests/tools/distros.sh &&
        grep -q '^    echo "deb \[signed-by=$keyring\] ' tests/tools/servers.sh
}

# shell_check: runs shellcheck, which takes longer than all other rules together. When the scripts
# have passed, an empty file in build/lint gets the hash of their text as its name; while the hash
# is the same, shellcheck doesn't run again. The excluded warnings are about variables that bats
# files and their helpers get from each other.
shell_check() {
    scripts="$(shell_scripts) completions/rlock.bash"
    # shellcheck disable=SC2086
    passed=build/lint/shellcheck-$(cat $scripts | sha1sum | cut -c 1-40)
    [ -e "$passed" ] && return
    printf '%s\n' $scripts |
        xargs -P 2 -n 30 shellcheck -S warning -e SC1091,SC2034,SC2120,SC2154 || return
    mkdir -p build/lint && rm -f build/lint/shellcheck-* && touch "$passed"
}

layers() { find "$1" -name '*.[ch]' -exec awk -f tests/lint/layers.awk "$1/LAYERS" {} +; }

# shellcheck disable=SC2046
only_here() { awk -f tests/lint/code.awk -f tests/lint/only.awk tests/lint/only $(c_files); }

# shellcheck disable=SC2046
owners() {
    awk -f tests/lint/code.awk -f tests/lint/owners.awk tests/lint/owners $(c_files | grep '\.h$') \
        $(c_files | grep '\.c$')
}

check 'selftest: the rules find files that break them' tests/lint/selftest.sh
check 'lib includes only files of lower layers' layers lib
check 'cmd includes only files of lower layers' layers cmd
check 'calls only in the files that tests/lint/only names' only_here
check 'a struct is written by its owner only' owners
check 'no line over 100 columns' widths
check 'the first comment names the file' heads
check 'no spaces at line ends, no tabs in C' spaces
check 'downloads are pinned to a hash or key' pinned
check_with shellcheck 'shellcheck' shell_check
check_with mandoc 'mandoc' mandoc -T lint -W warning man/*

layout() { make -s format-check 2>/dev/null; }

# Versions of clang-format lay out code differently, so only version 14 is used.
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    check 'clang-format' layout
else
    echo '# clang-format 14 is not installed: the layout of C files was not checked'
fi

echo "1..$n"
[ "$n_failed" -eq 0 ]
