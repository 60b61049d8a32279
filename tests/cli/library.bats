#!/usr/bin/env bats
# library: other programs link with librlock, shared or static, in C and in C++, and man finds the
# pages of its functions.
#
# The library is that of the plain build: a program without a sanitizer can't use another one.

load ../helpers/common

setup() {
    common_setup
    redis_start
    SHARED=$ROOT/build/plain/shared
    [[ -e $SHARED/librlock.so && -e $SHARED/librlock.a ]] || skip_or_fail 'librlock (make library)'
    ! is_sanitized || skip 'make library builds no library with sanitizers'
    need pkg-config
    INSTALL=$DIR/usr
    make -s -C "$ROOT" FLAVOUR=plain install-library PREFIX="$INSTALL"
    export PKG_CONFIG_PATH=$INSTALL/lib/pkgconfig
}

# example: prints the program of the manual's EXAMPLES.
example() {
    sed -n '/^\.Sh EXAMPLES/,/^\.Ed/p' "$ROOT/man/rlock.3" |
        sed '1,/^\.Bd/d; /^\.Ed/d; s/\\e/\\/g'
}

# flags OPTION...: prints what pkg-config says about the installed library. hiredis may have no
# file for pkg-config: -lhiredis is all that it would say.
flags() {
    local text
    text=$(pkg-config "$@" rlock) || return
    [[ $* != *--static* || $text == *hiredis* ]] || text+=' -lhiredis'
    echo "$text"
}

# assert_works PROGRAM: the example acquires the lock at a new server, works, and releases it.
assert_works() {
    LD_LIBRARY_PATH=$INSTALL/lib run -0 "$1" "redis://127.0.0.1:$REDIS_PORT"
    assert_eq "$output" $'piece 1\npiece 2\npiece 3\npiece 4\npiece 5'
    assert_eq "$(redis_cli exists job:nightly)" 0 'keys of the lock that are left'
}

@test "the shared library exports the functions of the headers, and no others" {
    need nm
    nm -D --defined-only "$SHARED/librlock.so" >"$DIR/symbols"
    assert_eq "$(awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' "$DIR/symbols" | sort)" \
        "$(public_names | sort)"
    assert_eq "$(awk '$2 !~ /^[TA]$/' "$DIR/symbols")" ''
}

@test "the static library defines the functions of the headers, and no other global symbol" {
    need nm
    assert_eq "$(nm -g --defined-only "$SHARED/librlock.a" | awk 'NF == 3 { print $3 }' | sort)" \
        "$(public_names | sort)"
}

@test "the manual's example has at most 60 lines, and works in C with the shared library" {
    need cc
    example >"$DIR/example.c"
    (($(wc -l <"$DIR/example.c") <= 60)) || fail 'the example is too long'
    # shellcheck disable=SC2046
    run -0 cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$DIR/example" "$DIR/example.c" \
        $(flags --cflags --libs)
    assert_works "$DIR/example"
}

@test "the manual's example works in C++ with the static library" {
    need c++
    example >"$DIR/example.cc"
    # shellcheck disable=SC2046
    run -0 c++ -Wall -Wextra -Werror -o "$DIR/example" "$DIR/example.cc" $(flags --cflags) \
        "$INSTALL/lib/librlock.a" $(flags --libs --static | sed 's/-lrlock//')
    assert_works "$DIR/example"
}

@test "the admin header compiles alone in C and in C++" {
    need cc c++
    echo '#include <rlock_admin.h>' >"$DIR/admin.c"
    cp "$DIR/admin.c" "$DIR/admin.cc"
    local flags=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$INSTALL/include")
    run -0 cc -std=c11 "${flags[@]}" "$DIR/admin.c"
    run -0 c++ "${flags[@]}" "$DIR/admin.cc"
}

@test "each function has a manual page, and make uninstall removes all that was installed" {
    local name pages=$INSTALL/share/man/man3
    for name in $(public_names); do
        [[ $(readlink -f "$pages/$name.3") == "$pages/rlock.3" ]] || fail "no page: $name"
    done
    make -s -C "$ROOT" FLAVOUR=plain uninstall PREFIX="$INSTALL"
    assert_eq "$(find "$INSTALL" ! -type d)" ''
}
