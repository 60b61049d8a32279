#!/usr/bin/env bats
# explain: --explain says what a run would do with these options and this server, and runs nothing.

load ../helpers/common
load ../helpers/quorum

setup_file() { redis_start safe --appendonly yes; }
setup() {
    common_setup
    redis_use safe
    redis_cli flushall >/dev/null
    URL=redis://127.0.0.1:$REDIS_PORT
    # doctor takes 0.6 s to examine a server; it leaves the private server alone.
    export RLOCK_URL=local:
}

# explains STATUS OPTION...: run `rlock --explain` with these options, check its status, and set
# `told` to its text in one line.
explains() {
    local wanted=$1
    shift
    run --separate-stderr rlock --explain -k "$KEY" "$@"
    assert_status "$wanted"
    told=$(tr -s '\n ' ' ' <<<"$output")
}
tells() { assert_match "$told" "$1"; }

@test "explain: nothing is run, no lock is taken, and a held lock stays as it is" {
    explains 0 -u "$URL" -- touch "$DIR/ran"
    tells "lock: $KEY command: rlock would run touch"
    [[ ! -e $DIR/ran ]]
    assert_eq "$(redis_cli --scan)" ''
    redis_cli set "$KEY" other PX 60000 >/dev/null
    explains 0 -u "$URL" -n -- true
    tells 'rlock ends at once'
    assert_eq "$(value "$KEY")" other
}

@test "explain: it names the server, and the option, variable or file that chose the server" {
    local url=$URL
    export RLOCK_URL=$url RLOCK_CONFIG=$DIR/config
    printf '# a comment\n\nurl = %s\nttl = 20\n' "$url" >"$RLOCK_CONFIG"
    explains 0 -- true
    tells "server: $url Given by RLOCK_URL\. The configuration file is $RLOCK_CONFIG\."
    tells "The lease lasts 20s \($RLOCK_CONFIG:4\)"
    unset RLOCK_URL
    explains 0 -- true
    tells "server: $url Given by $RLOCK_CONFIG:3\."
    explains 0 -u "$url" -t 30 -- true
    tells "server: $url Given by --url\."
    tells 'The lease lasts 30s \(--ttl\)'
    unset RLOCK_CONFIG
    REDIS_URL=$url explains 0 -- true
    tells "server: $url Given by REDIS_URL.* There is no configuration file\."
    VALKEY_URL=$url REDIS_URL=redis://other explains 0 -- true
    tells "server: $url Given by VALKEY_URL"
    assert_match "$stderr" 'warning: VALKEY_URL and REDIS_URL differ, and rlock uses VALKEY_URL; '
}

@test "explain: it names the place of the password, but not the password" {
    local url=redis://backup:hunter2@127.0.0.1:$REDIS_PORT
    redis_user backup '>hunter2' '~*' >/dev/null
    explains 0 -u "$url" -- true
    tells "server: redis://backup:\*+@127.0.0.1:$REDIS_PORT "
    tells 'connection: The password is in the URL\.'
    RLOCK_PASSWORD=hunter2 explains 0 -u "redis://backup@127.0.0.1:$REDIS_PORT" -- true
    tells 'The password is in RLOCK_PASSWORD\.'
    (umask 077 && echo hunter2 >"$DIR/password")
    explains 0 -u "redis://backup@127.0.0.1:$REDIS_PORT" --password-file "$DIR/password" -- true
    tells "The password is the first line of $DIR/password \(--password-file\)\."
    explains 0 -u "redis://backup@127.0.0.1:$REDIS_PORT" --password-command 'echo hunter2' -- true
    tells 'The password is what the password command prints \(--password-command\)\.'
    explains 77 -u "redis://backup:wrong@127.0.0.1:$REDIS_PORT" -- true
    tells 'doctor: The server could not be examined: '
    refute_match "$output$stderr" 'hunter2|:wrong@'
}

# Of each row: the options, the status, and what is told. In rlock(1) an example promises that a TTL
# of ten minutes survives an outage of six minutes.
@test "explain: when TERM and KILL come, how long the run would wait, and what it would run" {
    local options status_wanted told_wanted
    grep -q 'long outage, here one of six minutes' "$ROOT/man/rlock.1"
    while IFS='|' read -r options status_wanted told_wanted; do
        # shellcheck disable=SC2086
        explains "$status_wanted" $options
        tells "$told_wanted"
    done <<'END'
-t 30 -- true|0|The lease lasts 30s \(--ttl\), and is renewed every 10s\.
-t 30 -- true|0|gets TERM 24\.4s after .*, and KILL after 29\.4s; the lease ends after 29\.7s
-t 30 -- true|0|an outage of the server of up to 14s doesn't affect the command
-t 10m -- true|0|an outage of the server of up to 6m
-t 30 --kill-after 10 -- true|0|the command gets TERM 19\.4s after .*, and KILL after 29\.4s
-t 30 --on-lost ignore -- true|0|the lease ends 29\.7s after .* The command runs on then
-- true|0|waits without limit, .* gives up after 5s\. Waiters get the lock in the order
-w 90 --queue none -- true|0|waits for at most 1m30s \(--wait\)\. rlock doesn.t join a queue
--protocol timestamp -- true|0|rlock doesn.t join a queue: it retries
|0|command: No command is given
-c exit|0|command: /bin/sh would run
-- no-such-program|127|no-such-program is not found: status 127\.
-- /etc/passwd|126|/etc/passwd can.t be executed: status 126\.
-- /tmp|126|/tmp can.t be executed: status 126\.
-n -- true|0|If the lock is taken, rlock ends at once\. If no server .*, it gives up after 5s\.
--nested -- true|76|RLOCK_TOKEN is not set, so there is no parent lock: status 76
--history 20 -- true|0|notes this grant and its end, among the last 20 events .* \(--history\)
-u redis://127.0.0.1:1 --connect-timeout 0.2 -- true|69|not be examined: 127.0.0.1:1: .*refused
-u redis://127.0.0.1:1 --connect-timeout 0.2 -- true|69|the command gets TERM 24\.4s
--kill-after 1d -- true|64|
--max-hold x -- true|64|
END
    RLOCK_HISTORY=7 explains 0 -- true
    tells 'the last 7 events of the lock \(RLOCK_HISTORY\)'
    RLOCK_TOKEN=0123456789abcdef0123456789abcdef explains 0 -- true
    tells 'the command runs under that lock'
    refute_match "$told" 'history'
    RLOCK_TOKEN=0123456789abcdef0123456789abcdef explains 0 --nested -- true
    tells 'the command runs under that lock; else rlock ends with status 76 \(--nested\)'
    run -0 env -i "$RLOCK" --explain -u local: -k "$KEY" -- true
    run -0 env -i "$RLOCK" --explain -u local: -k $'a\e[31mb' -- true
    assert_match "$output" 'a\\x1b\[31mb'
}

@test "explain: when a command that may be frozen is frozen, or gets KILL" {
    need_cgroup # else the run would end with 71
    explains 0 -t 30 --on-lost pause -- true
    tells 'the command is frozen 27\.4s after .*, or gets KILL after 29\.4s'
}

@test "explain: an unsafe server gives status 78, and the row of doctor that says why" {
    redis_start own
    explains 78 -u "redis://127.0.0.1:$REDIS_PORT" -- true
    tells 'doctor: unsafe persistence: .* appendonly'
}

@test "explain: it lists all members of a quorum, and tells how many must grant the lock" {
    quorum_start 3 --appendonly yes
    explains 0 -t 1 --connect-timeout 1 -- true
    tells '2 of these 3 servers must grant the lock'
    assert_eq "$(grep -c 'redis://127' <<<"$output")" 3 'members told'
    on 2 redis_pause # its port stays in use
    explains 0 -t 1 --connect-timeout 1 -- true
    on 2 redis_continue
}

@test "explain: it neither starts the private server nor lets doctor examine it" {
    explains 0 -u local: -- true
    tells "server: local: Given by --url\. .*"
    tells "server: .*rlock would start one if none runs, in $DIR/rlock"
    tells 'doctor: The server was not examined'
    [[ ! -e $DIR/rlock ]]
    run -69 env PATH=/nowhere "$RLOCK" -u local: -n -k "$KEY" -- /bin/true
    run -69 env PATH=/nowhere "$RLOCK" --explain -u local: -k "$KEY" -- /bin/true
    assert_match "$output" 'neither valkey-server nor redis-server can be run'
}

@test "explain: --json prints a JSON object for each sentence" {
    explains 0 --json -- true
    python3 -c 'import json, sys
topics = [json.loads(line)["topic"] for line in sys.stdin]
assert sorted(set(topics)) == sorted(["lock", "command", "server", "connection", "lease",
    "waiting", "doctor"]), topics' <<<"$output"
}
