#!/usr/bin/env bats
# version: the verb prints the same text as --version.

load ../helpers/common

@test "version: it prints the version on stdout, also with a bad configuration" {
    RLOCK_TTL=bad RLOCK_CONFIG=$DIR/none run -0 --separate-stderr rlock version
    assert_match "$output" '^rlock [0-9]+\.[0-9.]+ \(hiredis '
    assert_eq "$output|$stderr" "$(rlock --version)|"
}

# says FILE REGEX: each match of the regular expression in FILE has the version in its group.
says() {
    local found
    found=$(grep -oE "$2" "$ROOT/$1" | sed -E "s/$2/\1/" | sort -u)
    assert_eq "$found" "$VERSION" "the version in $1"
}

@test "version: program, tarball, packages, pages, templates and changelog have that of rlock.h" {
    local page number='([0-9]+\.[0-9.]*[0-9])'
    VERSION=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' "$ROOT/lib/rlock.h")
    assert_match "$(rlock --version)" "^rlock $VERSION "
    assert_match "$(make -n -C "$ROOT" dist)" "/rlock-$VERSION.tar.gz"
    for page in "$ROOT"/man/*.[1-9]; do
        says "man/${page##*/}" "^\.Os .rlock $number.$"
    done
    says packaging/APKBUILD "^pkgver=$number"
    says packaging/rlock.spec "^Version: +$number"
    says packaging/rlock.spec "^\* .* - $number-1"
    says packaging/debian/changelog "^rlock \($number-1\)"
    says packaging/debian/librlock0.symbols "LIBRLOCK_0 $number"
    says packaging/gitlab-ci.yml "[kd]\/?[-v]+$number"
    says README.md "rlock[-_]$number"
    says README.md "\\/v$number"
    says docs/recipes.md "[@/]v$number"
    assert_eq "$(sed -n 's/^## //p' "$ROOT/CHANGELOG.md" | head -n 1)" "$VERSION"
}

@test "version: the library's soname is that of its packages and of its symbols" {
    local library=$ROOT/build/plain/shared/librlock.so number
    [[ -e $library ]] || skip_or_fail 'librlock (make library)'
    need readelf
    number=$(readelf -d "$library" | sed -n 's/.*soname: \[librlock\.so\.\([0-9]*\)\]$/\1/p')
    assert_eq "$(basename "$(realpath "$library")")" \
        "librlock.so.$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' "$ROOT/lib/rlock.h")"
    grep -qx "Package: librlock$number" "$ROOT/packaging/debian/control"
    grep -q "^librlock.so.$number librlock$number " "$ROOT/packaging/debian/librlock$number.symbols"
    grep -q "/librlock.so.$number\*$" "$ROOT/packaging/rlock.spec"
    grep -qx "LIBRLOCK_$number {" "$ROOT/lib/librlock.map"
}
