#!/bin/sh
# run: checks the rules that a compiler does not know; one TAP line each.

set -u
cd "$(dirname "$0")/../.." || exit 2

n=0
n_failed=0

# check NAME COMMAND...: it passes if the command does; what it says is shown if not.
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

# check_with PROGRAM NAME COMMAND...: a program may be missing at home, but not in CI.
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

# What people write; the names hold no spaces.
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

# What comes from elsewhere is what was looked at: actions by their commit, packages of npm by their
# hash and from whatever registry, Debian by its keys.
pinned() {
    lock=tests/interop/package-lock.json
    ! grep -nE 'uses: ' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9.]+$' &&
        [ "$(grep -c '"node_modules/' $lock)" -eq "$(grep -c '"integrity": "sha512-' $lock)" ] &&
        ! grep -n '"resolved"' "$lock" &&
        ! grep -rnE 'npm (install|i) ' tests/tools tests/helpers &&
        ! grep -n 'no-check-gpg' tests/tools/distros.sh &&
        grep -q -e '--force-check-gpg --keyring=' tests/tools/distros.sh
}

# bats files and their helpers get variables from each other. This takes longer than all else, so
# scripts that passed once are not looked at again until one of them has changed.
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
only_here() { awk -f tests/lint/only.awk tests/lint/only $(c_files); }

# shellcheck disable=SC2046
owners() {
    awk -f tests/lint/owners.awk tests/lint/owners $(c_files | grep '\.h$') \
        $(c_files | grep '\.c$')
}

check 'the rules catch what breaks them' tests/lint/selftest.sh
check 'layers of lib' layers lib
check 'layers of cmd' layers cmd
check 'only here, and no text decides' only_here
check 'a struct is written by its owner' owners
check 'no line over 100 columns' widths
check 'the first comment names the file' heads
check 'no stray spaces' spaces
check 'what comes from elsewhere is pinned' pinned
check_with shellcheck 'shellcheck' shell_check
check_with mandoc 'mandoc' mandoc -T lint -W warning man/*

layout() { make -s format-check 2>/dev/null; }

# Each version of clang-format has its own taste, so one is the judge and others are not asked.
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    check 'clang-format' layout
else
    echo '# clang-format 14 is not here: the layout of C files was not looked at'
fi

echo "1..$n"
[ "$n_failed" -eq 0 ]
