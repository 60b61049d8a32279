#!/usr/bin/env bats
# hardening: what `make` builds has what makes errors in memory harder to exploit.

load ../helpers/common

setup() {
    common_setup
    ! is_sanitized || skip 'sanitizers come without'
    need readelf
}

has() { readelf -W "$1" "$RLOCK" | grep -E -- "$2"; }

@test "it is loaded anywhere, and nothing that is executable can be written to" {
    has -h 'Type: +DYN'
    has -d 'BIND_NOW|FLAGS.*NOW'
    has -l GNU_RELRO
    has -l 'GNU_STACK .* RW '
    run ! has -l 'LOAD .* RWE '
    run ! has -d TEXTREL
}

@test "the stack is guarded, and copies are bounded" {
    # of the program's own objects: libraries that are linked in may be with
    needs __stack_chk_fail
    needs '__(vsn|sn)printf_chk'
}

needs() { readelf -Ws "${RLOCK%/*}"/cmd/*/*.o | grep -E "UND $1"; }

@test "jumps go where they may only" {
    [[ $(uname -m) == x86_64 ]] || skip 'for x86 only'
    readelf -n "${RLOCK%/*}/cmd/main.o" | grep 'IBT, SHSTK'
}

@test "with sanitizers, or HARDENING=no, there is none of it, and nothing is said twice" {
    local flags
    cd "$ROOT"
    flags() { make -pn -f Makefile "$@" 2>/dev/null | sed -n 's/^HARDENING_FLAGS := *//p'; }
    assert_eq "$(flags FLAVOUR=asan)$(flags FLAVOUR=tsan)$(flags HARDENING=no)" ''
    assert_match "$(flags FLAVOUR=plain)" '-fstack-protector-strong.*-D_FORTIFY_SOURCE=[23]'
    refute_match "$(flags FLAVOUR=plain CFLAGS='-O2 -fstack-protector-strong' \
        CPPFLAGS=-D_FORTIFY_SOURCE=2)" 'stack-protector|FORTIFY'
}
