#!/usr/bin/env bats
# sentinel: a lock on the primary that Sentinels name, while primaries and Sentinels fail.

load ../helpers/common
load ../helpers/fake
load ../helpers/sentinel
load ../helpers/tls

FIND=redis+sentinel://rlock:SECRET@

# All tests use a server user who has only the rights that the manual says rlock needs.
setup_file() {
    local each
    sentinel_start
    for each in r1 r2 r3; do
        redis_use "$each"
        redis_user rlock +role +ltrim # for a history
        redis_allow_inspection rlock
    done
}

setup() {
    common_setup
    KEY=job:$KEY
    server_at "$(primary_of 1)"
    export RLOCK_URL=$FIND$SENTINELS/main
}

@test "a lock is on the primary; 78 if no Sentinel knows the service, 69 if none is reachable" {
    hold holder -k "$KEY"
    exists "$KEY"
    run -75 rlock status -k "$KEY"
    let_pass holder
    RLOCK_URL=$FIND$SENTINELS/other run -78 --separate-stderr rlock -k "$KEY" -- true
    assert_line "other: .*doesn't know this service"
    RLOCK_URL=${FIND}127.0.0.1:1/main run -69 --separate-stderr rlock -k "$KEY" -n -- true
    assert_line 'main: 127.0.0.1:1: connect: Connection refused'
}

names() { echo "*2\\r\\n\$9\\r\\n127.0.0.1\\r\\n\$${#1}\\r\\n$1\\r\\n"; }

@test "if the Sentinels name another primary, rlock leaves the old one, and the lock is lost" {
    local old=$REDIS_PORT
    redis_start other
    redis_user rlock +role
    fake_start <<END
ACCEPT
EXPECT SENTINEL get-master-addr-by-name main
SEND $(names "$old")
READ
ACCEPT
EXPECT SENTINEL get-master-addr-by-name main
SEND $(names "$REDIS_PORT")
READ
LOOP
END
    export RLOCK_URL=${FIND}127.0.0.1:$FAKE_PORT/main
    run -76 --separate-stderr rlock -t 3 -k "$KEY" -- sleep 10
    assert_match "$stderr" 'lost: the server no longer has the lock'
    assert_eq "$(redis_cli dbsize)" 0 'keys on the new primary'
}

replicas_have() {
    local each
    for each in r1 r2 r3; do
        redis_use "$each"
        dead "$REDIS_PID" || [[ $(redis_cli exists "$KEY") == 1 ]] || return 1
    done
}

# bats test_tags=long
@test "if the primary is killed, the holder keeps lock and history; then 20 waiters get the lock" {
    local old=$REDIS_PORT each name=${REDIS_DIR##*/server-}
    echo 0 >"$DIR/sum"
    hold holder -t 10 --history 9 -k "$KEY"
    for each in {1..20}; do
        start "w$each" "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" "$each"
        eventually 5 in_line "$each"
    done
    eventually 10 replicas_have
    redis_use "$name"
    redis_crash
    sentinel_fail_over "$old"
    server_at "$(primary_of 1)"
    eventually 10 in_line 20
    let_pass holder
    assert_turns 20
    assert_match "$(rlock history -k "$KEY" --json)" '"end":"ended".*"status":0'
}

# doctor SENTINELS OPTION...: runs rlock doctor with a URL of these Sentinels.
doctor() {
    run rlock doctor -u "redis+sentinel://$1/main" "${@:2}"
}

@test "doctor: Sentinels that agree are good; slow, silent or disagreeing ones aren't" {
    local some=${SENTINELS%,*}
    doctor "$SENTINELS" -t 5m
    assert_match "$output" 'good +sentinels: 3 Sentinels agree, and .* is down for 60000 ms'
    doctor "$SENTINELS"
    assert_match "$output" 'weak +sentinels: .* 60000 ms .* outlasts only 20000 ms .*; lower down-'
    doctor "$SENTINELS,127.0.0.1:1" -t 5m
    assert_match "$output" "weak +sentinels: 3 of 4 Sentinels answer, but 127.0.0.1:1 doesn't"
    redis_use s2
    redis_cli sentinel set main quorum 4 >/dev/null
    doctor "$some" -t 5m
    assert_match "$output" 'weak +sentinels: 3 Sentinels, with a quorum of 4: .*; run three'
    # A Sentinel of this test's own disagrees. One of the others would not do so for long: they know
    # each other, and tell each other which server became the primary in an earlier test.
    sentinel_launch 4 1 2
    doctor "$SENTINELS,127.0.0.1:$REDIS_PORT" -t 5m
    assert_status 78
    assert_match "$output" \
        "unsafe +sentinels: .*:$REDIS_PORT says .* is 127.0.0.1:1, not .*; wait"
}

# ---- Sentinels with a password, or with TLS ----

# protected OPTION...: runs rlock with these options, by way of Sentinel s1 alone.
protected() {
    redis_use s1
    RLOCK_URL=${FIND}127.0.0.1:$REDIS_PORT/main run --separate-stderr rlock -k "$KEY" -n "$@"
}
# protect PASSWORD: from now on Sentinel s1 wants a password on each new connection. The connections
# that the Sentinels have to each other stay open.
protect() {
    redis_use s1
    redis_cli acl setuser default resetpass ">$1" >/dev/null
}
as_admin() { redis_use s1 && REDISCLI_AUTH=$1 redis_cli "${@:2}" >/dev/null; }

@test "a Sentinel's password may be given in each way; if it is missing or wrong, rlock exits 77" {
    local way
    printf 'spass\n' >"$DIR/password"
    printf 'wrong-spass\n' >"$DIR/wrong"
    echo "sentinel-password-file = $DIR/password" >"$DIR/config"
    protect spass
    protected -- true
    assert_status 77
    assert_line '; name the file .* with --sentinel-password-file.*NOAUTH'
    REDISCLI_AUTH=spass protected -- true
    assert_status 77
    protected --sentinel-password-file "$DIR/wrong" -- true
    assert_status 77
    assert_line 'WRONGPASS'
    refute_match "$stderr" wrong-spass
    for way in "env RLOCK_SENTINEL_PASSWORD=spass" "env RLOCK_CONFIG=$DIR/config" \
        "env RLOCK_SENTINEL_PASSWORD_FILE=$DIR/password"; do
        # shellcheck disable=SC2086 # several words
        RLOCK_URL=${FIND}127.0.0.1:$REDIS_PORT/main run -0 --separate-stderr $way "$RLOCK" \
            -k "$KEY" -n -- printenv RLOCK_TOKEN
    done
    protected --sentinel-user nobody -- true
    assert_status 78
    assert_line 'a user for the Sentinels is set, but no password'
    protected --sentinel-password-file "$DIR/none" -- true
    assert_status 78
    assert_line "sentinel password file $DIR/none: No such file"
    as_admin spass acl setuser finder on '>fpass' '+sentinel|get-master-addr-by-name' \
        '+sentinel|master'
    printf 'fpass\n' >"$DIR/password"
    protected --sentinel-password-file "$DIR/password" -- true
    assert_status 77
    protected --sentinel-password-file "$DIR/password" --sentinel-user finder -- true
    assert_status 0
    as_admin spass acl setuser default nopass
}

@test "rediss+sentinel: rlock asks Sentinels and primary by TLS, and verifies both" {
    local tls primary sentinel
    need openssl
    "$RLOCK" --version | grep -q 'TLS yes' || skip 'rlock was built without TLS'
    TLS=$DIR/tls
    mkdir "$TLS"
    tls_ca ca
    tls_ca other
    tls_certificate server ca IP:127.0.0.1
    tls=(--tls-auth-clients no --tls-replication yes)
    tls_redis primary server "${tls[@]}"
    primary=$TLS_PORT
    mkdir -p "$BATS_TEST_TMPDIR/server-tls"
    echo "sentinel monitor main 127.0.0.1 $primary 1" \
        >"$BATS_TEST_TMPDIR/server-tls/sentinel.conf"
    REDIS_DIR=$BATS_TEST_TMPDIR/server-tls tls_redis tls server "${tls[@]}" --requirepass spass
    sentinel=$TLS_PORT
    export RLOCK_URL=rediss+sentinel://127.0.0.1:$sentinel/main RLOCK_SENTINEL_PASSWORD=spass
    run -0 --separate-stderr rlock --tls-ca "$TLS/ca.crt" -k "$KEY" -n -- printenv RLOCK_KEY
    assert_eq "$output" "$KEY"
    run --separate-stderr rlock doctor --tls-ca "$TLS/ca.crt"
    assert_match "$output" 'good +connection: TLS'
    assert_match "$output" 'sentinels: [1a]' # the doctor has asked the Sentinel
    run -78 --separate-stderr rlock --tls-ca "$TLS/other.crt" -k "$KEY" -n -- true
    assert_line 'main: 127.0.0.1:[0-9]*: .*certificate'
    RLOCK_URL=redis+sentinel://127.0.0.1:$sentinel/main \
        run -69 --separate-stderr rlock -k "$KEY" -n -- true
}
