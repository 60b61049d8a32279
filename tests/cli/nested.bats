#!/usr/bin/env bats
# nested: an rlock in the command of a parent rlock uses the parent's lock, and doesn't wait for it.

load ../helpers/common
load ../helpers/server

# shellcheck disable=SC2016
seen='echo "$RLOCK_TOKEN $RLOCK_FENCE $RLOCK_TTL_MS"'

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
    assert_match "${lines[0]}" '^[0-9a-f]{32} [0-9]{16} 30000$'
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
    ended 0 outer
    assert_only_fences

    outer --on-lost ignore
    redis_cli set "$KEY" other px 60000 >/dev/null
    eventually 5 file_has "$DIR/outer.out" '^inner 76$'
    assert_eq "$(value "$KEY")" other
    end outer
    ended 76 outer
    assert_eq "$(value "$KEY")" other
}

# bats test_tags=long
@test "the nested rlock renews the lease while the parent rlock is stopped" {
    outer --on-lost ignore
    stop "$pid"
    never 5 gone "$KEY" # for longer than the TTL
    kill -CONT "$pid"
    end inner
    eventually 5 file_has "$DIR/outer.out" '^inner 0$'
    end outer
    ended 76 outer # no renewal was confirmed to the parent rlock itself
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
    queued waiter -- true
    forged=$(redis_cli zrange "{$KEY}:rlock:queue" 0 -1)
    RLOCK_TOKEN=$forged run -75 rlock -q -n -k "$KEY" -- true
    # rlock accepts the holder's token as the token of a parent.
    RLOCK_TOKEN=$(env_of other RLOCK_TOKEN) run -0 rlock -q -n -k "$KEY" -- true
    exists "$KEY"
    let_go other
    ended 0 waiter
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
    ended 0 waiter
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
    token=$(RLOCK_NESTED=yes rlock acquire -k "$KEY") # for commands alone
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

# ---- the server of a nested rlock ----

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
