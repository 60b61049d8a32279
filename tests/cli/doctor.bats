#!/usr/bin/env bats
# doctor: grades as unsafe only what makes locks unsafe, and changes nothing on the server.

load ../helpers/common
load ../helpers/fake

CHECKS='connection server role eviction persistence replicas user rights scripts clock clock_rate
    round_trip locks host'

setup_file() { redis_start healthy --appendonly yes; }

setup() {
    common_setup
    redis_use healthy
    redis_cli flushall >/dev/null
    here
}

here() { export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT; }
doctor() { run --separate-stderr on_its_clock timeout 30 "$RLOCK" doctor "$@"; }
set_to() { redis_cli config set "$@" >/dev/null; }

# found STATUS GRADE CHECK REGEX: doctor ended with STATUS, and its finding of CHECK has GRADE and
# matches REGEX.
found() {
    assert_status "$1"
    assert_match "$(grep "^$2 *$3: " <<<"$output" || echo "$output")" "^$2 +$3: .*$4" "$3"
}

checks_told() { sed -nE 's/^\{"check":"([a-z ]+)".*/\1/p' <<<"$output" | tr ' ' _; }

@test "doctor: on a good server all findings are good, as text and as JSON, and no key is left" {
    doctor
    assert_status 0
    assert_eq "$stderr" ''
    refute_match "$output" '(^|'$'\n'')(weak|unsafe|unknown)'
    found 0 good server '(Redis|Valkey) [0-9.]+, standalone, database 0 of 16$'
    found 0 good rights 'all that rlock needs for rlock-doctor$'
    found 0 good user 'default$'
    doctor -u "redis://job@127.0.0.1:$REDIS_PORT"
    found 0 weak user 'default, though the URL names job; give a password, '
    doctor --json -k "$KEY"
    assert_status 0
    assert_eq "$(checks_told | tr '\n' ' ')" "$(tr -s ' \n' ' ' <<<"$CHECKS")"
    perl -MJSON::PP -ne 'decode_json($_)' <<<"$output"
    doctor -q
    assert_status 0
    assert_eq "$output$stderr" ''
    assert_eq "$(redis_cli dbsize)" 0
}

@test "doctor: a lock that is held and waited for keeps its value, its TTL and its queue" {
    local before
    hold first -k "$KEY" -t 60
    queued second -- true
    before=$(value "$KEY")
    doctor -k "$KEY"
    found 0 good rights "for $KEY$"
    found 0 good locks '1, and each lock expires by itself'
    assert_eq "$(value "$KEY")" "$before"
    assert_between "$(ttl_ms "$KEY")" 30000 60000 PTTL
    in_line 1
    let_go first
    ended 0 second
    gone "$KEY"
}

@test "doctor: the finding about persistence tells what a restart of the server loses" {
    redis_start other
    here
    doctor
    found 78 unsafe persistence 'any restart loses all locks.*; set appendonly to yes$'
    set_to save '3600 1'
    doctor
    found 0 weak persistence 'the locks granted since the last snapshot; set appendonly to yes$'
    set_to appendonly yes
    set_to appendfsync no
    doctor
    found 0 weak persistence 'appendfsync no: .*; set appendfsync to everysec or always$'
    set_to appendfsync always
    doctor
    found 0 good persistence 'no restart loses a lock$'
}

@test "doctor: a replica is unsafe; --replicas decides if a primary with a replica is safe" {
    local port=$REDIS_PORT
    set_to repl-diskless-sync-delay 0
    redis_start replica --replicaof "127.0.0.1 $port" --appendonly yes
    eventually 20 eval 'redis_cli info replication | grep -q master_link_status:up'
    here
    doctor
    found 78 unsafe role "a replica of 127.0.0.1:$port, .*; name the primary with -u$"
    redis_use healthy
    here
    eventually 10 eval 'redis_cli info replication | grep -q state=online'
    doctor
    found 0 weak replicas '1, .* may lose a lock that was just granted; use --replicas'
    doctor --replicas 1
    found 0 good replicas 'replicas online: 1, and a grant counts if 1 have it$'
    doctor --replicas 2
    found 78 unsafe replicas 'replicas online: 1, but --replicas needs 2'
}

@test "doctor: the manual's ACL rule is enough, and doctor names a command that is taken away" {
    local command
    redis_user whole
    RLOCK_URL=redis://whole:SECRET@127.0.0.1:$REDIS_PORT doctor -k job:a
    found 0 weak rights 'enough to hold locks, but not to inspect or break them: .*TYPE.*SCAN'
    found 0 unknown info 'no answer .the server says: NOPERM .*so version, role.*; allow the user'
    for command in incr zscore; do
        redis_user "$command"
        redis_cli acl setuser "$command" "-$command" >/dev/null
        doctor -k job:a -u "redis://$command:SECRET@127.0.0.1:$REDIS_PORT"
        found 78 unsafe rights "denied: ([A-Z ]* )?${command^^} .*; allow .*\+$command( |$)"
    done
    found 78 unsafe rights 'denied: ZSCORE for -s and --slots '
    assert_eq "$(redis_cli --scan)" ''
}

@test "doctor: it names the rights that a user lacks: to keys, to TIME, to WAIT for --replicas" {
    local at=SECRET@127.0.0.1:$REDIS_PORT
    redis_user some
    RLOCK_URL=redis://some:$at doctor -k other:a
    found 78 unsafe rights 'denied: the keys of other:a .*; allow the user ~other:\* ~\{other:\*$'
    # Without -k doctor can't know which keys this user may use.
    RLOCK_URL=redis://some:$at doctor
    found 0 unknown rights \
        'denied: the keys of rlock-doctor .*; name a lock that this user takes, by -k KEY$'
    redis_user some
    RLOCK_URL=redis://some:$at doctor -k job:a --replicas 1
    found 78 unsafe rights 'WAIT .*NOPERM'
    redis_cli acl setuser some -time >/dev/null
    RLOCK_URL=redis://some:$at doctor
    found 78 unsafe rights 'denied: TIME .the server says: NOPERM'
    assert_line 'this user can take no such lock on this server: rights$'
    # shellcheck disable=SC2046
    redis_cli acl setuser some -@all $(grep -oE '\+[a-z|]+' <<<"$output") +info +config >/dev/null
    RLOCK_URL=redis://some:$at doctor -k job:a
    found 0 weak rights 'enough to hold locks'
    assert_eq "$(redis_cli --scan)" ''
}

@test "doctor: it exits with 69 for no server, 77 for a wrong password, 64 for two keys" {
    doctor -u redis://127.0.0.1:1
    assert_status 69
    assert_eq "$output" ''
    assert_line 'unreachable: '
    doctor -u "redis://nobody:secret@127.0.0.1:$REDIS_PORT"
    assert_status 77
    refute_match "$output$stderr" secret
    doctor -k a -k b
    assert_status 64
}

@test "doctor: a round trip too long for the TTL is unsafe, a shorter one is weak or good" {
    line_start "$REDIS_PORT"
    line delay 60
    doctor -u "redis://127.0.0.1:$LINE_PORT" -t 1
    found 78 unsafe 'round trip' 'with a ttl of 1000 ms a reply may take 100 ms; use a longer --ttl'
    line delay 20
    doctor -u "redis://127.0.0.1:$LINE_PORT" -t 1
    found 0 weak 'round trip' 'a reply may take 100 ms; use a longer --ttl'
    doctor -u "redis://127.0.0.1:$LINE_PORT"
    found 0 good 'round trip' 'a reply may take 2000 ms$'
}

@test "doctor: the private server of local: is good, although it keeps nothing on disk" {
    unset RLOCK_URL
    run -0 --separate-stderr rlock doctor -u local:
    assert_match "$output" 'good +persistence: none, and none is needed'
    refute_match "$output" '(^|\n)(unsafe|weak)'
}
