#!/usr/bin/env bats
# first_contact: mistakes of a new user, and the message or suggestion that rlock answers.

load ../helpers/common
load ../helpers/server

# refused STATUS REGEX ARG...: rlock with exactly these arguments must end with STATUS, and write
# one line that matches and nothing to stdout.
refused() {
    local wanted=$1 says=$2
    shift 2
    run "-$wanted" --separate-stderr rlock "$@"
    assert_line "$says"
    assert_eq "$output" ""
}

# ---- mistakes with verbs ----

@test "a verb is found behind options, if no -k stands before it" {
    local words
    hold job -k "$KEY"
    while read -ra words; do
        RLOCK_URL='' run --separate-stderr rlock "${words[@]}"
        assert_status "$([[ " ${words[*]} " == *' list '* ]] && echo 0 || echo 75)" # held
        assert_match "$output" "$KEY" "${words[*]}"
        assert_eq "$stderr" "" "${words[*]}"
    done <<END
-u $RLOCK_URL status -k $KEY
-u$RLOCK_URL status -k$KEY
--url=$RLOCK_URL status --key $KEY
--url $RLOCK_URL -qv status -k $KEY
-u $RLOCK_URL --json status -k $KEY
-u $RLOCK_URL list
--json -u $RLOCK_URL list
-qu $RLOCK_URL --connect-timeout 3 list $KEY
END
    refused 64 'usage: unknown option of list: -t; see rlock help list$' -t 3 list
    refused 64 'usage: unknown option of list: --ttl; ' --ttl=3 -q list
    let_go job
}

# ---- mistakes with the key ----

@test "status, release, renew, acquire and break take the key as a word, too" {
    local token
    run -0 --separate-stderr rlock acquire "$KEY" -t 9
    token=$output
    assert_match "$(value "$KEY")" "^$token "
    run -75 --separate-stderr rlock status "$KEY"
    assert_match "$output" "$KEY"
    run -75 --separate-stderr rlock --json status "$KEY" --connect-timeout 3
    assert_match "$output" '"key":"'
    RLOCK_TOKEN=$token run -0 --separate-stderr rlock renew -t 40 "$KEY"
    assert_between "$(ttl_ms "$KEY")" 10000 40000
    RLOCK_TOKEN=$token run -0 --separate-stderr rlock release "$KEY"
    gone "$KEY"
    rlock acquire -t 20 -- "$KEY"
    run -0 --separate-stderr rlock break --yes "$KEY"
    gone "$KEY"
}

# ---- mistakes with options ----

@test "-e, --nb, --nonblocking and --timeout have the same meaning as in flock" {
    local option
    redis_cli set "$KEY" other PX 60000
    for option in -n --nb --nonblocking --nonblock '-w 0' '--timeout 0' --timeout=0; do
        # shellcheck disable=SC2086 # several words
        run -75 --separate-stderr rlock -k "$KEY" $option -- true
        assert_line ': busy: '
    done
    for option in '-w 0.5' --wait=0.5 '--timeout 0.5' --timeout=0.5s; do
        # shellcheck disable=SC2086
        run -9 --separate-stderr rlock -k "$KEY" $option --conflict-exit-code 9 -- true
        assert_line ': timeout: '
    done
    for option in -e -x --exclusive; do
        run -0 --separate-stderr rlock -k "$KEY:2" -s "$option" -c "$(asking) get '$KEY:2'"
        refute_match "$output" 'mode=shared'
    done
    run -0 --separate-stderr rlock -k "$KEY:2" --shared --verbose --command \
        "$(asking) get '$KEY:2'"
    assert_match "$output" 'mode=shared'
}

@test "flock's --close, --no-fork and --unlock are refused, and the message says why" {
    local option
    for option in -o --close -F --no-fork; do
        refused 64 "usage: unknown option: $option; leave it out: " -k "$KEY" "$option" true
    done
    refused 64 'usage: unknown option: --unlock; .* is released by rlock release$' \
        -k "$KEY" --unlock
}

# ---- mistakes in the environment ----

@test "an rlock inside another doesn't warn of the variables that rlock sets for its command" {
    run -0 --separate-stderr rlock -k "$KEY" --slots 2 -- \
        "$RLOCK" -k "$KEY:2" -- "$RLOCK" -k "$KEY:3" -- env
    assert_match "$output" 'RLOCK_PARENT_TOKENS='
    assert_eq "$stderr" ""
    REDIS_URL=redis://:pw@h run -0 --separate-stderr rlock -k "$KEY" -- \
        "$RLOCK" -k "$KEY:2" -- printenv RLOCK_STRIPPED
    assert_eq "$output|$stderr" 'REDIS_URL|'
}
