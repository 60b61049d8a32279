#!/usr/bin/env bats
# nested: an rlock in the command of a parent rlock uses the parent's lock, and doesn't wait for it.

load ../helpers/common
load ../helpers/kinds

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() { kinds_setup; }

# shellcheck disable=SC2016
seen='echo "$RLOCK_TOKEN $RLOCK_FENCE $RLOCK_TTL_MS"'

@test "of three nested rlocks each runs under the lease of the outermost" {
    run -7 rlock -k "$KEY" -t 30 -w 5 -c "$seen; \"$RLOCK\" -k '$KEY' -w 5 -c '$seen;
        \"$RLOCK\" -k \"$KEY\" -n -c \"${seen//[\"\$]/\\&}; exit 7\"'"
    assert_eq "${#lines[@]}, ${lines[1]}, ${lines[2]}" "3, ${lines[0]}, ${lines[0]}"
    assert_match "${lines[0]}" "^[0-9a-f]{32} [0-9]{16} 30000$"
    assert_only_fences
}

@test "a nested rlock needs only RLOCK_TOKEN, and has the shorter TTL of its own and its parent's" {
    cat >"$DIR/inner" <<END
$seen
case \$1 in
    1) exec "$RLOCK" -u "$RLOCK_URL" -k "$KEY" -t 1m -n -- sh "$DIR/inner" 2 ;;
    2) exec env -i RLOCK_TOKEN="\$RLOCK_TOKEN" \\
        "$RLOCK" -u "$RLOCK_URL" -k "$KEY" -t 10 -n -- sh "$DIR/inner" 3 ;;
    3) exit 8 ;;
esac
END
    run -8 rlock -k "$KEY" -t 30 -- sh "$DIR/inner" 1
    assert_match "${lines[0]}" ' 30000$'
    assert_eq "${#lines[@]}, ${lines[1]}" "3, ${lines[0]}"
    assert_eq "${lines[2]}" "${lines[0]% *} 10000" # the third rlock asked for a shorter TTL
    assert_only_fences
}

# outer OPTION...: starts an rlock, and a nested rlock in it. `end` lets either of them end.
outer() {
    rm -f "$DIR"/*.end
    mkfifo "$DIR/inner.end" "$DIR/outer.end"
    start outer "$RLOCK" -k "$KEY" -t 4 "$@" -- sh -c '
        "$RLOCK" -k "$KEY" -t 4 -- sh -c "echo running; read -r _ <\"$DIR/inner.end\""
        echo "inner $?"; read -r _ <"$DIR/outer.end"'
    eventually 5 file_has "$DIR/outer.out" running
}

end() { timeout 10 tee "$DIR/$1.end" <<<'' >/dev/null; }

@test "the nested rlock doesn't release the lock, and its command is ended when the lock is lost" {
    outer
    end inner
    eventually 5 file_has "$DIR/outer.out" '^inner 0$'
    exists "$KEY"
    end outer
    finish outer
    assert_status 0
    assert_only_fences

    outer --on-lost ignore
    redis_cli set "$KEY" other px 60000 >/dev/null
    eventually 5 file_has "$DIR/outer.out" '^inner 76$'
    assert_eq "$(value "$KEY")" other
    end outer
    finish outer
    assert_status 76
    assert_eq "$(value "$KEY")" other
}

# bats test_tags=long
@test "the nested rlock renews the lease while the parent rlock is stopped" {
    outer --on-lost ignore
    kill -STOP "$pid"
    never 2 gone "$KEY"
    kill -CONT "$pid"
    end inner
    eventually 5 file_has "$DIR/outer.out" '^inner 0$'
    end outer
    finish outer
    assert_status 76 # no renewal was confirmed to the parent rlock itself
    assert_only_fences
}

@test "a forged token, and a token whose lock was released, are not accepted" {
    local token forged
    token=$(rlock -k "$KEY" -c 'echo "$RLOCK_TOKEN"')
    hold other -k "$KEY"
    for forged in "$token" 00000000000000000000000000000000 0123456789abcdef0123456789abcdef \
        "$(tr '[:lower:]' '[:upper:]' <<<"$(env_of other RLOCK_TOKEN)")" \
        "$(env_of other RLOCK_TOKEN)0" '*' "$(printf '%5000s' '' | tr ' ' a)" ' '; do
        RLOCK_TOKEN=$forged RLOCK_PARENT_TOKENS=$forged run -75 rlock -q -n -k "$KEY" -- true
    done
    # rlock doesn't accept a waiter's token as the token of a parent: a waiter holds no lock.
    start waiter "$RLOCK" -k "$KEY" -- true
    eventually 5 in_line 1
    forged=$(redis_cli zrange "{$KEY}:rlock:queue" 0 -1)
    RLOCK_TOKEN=$forged run -75 rlock -q -n -k "$KEY" -- true
    # rlock accepts the holder's token as the token of a parent.
    RLOCK_TOKEN=$(env_of other RLOCK_TOKEN) run -0 rlock -q -n -k "$KEY" -- true
    exists "$KEY"
    let_go other
    finish waiter
    assert_status 0
    # After the parent's release, its token isn't accepted any more.
    RLOCK_TOKEN=$(env_of other RLOCK_TOKEN) run -0 rlock -k "$KEY" -c 'echo "$RLOCK_TOKEN"'
    [[ $output != "$(env_of other RLOCK_TOKEN)" ]]
    assert_only_fences
}

@test "rlock warns that the parent lock is gone before it runs the command under a new lock" {
    local gone="warning: the token in RLOCK_TOKEN no longer holds $KEY; "
    gone+='this run takes a lock of its own'
    # shellcheck disable=SC2016
    run -76 --separate-stderr rlock -k "$KEY" --on-lost ignore -t 60 -- sh -c "
        $(asking) del '$KEY' >/dev/null
        \"\$RLOCK\" -k '$KEY' -- sh -c 'echo ran >&2'"
    assert_match "$stderr" "^rlock: $KEY: $gone; with --nested it would exit with 76.ran"
    # rlock warns only of keys in RLOCK_KEY: no parent claimed to hold the locks of others.
    run -0 --separate-stderr rlock -k "$KEY" -- "$RLOCK" -k "$KEY:2" -- true
    assert_eq "$stderr" ''
    run --separate-stderr rlock -k "$KEY:a" -k "$KEY:b" --on-lost ignore -- sh -c "$(asking) del \
        '$KEY:b' >/dev/null; \"\$RLOCK\" -k '$KEY:a' -k '$KEY:b' -k '$KEY:c' -- true"
    assert_match "$stderr" "warning: the token in RLOCK_TOKEN no longer holds $KEY:b"
    # With RLOCK_TOKEN alone, rlock can't know whether the token ever held this key.
    RLOCK_TOKEN=$(rlock acquire -k "$KEY")
    export RLOCK_TOKEN
    run -0 --separate-stderr rlock -k "$KEY" -- true
    assert_eq "$stderr" ''
    rlock release -k "$KEY"
    run -0 --separate-stderr rlock -k "$KEY" -- true
    assert_line "^rlock: $KEY: warning: the token in RLOCK_TOKEN doesn't hold $KEY, or holds it "
    RLOCK_KEY=$KEY run -0 --separate-stderr rlock -k "$KEY:2" -- true
    assert_eq "$stderr" ''
    # The warning also comes before a wait.
    hold other -k "$KEY"
    RLOCK_KEY=$KEY start waiter "$RLOCK" -k "$KEY" -- true
    eventually 5 file_has "$DIR/waiter.err" "$gone"
    let_go other
    finish waiter
    assert_status 0
    assert_line "$gone"
}

@test "--nested runs under a parent lock; without one it exits with 76, and takes no lock" {
    local token
    run -7 rlock -k "$KEY" -k "$KEY:2" -s -- "$RLOCK" --nested -k "$KEY" -s -- \
        "$RLOCK" --nested -k "$KEY:2" -s -- sh -c 'exit 7'
    redis_cli flushall
    run -76 --separate-stderr rlock --nested -k "$KEY" -- touch "$DIR/ran"
    assert_line "^rlock: $KEY: lost: --nested: RLOCK_TOKEN is not"
    assert_eq "$(redis_cli dbsize)" 0
    token=$(rlock acquire -k "$KEY")
    export RLOCK_TOKEN=$token
    run -0 --separate-stderr rlock --nested -k "$KEY" -- true
    assert_eq "$stderr" ''
    run -76 --separate-stderr rlock --nested -k "$KEY" -k "$KEY:2" -- touch "$DIR/ran"
    gone "$KEY:2"
    redis_cli flushall
    for RLOCK_TOKEN in "$token" x ''; do
        run -76 --separate-stderr rlock --nested -k "$KEY" -- touch "$DIR/ran"
        assert_line "^rlock: $KEY: lost: "
        assert_eq "$(redis_cli dbsize)" 0
    done
    export RLOCK_TOKEN=$token
    redis_cli set "$KEY" other PX 60000
    run -76 --separate-stderr timeout -k 1 20 "$RLOCK" --nested -k "$KEY" -- touch "$DIR/ran"
    assert_line "^rlock: $KEY: lost: --nested: no parent rlock holds this key: "
    run -64 --separate-stderr rlock --nested --protocol timestamp -k "$KEY" -- touch "$DIR/ran"
    [[ ! -e $DIR/ran ]]
}

# bats test_tags=long
@test "--nested in a quorum: a majority must have the parent lock" {
    load ../helpers/quorum
    quorum_start 3
    run -7 rlock -k "$KEY" -- "$RLOCK" --nested -k "$KEY" -- sh -c 'exit 7'
    RLOCK_TOKEN=$(printf '%032d' 1) run -76 rlock --nested -k "$KEY" -- touch "$DIR/ran"
    [[ ! -e $DIR/ran ]]
}

@test "of several keys, rlock uses the parent's locks, and takes and releases only the others" {
    # shellcheck disable=SC2016
    run -0 rlock -k "$KEY:a" -k "$KEY:b" -- sh -c '
        echo "$RLOCK_TOKEN $RLOCK_FENCE"
        "$RLOCK" -n -k "$KEY:b" -k "$KEY:c" -- sh -c "
            echo \"\$RLOCK_TOKEN \$RLOCK_FENCE\"
            \"\$RLOCK\" -n -k \"\$KEY:a\" -k \"\$KEY:c\" -- sh -c \"exit 0\" && echo both"
        "$RLOCK" -n -k "$KEY:c" -- true && echo free'
    assert_eq "${lines[2]} ${lines[3]}" 'both free'
    [[ ${lines[0]% *} != "${lines[1]% *}" ]]
    ((${lines[0]#* } < ${lines[1]#* })) # the nested rlock's own grant is the later one
    assert_only_fences
    hold other -k "$KEY:c"
    run -75 --separate-stderr rlock -k "$KEY:a" -- "$RLOCK" -n -k "$KEY:a" -k "$KEY:c" -- true
    assert_match "$stderr" "busy: $KEY:c is held for [0-9]+s by "
    let_go other
    assert_only_fences
}

@test "under an exclusive parent, -s and --slots are granted; -x under -s or --slots is refused" {
    run -0 rlock -k "$KEY" -- "$RLOCK" -n -k "$KEY" -s -- true
    run -0 rlock -k "$KEY" -- "$RLOCK" -n -k "$KEY" --slots 2 -- sh -c 'echo "$RLOCK_SLOT"'
    assert_eq "$output" 0
    run -0 rlock -k "$KEY" -s -- "$RLOCK" -n -k "$KEY" -s -- true
    hold first -k "$KEY:2" --slots 3
    run -0 rlock -k "$KEY:2" --slots 3 -- "$RLOCK" -n -k "$KEY:2" --slots 3 -- \
        sh -c 'echo "$RLOCK_SLOT"'
    assert_eq "$output" 1 # the parent's slot, not another one
    let_go first
    for how in -x --slots=2; do
        run -64 --separate-stderr rlock -k "$KEY" -s -- "$RLOCK" -k "$KEY" $how -- touch "$DIR/ran"
        assert_match "$stderr" ': usage: .*another mode'
    done
    run -64 rlock -k "$KEY" --slots 2 -- "$RLOCK" -k "$KEY" -x -- touch "$DIR/ran"
    [[ ! -e $DIR/ran ]]
    assert_only_fences
}

@test "a nested reader doesn't wait behind a writer, because its parent is a reader already" {
    hold other -k "$KEY" -s
    start writer "$RLOCK" -k "$KEY" -- true
    eventually 5 in_line 1
    RLOCK_TOKEN=$(env_of other RLOCK_TOKEN) run -0 rlock -n -k "$KEY" -s -- true
    in_line 1
    let_go other
    finish writer
    assert_status 0
    assert_only_fences
}

@test "--once and --min-hold of a nested rlock have no effect on the parent's lock" {
    run -0 rlock -k "$KEY" -- "$RLOCK" -k "$KEY" --once 1h -- true
    assert_only_fences
    run -0 rlock -k "$KEY" -- "$RLOCK" -k "$KEY" --min-hold 1h -- true
    assert_only_fences
}

# ---- the server of a nested rlock ----

@test "the command gets the address of -u as RLOCK_URL, without a password, unless it is set" {
    local at=127.0.0.1:$REDIS_PORT
    redis_cli acl setuser job on '>sesame' '~*' '&*' +@all
    unset RLOCK_URL REDIS_URL
    # shellcheck disable=SC2016
    while read -r given wanted; do
        run -0 --separate-stderr rlock -u "$given" -k "$KEY" -- sh -c 'echo "$RLOCK_URL"; env'
        assert_eq "${lines[0]}" "$wanted"
        refute_match "$output" sesame
    done <<END
redis://$at redis://$at
redis://$at/3 redis://$at/3
redis://job:sesame@$at redis://job@$at
redis://job:sesame@$at/2 redis://job@$at/2
unix://$REDIS_SOCKET unix://$REDIS_SOCKET
local: local:
END
    redis_cli acl deluser job
    RLOCK_URL=redis://$at/5 run -0 rlock -u "redis://$at" -k "$KEY" -- sh -c 'echo "$RLOCK_URL"'
    assert_eq "${lines[0]}" "redis://$at/5"
    # If a variable names the server, a nested rlock reads the same variable: RLOCK_URL isn't set.
    REDIS_URL=redis://$at run -0 rlock -k "$KEY" -- sh -c 'echo "<$RLOCK_URL>"'
    assert_eq "${lines[0]}" '<>'
}

@test "a nested rlock without -u locks on the server of its parent's -u" {
    unset RLOCK_URL REDIS_URL
    run -75 --separate-stderr rlock -u "unix://$REDIS_SOCKET" -k "$KEY" -- \
        sh -c "$(asking) set '$KEY:2' other >/dev/null; exec \"$RLOCK\" -k '$KEY:2' -n -- true"
    refute_match "$stderr" warning
    # a nested -u replaces an RLOCK_URL that the parent has set
    run -0 rlock -u "unix://$REDIS_SOCKET" -k "$KEY" -- "$RLOCK" -q -u local: -k "$KEY" -- \
        sh -c 'echo "$RLOCK_URL"'
    assert_eq "${lines[0]}" local:
}

# bats test_tags=long
@test "the options for TLS reach the command with the address, as absolute paths" {
    unset RLOCK_URL REDIS_URL
    mkdir "$DIR/tls"
    cp "$BATS_TEST_FILENAME" "$DIR/tls/ca.pem"
    cd "$DIR/tls"
    # shellcheck disable=SC2016
    run -0 rlock -u "unix://$REDIS_SOCKET" --tls-ca ca.pem --tls-name host -k "$KEY" -- \
        sh -c 'echo "$RLOCK_TLS_CA $RLOCK_TLS_NAME"'
    assert_eq "${lines[0]}" "$DIR/tls/ca.pem host"
}

@test "a nested rlock that uses another server than its parent warns; one that doesn't is silent" {
    local warning='warning: this rlock uses the server local:, but the rlock that it runs under'
    unset RLOCK_URL REDIS_URL
    run -0 --separate-stderr rlock -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" -- \
        "$RLOCK" -u local: -k "$KEY" -- true
    assert_line "$warning uses 127.0.0.1:$REDIS_PORT/0; see RLOCK_URL and -u"
    run -0 --separate-stderr rlock -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" -- \
        "$RLOCK" -q -u local: -k "$KEY" -- true
    assert_eq "$stderr" ''
    run -0 --separate-stderr rlock -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" -- \
        "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT/0" -k "$KEY" -- true
    assert_eq "$stderr" ''
}
