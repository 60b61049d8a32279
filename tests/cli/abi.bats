#!/usr/bin/env bats
# abi: `make abi` fails if librlock.so.0 breaks programs that use the last release's library.
#
# Each test works in a clone of this repository, with a tag and commits of its own.

load ../helpers/common

setup() {
    common_setup
    ! is_sanitized || skip 'make library builds no library with sanitizers'
    need git abidiff
    git -C "$ROOT" rev-parse -q --verify HEAD >"$DIR/head" || skip 'the sources are not in git'
    git clone -q "$ROOT" "$DIR/clone"
    cd "$DIR/clone" || return
    git config user.name test
    git config user.email test@test.example
    git tag --list 'v[0-9]*' | xargs -r git tag -d >/dev/null
}

abi() { make -s abi CFLAGS='-O0 -g' HARDENING=no; }
# release TEXT: commits what the test has changed, and tags it as the last release.
release() {
    git commit -q --allow-empty -a -m "$1"
    git tag v0.0.9
}

@test "abi: before the first release there is nothing to compare with" {
    run -0 abi
    assert_match "$output" 'there is no tag vX.Y.Z below HEAD'
}

@test "abi: a new function and a new last member of struct rlock_config are compatible" {
    release 'the last release'
    sed -i '/^struct rlock_config {/,/^};/s/^};/    int added;\n};/' lib/rlock.h
    echo 'int rlock_added(void); int rlock_added(void) { return 1; }' >>lib/api.c
    git commit -q -a -m 'add a function and a member'
    run -0 abi
    assert_match "$output" 'is compatible with that of v0.0.9'
}

@test "abi: a function that is no longer there is not compatible" {
    echo 'int rlock_removed(void); int rlock_removed(void) { return 1; }' >>lib/api.c
    release 'the last release has a function more'
    git revert --no-edit HEAD >"$DIR/revert"
    run ! abi
    assert_match "$output" 'rlock_removed'
    assert_match "$output" 'is not compatible with that of v0.0.9'
}

@test "abi: a member inserted before others in struct rlock_config is not compatible" {
    release 'the last release'
    sed -i '/^struct rlock_config {/s/$/ long inserted;/' lib/rlock.h
    git commit -q -a -m 'insert a member'
    run ! abi
    assert_match "$output" 'is not compatible with that of v0.0.9'
}
