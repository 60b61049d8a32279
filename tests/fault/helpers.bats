#!/usr/bin/env bats
# helpers: another program has written keys with the names of rlock's helper keys (last fence,
# queue, waiters, holders, holder-info). What each script does then, tests/unit/scripts.txt has.

load ../helpers/common
load ../helpers/span

key_of() { echo "{$KEY}:rlock:$1"; }
regex_of() { echo "[{]${KEY}[}]:rlock:$1"; } # a regular expression for the name of a helper key

@test "helper keys of another type: rlock and each verb name the key, the holder can release" {
    local kind token before
    for kind in queue waiters fence; do
        redis_cli flushall >/dev/null
        token=$(rlock acquire -t 600 -k "$KEY")
        redis_cli del "$(key_of "$kind")" >/dev/null
        redis_cli sadd "$(key_of "$kind")" m >/dev/null
        before=$(print_server_contents)
        run -77 --separate-stderr rlock -w 1 -k "$KEY" -- touch "$DIR/ran"
        assert_line "^rlock: $KEY: refused: .*$(regex_of "$kind") is no .*look at the key, and DEL"
        run -77 --separate-stderr rlock break --yes -k "$KEY"
        assert_line "$(regex_of "$kind") is no "
        run -75 rlock status -k "$KEY"
        assert_match "$output" "wrong +$(regex_of "$kind") is no "
        run -0 rlock list
        assert_match "$output" "$KEY +exclusive .*; wrong: $(regex_of "$kind") is no "
        run -78 rlock doctor
        assert_match "$output" "locks: 1 of 1 locks can't be granted, .*$(regex_of "$kind") is no "
        assert_eq "$(print_server_contents)" "$before" "all keys, with $kind a set"
        RLOCK_TOKEN=$token run -0 --separate-stderr rlock release -k "$KEY"
        assert_eq "$(redis_cli exists "$KEY")" 0 'the lock'
        assert_eq "$(redis_cli smembers "$(key_of "$kind")")" m "$kind"
    done
    [[ ! -e $DIR/ran ]]
}
