#!/usr/bin/env bats
# list: prints a line for each lock of a server, and none for other keys.

load ../helpers/common
load ../helpers/server

TOKEN=0123456789abcdef0123456789abcdef
CARD='v1 try=1 host=h pid=1 user=u command=c since=1'

list() { run --separate-stderr "$RLOCK" list "$@"; }
keys_told() { awk 'NR > 1 { print $1 }' <<<"$output"; }

@test "list: it shows keys that rlock holds, waits for or once held, and no other keys" {
    redis_cli set "a:ours" "$TOKEN $CARD" ex 100
    # another program took the key after rlock had held it
    redis_cli set "b:taken-over" "foreign" ex 100
    redis_cli set "{b:taken-over}:rlock:fence" 5 ex 100
    redis_cli set "c:{tag}:foreign" "foreign" ex 100
    start waiter "$RLOCK" -k "c:{tag}:foreign" -- true
    redis_cli set "d:cache" x ex 100
    redis_cli set "e:uuid" "$TOKEN" ex 100
    redis_cli set "f:almost" "$TOKEN v1" ex 100
    redis_cli lpush "g:list" "$TOKEN $CARD"
    redis_cli hset "{g}:rlock:holder-info" "$TOKEN" "$CARD"
    redis_cli set 'i:}odd' "$TOKEN $CARD" ex 100 # no lock can have this key
    eventually 5 eval '[[ $(redis_cli zcard "c:{tag}:foreign:rlock:queue") == 1 ]]'
    list
    assert_status 0
    assert_eq "$(keys_told)" 'a:ours
b:taken-over
c:{tag}:foreign'
    assert_match "$output" 'c:\{tag\}:foreign +foreign +[0-9m]+s +1 +- +another program \("fo'
    list 'c:*'
    assert_eq "$(keys_told)" 'c:{tag}:foreign'
    list '[ab]:?u*'
    assert_eq "$(keys_told)" 'a:ours'
    list '[!b-z]:*' # Redis negates a class by ^ only
    assert_eq "$(keys_told)" 'a:ours'
    list 'zzz*'
    assert_eq "$output" ''
}

@test "list: it exits with 64 for two patterns, 69 for no server, 71 for a closed stdout" {
    list a b
    assert_status 64
    assert_line '^rlock: usage: only one pattern may be given'
    list -k a
    assert_status 64
    list -u redis://127.0.0.1:1
    assert_status 69
    redis_cli set "$KEY" "$TOKEN $CARD" ex 100
    run -71 --separate-stderr bash -c '"$0" list >/dev/full' "$RLOCK"
    assert_line "^rlock: system: can't write to standard output"
}

# prometheus OPTION...: runs `rlock list --format prometheus`, and lets promtool check the output.
prometheus() {
    list --format prometheus "$@"
    assert_status 0
    ! command -v promtool >/dev/null || promtool check metrics <<<"$output"
}

# has REGEX: check that a line of the output matches REGEX.
has() { grep -qE "$1" <<<"$output" || fail "no line matches $1" "$output"; }

@test "list: --format prometheus tells holders, waiters and the end of a job, for any key" {
    redis_cli <<<'set "k\"\\\x1b[2J\n\xff" '"\"$TOKEN $CARD\" ex 100"
    "$RLOCK" -k finished --once 1h -- true
    hold first -k "$KEY"
    queued second -- true
    prometheus
    has "^rlock_lock_held\{key=\"$KEY\"\} 1$"
    has "^rlock_lock_held_seconds\{key=\"$KEY\"\} [0-9]+\.[0-9]{3}$"
    has "^rlock_lock_left_seconds\{key=\"$KEY\"\} [1-9][0-9]*\.[0-9]{3}$"
    has "^rlock_lock_waiters\{key=\"$KEY\"\} 1$"
    has "^rlock_lock_longest_wait_seconds\{key=\"$KEY\"\} [0-9]+\.[0-9]{3}$"
    has '^rlock_lock_last_end_status\{key="finished"\} 0$'
    assert_between "$(awk '/^rlock_lock_last_end_timestamp_seconds/ { print int($2) }' \
        <<<"$output")" $(($(date +%s) - 60)) "$(date +%s)"
    has '^rlock_lock_held\{key="k\\"\\\\x5c\\\\x1b\[2J\\\\x0a\\\\xff"\} 1$'
    has '^rlock_locks 3$'
    prometheus 'none:*'
    assert_eq "$(grep -v '^#' <<<"$output")" 'rlock_locks 0'
}

@test "list: --output writes each format to a file, or to standard output" {
    local format
    redis_cli set "$KEY" "$TOKEN $CARD" ex 100
    for format in text json prometheus; do
        list --format "$format" --output "$DIR/new"
        assert_eq "$status$output$stderr" 0
        assert_match "$(<"$DIR/new")" "$KEY"
    done
    assert_match "$(<"$DIR/new")" '^# HELP rlock_lock_held '
    list --json --format text --output -
    assert_match "$output" "^KEY .*$KEY "
}
