#!/usr/bin/env bats
# rights: two applications, `job` and `web`, use one server, each with the manual's ACL rule for its
# own prefix of keys.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    redis_user job
    redis_allow_inspection job
    # redis_user adds the key patterns of `job`; the next command removes these.
    redis_user web '~web:*' '~{web:*'
    redis_cli acl setuser web resetkeys '~web:*' '~{web:*' >/dev/null
    redis_allow_inspection web
}

teardown() {
    redis_cli acl deluser job web first >/dev/null
    common_teardown
}

url_of() { echo "redis://$1:SECRET@127.0.0.1:$REDIS_PORT"; }
as() { redis_cli --no-auth-warning --user "$1" --pass SECRET "${@:2}"; }

# FORMS: names of locks behind a prefix, with braces and rlock's own separators in all places.
FORMS=('a' '{t}a' 'a{b' 'a{b}:job:b')

renewed() { [[ $(redis_cli info commandstats) =~ cmdstat_pexpire:calls=[0-9]+ ]]; }

# use_all PREFIX: uses a lock in every way, each time with a name of another form.
use_all() {
    local form token
    for form in "${FORMS[@]}"; do
        run -0 rlock -k "$1$form" -- true
        run -0 rlock -s -k "$1$form" -- true
        run -0 rlock --slots 2 -k "$1$form" -- true
    done
    run -0 rlock -k "$1{t}a" -k "$1{t}b" -- true
    run -0 rlock --once 1m -k "$1once" -- true
    run -0 rlock --min-hold 1m -k "$1rest" -- true
    run -0 rlock --protocol timestamp --timestamp-unit ms -k "$1time" -- true
    run -0 rlock --pass-credentials -k "$1a" -- "$RLOCK" -k "$1a" -- true
    token=$(rlock acquire -k "$1verb")
    RLOCK_TOKEN=$token run -0 rlock renew -k "$1verb"
    RLOCK_TOKEN=$token run -0 rlock release -k "$1verb"
    hold "${1%:}-held" -t 3 -k "$1held" # so short that it is renewed during this function
    start "${1%:}-waits" "$RLOCK" -s -k "$1held" -- true
    start "${1%:}-newest" "$RLOCK" --queue newest -k "$1held" -- true
    eventually 10 in_line 2 "$1held"
    run -75 rlock status -k "$1held"
    assert_match "$output" 'waiting +2'
    run -0 rlock list "$1*"
    assert_match "$output" "$1held"
    rlock doctor -k "$1held" >"$DIR/doctor" || :
    assert_match "$(<"$DIR/doctor")" "good +rights: +all that rlock needs for $1held"
    eventually 10 renewed "$1held"
    let_pass "${1%:}-held"
    for form in waits newest; do
        ended 0 "${1%:}-$form"
    done
    RLOCK_TOKEN='' run -0 rlock acquire -k "$1broken"
    run -0 rlock break -k "$1broken" --yes
}

@test "rights: with the rule for its prefix each application can use all kinds of locks and verbs" {
    RLOCK_URL=$(url_of job) use_all job:
    RLOCK_URL=$(url_of web) use_all web:
}

# arguments_of VERB: prints the arguments with which the next test runs a verb.
arguments_of() {
    if [[ $1 == break ]]; then
        echo "-k $KEY:break --yes"
    elif [[ $1 == hold ]]; then
        echo "-k $KEY:hold --for 1m"
    elif rlock --dump=verbs | grep -q "^$1\b.*[[:space:]]key,"; then
        echo "-k $KEY"
    fi
}

@test "rights: the manual names each verb that needs more than its first ACL rule, and no other" {
    local verb others named refused=()
    redis_user first '~*'
    RLOCK_URL=$(url_of first)
    export RLOCK_URL
    run -0 rlock -k "$KEY" -- true
    named=$(grep -B 8 '^ACL SETUSER rlock$' "$ROOT/man/rlock-locks.7" | sed -n '/^The verbs/,$p' |
        sed -n 's/^\.Cm //p' | tr -d ',' | xargs)
    others=$(rlock --dump=verbs | cut -f 1 | grep -vE '^(-|acquire|release)$')
    for verb in acquire $others release; do
        # shellcheck disable=SC2046
        run rlock "$verb" $(arguments_of "$verb")
        [[ $verb != acquire ]] || export RLOCK_TOKEN=$output
        case $status in
            77) refused+=("$verb") ;;
            0) ;;
            *) fail "$verb: status $status; arguments_of has to know how to call it: $output" ;;
        esac
    done
    assert_eq "${refused[*]}" "$named" 'verbs for which the first rule is not enough'
}

@test "rights: --protocol timestamp needs no rights for a queue" {
    local each
    redis_cli info server | grep -qE 'redis_version:([7-9]|[1-9][0-9])' || skip 'only Redis 7'
    redis_cli acl setuser timely reset on '>SECRET' +time +get +set +del +incr +pexpire +hget \
        +hset +hdel +hvals +eval +evalsha '~job:time' '~{job:time}:rlock:*' >/dev/null
    for each in s ms; do
        run -7 --separate-stderr rlock -u "$(url_of timely)" -t 1 -k job:time --protocol timestamp \
            --timestamp-unit "$each" -- sh -c 'sleep 0.7; exit 7'
        assert_eq "$stderr" '' "unit $each"
        assert_eq "$(redis_cli exists job:time)" 0 'keys left'
    done
    redis_cli acl deluser timely >/dev/null
}

# ---- what one application can do to the locks of the other ----

# make_victims: makes a lock of `web` with every helper key; sets victims to the keys.
make_victims() {
    local queue
    RLOCK_URL=$(url_of web) hold holder -s -t 10m -k 'web:a{b}:job:b'
    RLOCK_URL=$(url_of web) start waiter "$RLOCK" -t 10m -k 'web:a{b}:job:b' -- true
    eventually 10 eval "[[ -n \$(redis_cli --scan --pattern '*:queue') ]]"
    queue=$(redis_cli --scan --pattern '*:queue')
    redis_cli rpush "${queue%queue}wake:0123456789abcdef0123456789abcdef" turn >/dev/null
    redis_cli set web:plain x >/dev/null
    mapfile -t victims < <(redis_cli --scan)
    assert_eq "${#victims[@]}" 8 'keys of the other application'
}

# dump_all: prints all keys and values, except the heartbeat of the first waiter, which changes each
# 300 ms.
dump_all() {
    local each
    for each in "${victims[@]}"; do
        [[ $each == *:waiters ]] || echo "$each $(redis_cli dump "$each" | sha1sum)"
        [[ $(redis_cli pttl "$each") -gt 1000 || $each == web:plain ]] || echo "$each ends"
    done
}

# attacks KEY...: prints each command of the server with each KEY, in all places where a command may
# have a key; without the commands for the connection itself, which no ACL rule forbids.
attacks() {
    local command key
    redis_cli command list | tr -d '\r' |
        grep -viE '^(quit|reset|multi|exec|hello|auth|monitor|psync|sync|shutdown|.*subscribe)$' |
        while read -r command; do
            for key; do
                echo "$command $key"
                echo "$command $key $key"
                echo "$command $key $key $key"
                echo "$command $key $key $key $key"
                echo "$command $key $key $key $key $key"
                echo "$command $key 1 $key"
                echo "$command 1 $key"
                echo "$command 1 $key left count 1"
                echo "$command none 1 $key weights 1"
                echo "$command none $key 1 1"
            done
        done
}

@test "rights: locks are granted on a server whose command ACL has another name" {
    local each
    redis_start no-acl --rename-command ACL acl-of-ours
    for each in -x -s --slots=2; do
        run -7 --separate-stderr rlock -u "unix://$REDIS_SOCKET" -k "$KEY" $each -- sh -c 'exit 7'
        assert_eq "$stderr" ''
    done
}

# bats test_tags=long
@test "the manual's ACL rule: no command of one application reaches a key of another one's locks" {
    local victims before told
    redis_cli command list | grep -qx set || skip 'only Redis 7 or later lists its commands'
    make_victims
    before=$(dump_all)
    attacks "${victims[@]}" >"$DIR/attacks"
    assert_between "$(wc -l <"$DIR/attacks")" 15000 500000 'requests'

    # With the manual's ACL rule the server refuses each attack.
    as job <"$DIR/attacks" >"$DIR/told"
    told=$(grep -vE '^((ERR|NOPERM|NOSCRIPT|WRONGTYPE|MOVED|LOADING) |$)' "$DIR/told" | head -n 5)
    assert_eq "$told" '' 'replies that are no refusal'
    assert_eq "$(dump_all)" "$before" 'the keys'

    # The same attacks, each sent in a script, because the manual's ACL rule allows EVAL.
    awk '{ printf "eval \"return redis.call(unpack(ARGV))\" 0 %s\n", $0 }' "$DIR/attacks" |
        grep -vE ' 0 (time|asking)( |$)' | as job >"$DIR/told"
    told=$(grep -vE '^((ERR|NOPERM|NOSCRIPT|WRONGTYPE|MOVED|LOADING) |$)' "$DIR/told" | head -n 5)
    assert_eq "$told" '' 'replies that are no refusal'
    assert_eq "$(dump_all)" "$before" 'the keys, after scripts'
}
