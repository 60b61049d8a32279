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
teardown_file() {
    local each
    for each in s1 s2 s3 r1 r2 r3; do
        redis_use "$each"
        dead "$REDIS_PID" || redis_stop
    done
}

setup() {
    common_setup
    KEY=job:$KEY
    server_at "$(primary_of 1)"
    export RLOCK_URL=$FIND$SENTINELS/main
}

@test "a lock is acquired, shown and released on the primary" {
    hold holder -k "$KEY"
    exists "$KEY"
    run -75 rlock status -k "$KEY"
    run -75 rlock -k "$KEY" -n -- true
    let_go holder
    assert_status 0
    gone "$KEY"
}

@test "rlock exits with 78 if no Sentinel knows the service, and with 69 if none is reachable" {
    RLOCK_URL=$FIND$SENTINELS/other run -78 --separate-stderr rlock -k "$KEY" -- true
    assert_line "other: .*doesn't know this service"
    RLOCK_URL=${FIND}127.0.0.1:1/main run -69 --separate-stderr rlock -k "$KEY" -n -- true
    assert_line 'main: 127.0.0.1:1: connect: Connection refused'
}

# lying_sentinel ANSWER: starts a false Sentinel that sends ANSWER to every question.
lying_sentinel() {
    fake_start <<END
ACCEPT
EXPECT SENTINEL get-master-addr-by-name main
SEND $1
READ
LOOP
END
}

names() { echo "*2\\r\\n\$9\\r\\n127.0.0.1\\r\\n\$${#1}\\r\\n$1\\r\\n"; }

# assert_unmoved: rlock asks the false Sentinel first, then the honest one, which answers only after
# the false one. The lock must be acquired on the true primary.
assert_unmoved() {
    local before primary=$REDIS_PORT
    redis_use s1
    redis_pause
    before=$(now_ms)
    start honest env RLOCK_URL="${FIND}127.0.0.1:$FAKE_PORT,127.0.0.1:$REDIS_PORT/main" \
        "$RLOCK" -k "$KEY" -n -- "$TOOLS/hold_clock"
    eventually 5 file_has "$DIR/fake.out" GOT
    redis_continue
    finish honest
    assert_status 0
    is_sanitized || assert_between "$((output - before))" 0 3000 'ms until the command ran'
    server_at "$primary"
}

@test "rlock doesn't believe a Sentinel that names a replica, a dead server or no server" {
    local replica primary=$REDIS_PORT
    redis_use s2
    replica=$(redis_cli sentinel replicas main | field port)
    server_at "$primary"
    lying_sentinel "$(names "$replica")"
    assert_unmoved
    lying_sentinel "$(names 1)"
    assert_unmoved
    lying_sentinel '+OK\r\n'
    assert_unmoved
    lying_sentinel '$-1\r\n'
    assert_unmoved
    mute_start
    lying_sentinel "$(names "$MUTE_PORT")"
    assert_unmoved
}

# mute_start: starts a server that accepts connections and never answers.
mute_start() {
    redis_start mute
    redis_pause
    MUTE_PORT=$REDIS_PORT
    server_at "$(primary_of 2)"
}

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

@test "mute Sentinels cause no delay to a run" {
    local before
    mute_start
    before=$(now_ms)
    RLOCK_URL=${FIND}127.0.0.1:$MUTE_PORT,127.0.0.1:1,${SENTINELS%%,*}/main \
        run -0 rlock -k "$KEY" -n -- "$TOOLS/hold_clock"
    is_sanitized || assert_between "$((output - before))" 0 2000 'ms until the command ran'
}

# is_renewed: shortens the lease on the server, so that only a renewal can make it longer.
is_renewed() {
    redis_cli pexpire "$KEY" 3500 >/dev/null
    eventually 3 lasts 4000
}
lasts() { (($(ttl_ms "$KEY") > $1)); }

# bats test_tags=long
@test "while all Sentinels hang, the holder renews, and the next waiter is granted the lock" {
    local each primary=$REDIS_PORT
    hold holder -t 6 -k "$KEY"
    start waiter "$RLOCK" -k "$KEY" -- true
    eventually 5 in_line 1
    for each in s1 s2 s3; do
        redis_use "$each"
        redis_pause
    done
    server_at "$primary"
    is_renewed
    let_go holder
    assert_status 0
    finish waiter 5
    assert_status 0
    for each in s1 s2 s3; do
        redis_use "$each"
        redis_continue
    done
}

in_line() { [[ $(redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }
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
    let_go holder
    assert_status 0
    assert_turns 20
    assert_match "$(rlock history -k "$KEY" --json)" '"end":"ended".*"status":0'
}

# bats test_tags=long
@test "a primary that stops and returns after a failover isn't used any more" {
    local old=$REDIS_PORT name=${REDIS_DIR##*/server-} new
    hold holder -t 12 -k "$KEY"
    eventually 10 replicas_have
    redis_use "$name"
    redis_pause
    sentinel_fail_over "$old"
    server_at "$(primary_of 1)"
    new=$REDIS_PORT
    eventually 12 renewed
    redis_use "$name"
    redis_continue
    assert_match "$(redis_cli role)" master 'role that the old primary tells'
    run -75 rlock -k "$KEY" -n -- true
    redis_cli del "$KEY" >/dev/null
    run -75 rlock -k "$KEY" -n -- true
    server_at "$new"
    let_go holder
    assert_status 0
    gone "$KEY"
}
renewed() { (($(ttl_ms "$KEY") > 11000)); }

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
        'unsafe +sentinels: the Sentinels disagree: .* the primary is 127.0.0.1:1; wait'
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
    protected --sentinel-password-file "$DIR/password" -- printenv RLOCK_SENTINEL_PASSWORD_FILE
    assert_status 1
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
    RLOCK_URL=${FIND}127.0.0.1:$REDIS_PORT/main RLOCK_SENTINEL_PASSWORD=fpass \
        run --separate-stderr rlock doctor --sentinel-user finder
    assert_match "$output" 'sentinels: (a primary is replaced|[0-9]+ Sentinels agree)'
    as_admin spass acl setuser default nopass
}

# bats test_tags=long
@test "when the Sentinels' password changes, neither holder nor waiter loses its lock" {
    local turn url
    printf 'p0\n' >"$DIR/password"
    protect p0
    export RLOCK_SENTINEL_PASSWORD_FILE=$DIR/password
    url=${FIND}127.0.0.1:$REDIS_PORT/main
    mkfifo "$DIR/go"
    start holder env RLOCK_URL="$url" "$RLOCK" -t 3 -v -k "$KEY" -- sh -c \
        'echo running; read -r _ <"$0"' "$DIR/go"
    eventually 10 file_has "$DIR/holder.out" running
    start waiter env RLOCK_URL="$url" "$RLOCK" -t 3 -k "$KEY" -- true
    for turn in 1 2 3; do
        as_admin "p$((turn - 1))" acl setuser default resetpass ">p$turn"
        printf 'p%d\n' "$turn" >"$DIR/password.new"
        mv "$DIR/password.new" "$DIR/password"
        : >"$DIR/holder.err"
        eventually 10 file_has "$DIR/holder.err" renewed
    done
    echo >"$DIR/go"
    finish holder
    assert_status 0
    finish waiter
    assert_status 0
    as_admin p3 acl setuser default nopass
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
