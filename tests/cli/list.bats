#!/usr/bin/env bats
# list: prints a line for each lock of a server, and none for other keys.

load ../helpers/common

TOKEN=0123456789abcdef0123456789abcdef
CARD='v1 try=1 host=h pid=1 user=u command=c since=1'

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET
    redis_cli flushall >/dev/null
}

list() { run --separate-stderr "$RLOCK" list "$@"; }
keys_told() { awk 'NR > 1 { print $1 }' <<<"$output"; }

# fill N COMMAND...: sends the command N times to the server, with 0 to N - 1 in place of each %d.
fill() { awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) printf text "\n", i, i }' |
    redis_cli >/dev/null; }

@test "list: a server without locks gives no output; a lock is a line under the headings" {
    list
    assert_status 0
    assert_eq "$output$stderr" ""
    list --json
    assert_eq "$output$stderr" ""
    hold first -k "$KEY" -t 30 --label nightly
    start second "$RLOCK" -k "$KEY" -- true
    eventually 5 eval '[[ $(redis_cli zcard "{$KEY}:rlock:queue") == 1 ]]'
    list
    assert_status 0
    assert_match "$output" '^KEY +MODE +LEFT +WAITING +HELD FOR +HOLDER'$'\n'
    assert_match "$output" $'\n'"$KEY  exclusive  [23][0-9.]+s +1 +[0-9.]+s +sh of "
    assert_match "$output" ", pid $(<"$DIR/pids/first") \(nightly\)$"
    list --json
    assert_match "$output" "^\{\"key\":\"$KEY\",\"mode\":\"exclusive\",.*\"waiting\":1\}$"
    refute_match "$output" "$(env_of first RLOCK_TOKEN)"
}

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
    list 'zzz*'
    assert_eq "$output" ''
}

# bats test_tags=long
@test "list: of 10 000 keys it shows the 1 000 locks once each, and doesn't block the server" {
    local each
    fill 3000 'set x:%d 1'
    fill 2000 'set y:%d deadbeefdeadbeefdeadbeefdeadbeef ex 100'
    fill 2000 'hset z:%d a b'
    fill 2000 'rpush q:%d a'
    fill 1000 "set job:%d \"$TOKEN v1 try=1 host=h pid=%d since=1\" ex 100"
    redis_cli config resetstat
    list
    assert_status 0
    assert_eq "$(keys_told)" "$(for i in {0..999}; do echo "job:$i"; done | LC_ALL=C sort)"
    refute_match "$(redis_cli info commandstats)" 'cmdstat_keys'
    refute_match "$(redis_cli info errorstats)" 'errorstat'
    each=$(redis_cli info commandstats |
        sed -nE 's/^cmdstat_scan:.*usec_per_call=([0-9]+).*/\1/p')
    assert_between "$each" 1 20000 'us of the server for one step'
    list --json 'job:*'
    assert_eq "$(wc -l <<<"$output")" 1000
}

# bats test_tags=long
@test "list: it shows all of 2 000 locks, and keys of 64 KiB" {
    fill 2000 "set job:%d \"$TOKEN v1 try=1 host=h pid=%d since=1\" ex 100"
    python3 - "$TOKEN $CARD" <<'END' | redis_cli >/dev/null
import sys
for i in range(40):
    print('set %s "%s" ex 100' % (('%05d' % i) + 'k' * 65531, sys.argv[1]))
END
    list --json
    assert_status 0
    assert_eq "$(grep -o '^{"key":"job:[0-9]*"' <<<"$output" | sort -u | wc -l)" 2000
    assert_eq "$(awk 'index($0, "k\",\"mode\":") == 65544 { print substr($0, 9, 5) }' <<<"$output" |
        sort -u | wc -l)" 40
    assert_eq "$(wc -l <<<"$output")" 2040
}

@test "list: keys of any bytes are harmless in text and in JSON" {
    redis_cli set "$(printf 'k\033[2J\n\377')" "$TOKEN $CARD" ex 100
    printf 'set "nul\\x00" "%s" ex 100\n' "$TOKEN $CARD" | redis_cli
    list
    assert_eq "$(keys_told)" 'k\x1b[2J\x0a\xff'
    list --json
    python3 -c 'import json, sys
assert json.loads(sys.argv[1])["key"] == "k\x1b[2J\n�"' "$output"
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
    if command -v promtool >/dev/null; then
        promtool check metrics <<<"$output"
    fi
}

# has REGEX: check that a line of the output matches REGEX.
has() { grep -qE "$1" <<<"$output" || fail "no line matches $1" "$output"; }

@test "list: --format prometheus tells holders, waiters and the end of a job, for any key" {
    local odd
    odd=$(printf 'k"\\\033[2J\n\377')
    redis_cli set "$odd" "$TOKEN $CARD" ex 100
    redis_cli set ever "$TOKEN $CARD"
    "$RLOCK" -k finished --once 1h -- true
    hold first -k "$KEY"
    start second "$RLOCK" -k "$KEY" -- true
    eventually 5 eval '[[ $(redis_cli zcard "{$KEY}:rlock:queue") == 1 ]]'
    prometheus
    has "^rlock_lock_held\{key=\"$KEY\"\} 1$"
    has "^rlock_lock_holders\{key=\"$KEY\"\} 1$"
    has "^rlock_lock_held_seconds\{key=\"$KEY\"\} [0-9]+\.[0-9]{3}$"
    has "^rlock_lock_left_seconds\{key=\"$KEY\"\} [1-9][0-9]*\.[0-9]{3}$"
    has "^rlock_lock_waiters\{key=\"$KEY\"\} 1$"
    has "^rlock_lock_longest_wait_seconds\{key=\"$KEY\"\} [0-9]+\.[0-9]{3}$"
    has '^rlock_lock_left_seconds\{key="ever"\} \+Inf$'
    has '^rlock_lock_held\{key="finished"\} 0$'
    has '^rlock_lock_last_end_status\{key="finished"\} 0$'
    assert_between "$(awk '/^rlock_lock_last_end_timestamp_seconds/ { print int($2) }' \
        <<<"$output")" $(($(date +%s) - 60)) "$(date +%s)"
    has '^rlock_lock_held\{key="k\\"\\\\x5c\\\\x1b\[2J\\\\x0a\\\\xff"\} 1$'
    has '^rlock_locks 4$'
    prometheus 'none:*'
    assert_eq "$(grep -v '^#' <<<"$output")" 'rlock_locks 0'
}

# sample NAME KEY: prints the value of the metric rlock_lock_NAME for the lock; "": it has none.
sample() { sed -n "s/^rlock_lock_$1{key=\"$2\"} //p" <<<"$output"; }

@test "list: the metrics tell from the histories when and how each lock's last hold ended" {
    local begin key n
    begin=$(date +%s)
    for key in job:a job:a 'job:{b}:1'; do
        run -3 "$RLOCK" -k "$key" --history 9 -- sh -c 'exit 3'
    done
    run -0 "$RLOCK" -k job:a --history 9 -- true
    hold first -k job:a --history 9
    RLOCK_TOKEN=$("$RLOCK" acquire -k job:free --history 9) run -0 "$RLOCK" release -k job:free
    run -4 "$RLOCK" -k job:rest --history 9 --min-hold 1m -- sh -c 'exit 4'
    hold lost -k job:lost --history 9
    redis_cli del job:lost '{job:lost}:rlock:fence' >/dev/null
    let_go lost
    assert_status 76
    run -0 "$RLOCK" -k job:none -- true
    "$RLOCK" acquire -k job:new --history 9 >/dev/null
    run -5 "$RLOCK" -k other --history 9 -- sh -c 'exit 5'
    prometheus 'job:*'
    for key in job:a 'job:{b}:1' job:free job:rest; do
        n=$(sample last_end_timestamp_seconds "$key")
        assert_between "${n%.*}" "$begin" "$(date +%s)" "the time of the last end of $key"
    done
    assert_eq "$(sample last_end_status job:a)" 0
    assert_eq "$(sample last_end_status 'job:{b}:1')" 3
    assert_eq "$(sample last_end_status job:free)" '' 'a release by the token has no status'
    assert_eq "$(sample last_end_status job:rest)" 4
    assert_eq "$(sample last_end_status job:lost)" 76 'the command ended with 0, rlock with 76'
    assert_eq "$(sample held job:a),$(sample held job:rest),$(sample held job:free)" 1,0,
    assert_eq "$(sample last_end_timestamp_seconds job:none)" '' 'a lock without a history'
    assert_eq "$(sample last_end_timestamp_seconds job:new)" '' 'a history without an end'
    assert_eq "$(sample last_end_timestamp_seconds other)" '' 'a lock that the pattern leaves out'
    has '^rlock_locks 3$'
    prometheus
    assert_eq "$(sample last_end_status other)" 5
}

# bats test_tags=long
@test "list: the last end is found behind 199 grants, and not in a history that can't be read" {
    local n
    redis_cli rpush '{far}:rlock:history' 'end v1 token=1 fence=5000 status=7 held=1' >/dev/null
    for ((n = 1; n < 200; n++)); do
        echo "rpush {far}:rlock:history 'grant v1 token=$n fence=$n since=$n'"
    done | redis_cli >/dev/null
    redis_cli set '{text}:rlock:history' 'end v1 token=1 at=1000 status=0' >/dev/null
    redis_cli rpush '{odd}:rlock:history' x 'end v2 at=1000' 'end v1 token=1 at=x' \
        "end v1 at=$(printf '9%.0s' {1..30}) status=9" >/dev/null
    prometheus
    assert_eq "$(sample last_end_timestamp_seconds far)" 0.006
    assert_eq "$(sample last_end_status far)" 7
    assert_eq "$(grep -c '^rlock_lock_last_end' <<<"$output")" 2
    redis_cli rpush '{far}:rlock:history' 'grant v1 token=x since=1' >/dev/null
    prometheus
    refute_match "$output" last_end
}

@test "list: promtool accepts what --format prometheus prints" {
    need promtool
    redis_cli set ever "$TOKEN $CARD"
    "$RLOCK" list --format prometheus | promtool check metrics
}

@test "list: --output replaces a file as a whole, and keeps its mode" {
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
    echo old >"$DIR/old"
    chmod 640 "$DIR/old"
    ln "$DIR/old" "$DIR/link"
    list --json --output "$DIR/old"
    assert_match "$(<"$DIR/old")" "^\{\"key\":\"$KEY\""
    assert_eq "$(stat -c %a "$DIR/old")" 640
    assert_eq "$(<"$DIR/link")" old 'the content of the replaced file'
    assert_eq "$(find "$DIR" -name '.rlock*')" ''
}

@test "list: if --output can't be written, the status is 71 and the file keeps its content" {
    redis_cli set "$KEY" "$TOKEN $CARD" ex 100
    list --output "$DIR/none/file"
    assert_status 71
    assert_line "^rlock: system: $DIR/none/file: No such file or directory$"
    echo old >"$DIR/file"
    # With a limit of 0 blocks for the size of files, writing the first byte fails.
    run -71 --separate-stderr bash -c 'ulimit -f 0; "$0" list --output "$1"' "$RLOCK" "$DIR/file"
    assert_eq "$(<"$DIR/file")" old
    assert_eq "$(find "$DIR" -name '.rlock*')" ''
    list -u redis://127.0.0.1:1 --output "$DIR/file"
    assert_status 69
    assert_eq "$(<"$DIR/file")" old
}

@test "list: with the manual's rights a user sees the locks of the keys that the user may read" {
    local rule more
    rule=$(sed -n '/^ACL SETUSER rlock on/,/^\.Ed/{/^\.Ed/!p}' "$ROOT/man/rlock-locks.7")
    more=$(sed -n '/^ACL SETUSER rlock$/,/^\.Ed/{/^\.Ed/!p}' "$ROOT/man/rlock-locks.7")
    # shellcheck disable=SC2086
    assert_eq "$(redis_cli ${rule/>SECRET/>secret})" OK
    # shellcheck disable=SC2086
    assert_eq "$(redis_cli $more)" OK
    redis_cli set job:a "$TOKEN $CARD" ex 100
    redis_cli set secret:a "$TOKEN $CARD" ex 100
    redis_cli zadd '{job:a}:rlock:queue' 5 w
    redis_cli hset '{job:a}:rlock:waiters' w "$(($(date +%s) * 1000)) x host=x"
    "$RLOCK" -k job:done --slots 2 --min-hold 1m -- true
    redis_cli rpush '{job:a}:rlock:history' 'grant v1 token=1'
    redis_cli config resetstat
    export RLOCK_URL=redis://rlock:secret@127.0.0.1:$REDIS_PORT
    list
    assert_status 0
    assert_eq "$(keys_told)" job:a$'\n'job:done
    run -75 "$RLOCK" status
    run -0 "$RLOCK" history
    assert_match "$output" '^KEY.*job:a'
    run -0 "$RLOCK" break -k job:a --yes
    # The server has executed each command that the manual allows for status, list, history and
    # break, except CLUSTER SLOTS, which rlock sends only to a Cluster.
    for command in $(grep -oE '\+[a-z|]+' <<<"$more" | tr -d + | grep -Fvx 'cluster|slots'); do
        assert_match "$(redis_cli info commandstats)" "cmdstat_$command:calls=[1-9]"
    done
}
