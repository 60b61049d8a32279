#!/usr/bin/env bats
# hardening: the program that `make` builds has the protections against memory errors.

load ../helpers/common

setup() {
    common_setup
    ! is_sanitized || skip 'a build with sanitizers has no such protections'
    need readelf
}

# Sets `objects` to the folder of the objects that RLOCK is linked from. `make` copies the program
# of build/plain to ./rlock.
find_objects() {
    objects=${RLOCK%/*}
    ! cmp -s "$RLOCK" "$ROOT/build/plain/rlock" || objects=$ROOT/build/plain
    [[ -e $objects/cmd/main.o ]] || skip_or_fail "the objects of $RLOCK"
}

has() { readelf -W "$1" "$RLOCK" | grep -E -- "$2"; }

@test "the program is position-independent, and no executable memory is writable" {
    has -h 'Type: +DYN'
    has -d 'BIND_NOW|FLAGS.*NOW'
    has -l GNU_RELRO
    has -l 'GNU_STACK .* RW '
    run ! has -l 'LOAD .* RWE '
    run ! has -d TEXTREL
}

@test "no memory of the static program is writable and executable; its constants are read-only" {
    RLOCK=$ROOT/build/static/rlock
    [[ -x $RLOCK ]] || skip_or_fail 'the static program (make static)'
    run ! has -l 'LOAD .* RWE '
    (($(has -l GNU_RELRO | awk '{ print $6 }') > 0x40000)) # OpenSSL's constants take 0.4 MB
}

@test "the program has stack protectors and bounded copies" {
    # Look at the program's own objects, as a library that is linked in may use these symbols.
    local objects
    find_objects
    needs __stack_chk_fail
    needs '__(vsn|sn)printf_chk'
}

needs() {
    local layer
    for layer in cmd lib; do
        readelf -Ws "$objects/$layer"/*/*.o | grep -E "UND $1" || fail "$layer: nothing calls $1"
    done
}

@test "the program has indirect branch tracking and shadow stacks (x86)" {
    [[ $(uname -m) == x86_64 ]] || skip 'only x86 has these protections'
    local objects
    find_objects
    readelf -n "$objects/cmd/main.o" | grep 'IBT, SHSTK'
}
