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
    redis_cli set 'i:}odd' "$TOKEN $CARD" ex 100
    redis_cli set 'j:}odd' "foreign" ex 100
    eventually 5 eval '[[ $(redis_cli zcard "c:{tag}:foreign:rlock:queue") == 1 ]]'
    list
    assert_status 0
    assert_eq "$(keys_told)" 'a:ours
b:taken-over
c:{tag}:foreign
i:}odd'
    assert_match "$output" 'c:\{tag\}:foreign +foreign +[0-9m]+s +1 +- +another program \("fo'
    list 'c:*'
    assert_eq "$(keys_told)" 'c:{tag}:foreign'
    list '[ab]:?u*'
    assert_eq "$(keys_told)" 'a:ours'
    list 'zzz*'
    assert_eq "$output" ''
}

@test "list: of 10 000 keys it shows the 1 000 locks once each, and doesn't block the server" {
    local before each
    fill 3000 'set x:%d 1'
    fill 2000 'set y:%d deadbeefdeadbeefdeadbeefdeadbeef ex 100'
    fill 2000 'hset z:%d a b'
    fill 2000 'rpush q:%d a'
    fill 1000 "set job:%d \"$TOKEN v1 try=1 host=h pid=%d since=1\" ex 100"
    redis_cli config resetstat
    before=$(now_ms)
    list
    is_sanitized || assert_between $(($(now_ms) - before)) 0 2000 'ms for 10 000 keys'
    assert_status 0
    assert_eq "$(keys_told)" "$(for i in {0..999}; do echo "job:$i"; done | LC_ALL=C sort)"
    refute_match "$(redis_cli info commandstats)" 'cmdstat_keys'
    refute_match "$(redis_cli info errorstats)" 'errorstat'
    each=$(redis_cli info commandstats | sed -nE 's/^cmdstat_eval:.*usec_per_call=([0-9]+).*/\1/p')
    assert_between "$each" 1 20000 'us of the server for one step'
    list --json 'job:*'
    assert_eq "$(wc -l <<<"$output")" 1000
}

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
    assert_line '^rlock: system: standard output'
}

@test "list: with the manual's rights a user sees the locks of the keys that the user may read" {
    local rule more
    rule=$(sed -n '/^ACL SETUSER rlock on/,/^\.Ed/{/^\.Ed/!p}' "$ROOT/man/rlock.1")
    more=$(sed -n '/^ACL SETUSER rlock$/,/^\.Ed/{/^\.Ed/!p}' "$ROOT/man/rlock.1")
    # shellcheck disable=SC2086
    assert_eq "$(redis_cli ${rule/>SECRET/>secret})" OK
    # shellcheck disable=SC2086
    assert_eq "$(redis_cli $more)" OK
    redis_cli set job:a "$TOKEN $CARD" ex 100
    redis_cli set secret:a "$TOKEN $CARD" ex 100
    redis_cli zadd '{job:a}:rlock:queue' 5 w
    redis_cli hset '{job:a}:rlock:waiters' w "$(($(date +%s) * 1000)) x host=x"
    "$RLOCK" -k job:done --slots 2 --min-hold 1m -- true
    redis_cli config resetstat
    export RLOCK_URL=redis://rlock:secret@127.0.0.1:$REDIS_PORT
    list
    assert_status 0
    assert_eq "$(keys_told)" job:a$'\n'job:done
    run -75 "$RLOCK" status
    run -0 "$RLOCK" break -k job:a --yes
    # The server has executed each command that the manual's rule adds for list, status and break,
    # but not CLUSTER SLOTS, which rlock sends only to a Cluster.
    for command in $(grep -oE '\+[a-z|]+' <<<"$more" | tr -d + | grep -Fvx 'cluster|slots'); do
        assert_match "$(redis_cli info commandstats)" "cmdstat_$command:calls=[1-9]"
    done
}
