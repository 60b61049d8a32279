#!/usr/bin/env bats
# version: the verb prints the same text as --version.

load ../helpers/common

@test "version: it prints the version on stdout, also with a bad configuration" {
    RLOCK_TTL=bad RLOCK_CONFIG=$DIR/none run -0 --separate-stderr rlock version
    assert_match "$output" '^rlock [0-9]+\.[0-9.]+ \(hiredis '
    assert_eq "$output|$stderr" "$(rlock --version)|"
}

@test "version: it refuses words and other verbs' options, and fails if stdout can't be written" {
    run -64 --separate-stderr rlock version 2
    assert_line 'usage: the verb takes no arguments but options; see rlock help version$'
    run -64 --separate-stderr rlock version --watch
    assert_line 'usage: unknown option of version: --watch; see rlock help version$'
    run -71 bash -c '"$1" version >/dev/full' - "$RLOCK"
}
