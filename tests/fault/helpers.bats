#!/usr/bin/env bats
# helpers: another program has written keys with the names of rlock's helper keys (last fence,
# queue, waiters, holders, holder-info).
#
# run: about 60 s

load ../helpers/common
load ../helpers/lua

setup_file() { redis_start; }
teardown_file() { redis_stop; }

setup() {
    common_setup
    redis_cli flushall >/dev/null
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
}

# put KIND TYPE: writes a value of the Redis type TYPE, with a TTL of 60 s, into the helper key
# KIND.
put() {
    local key
    key=$(key_of "$1")
    case $2 in
    string) redis_cli set "$key" "$third v1 try=1 ttl=30000 host=h since=1" px 60000 ;;
    list) redis_cli rpush "$key" a b ;;
    hash) redis_cli hset "$key" f v ;;
    zset) redis_cli zadd "$key" 5 m ;;
    set) redis_cli sadd "$key" m ;;
    stream) redis_cli xadd "$key" 1-1 f v ;;
    esac >/dev/null
    redis_cli pexpire "$key" 60000 >/dev/null
}

# each_wrong: prints a line KIND TYPE for each kind of helper key and each Redis type that rlock
# doesn't use for it.
each_wrong() {
    local kind type
    for kind in fence queue waiters holders holder-info; do
        for type in string list hash zset set stream; do
            case $kind:$type in
            queue:zset | holders:zset | waiters:hash | holder-info:hash) ;;
            *) echo "$kind $type" ;;
            esac
        done
    done
}

named() { echo "[{]${KEY}[}]:rlock:$1"; } # a regular expression for the name of a helper key

# dump_keys: prints each key with a hash of its value. dump_keys adds `anew` to a key with a TTL
# above 60 s: the tests set no such TTL, so rlock has set it.
dump_keys() {
    redis_cli eval 'local all = {}
        for _, key in ipairs(redis.call("KEYS", "*")) do
            table.insert(all, key .. " " .. redis.sha1hex(redis.call("DUMP", key)) ..
                (redis.call("PTTL", key) > 60000 and " anew" or ""))
        end
        table.sort(all)
        return all' 0
}

@test "a helper key of another type: rlock changes no key, and names that key, status 77" {
    local kind type before options
    while read -r kind type; do
        redis_cli flushall >/dev/null
        put "$kind" "$type"
        before=$(dump_keys)
        for options in -n '-n -s' '-n --slots 2' '-w 2' '-n --queue none' '-n --once 60'; do
            # an exclusive lock without waiters needs neither the waiters' nor the holders' keys
            [[ $options:$kind != @(-n|-w*|*none|*once*):@(waiters|holder*) ]] || continue
            # shellcheck disable=SC2086
            run -77 --separate-stderr rlock $options -k "$KEY" -- touch "$DIR/ran"
            assert_line "^rlock: $KEY: refused: .*$(named "$kind") is no .*look at the key, and DEL"
            assert_eq "$(dump_keys)" "$before" "with $kind a $type and $options"
        done
        run -0 --separate-stderr rlock status -k "$KEY"
    done < <(each_wrong)
    [[ ! -e $DIR/ran ]]
}

@test "a helper key of another type beside a held lock: all verbs name it, the holder can release" {
    local kind type before options
    while read -r kind type; do
        redis_cli flushall >/dev/null
        RLOCK_TOKEN='' run -0 --separate-stderr rlock acquire -t 60 -k "$KEY"
        token=$output
        redis_cli del "$(key_of "$kind")" >/dev/null
        put "$kind" "$type"
        redis_cli pexpire "$KEY" 50000 >/dev/null
        redis_cli pexpire "$(key_of fence)" 50000 >/dev/null
        before=$(dump_keys)
        for options in -n -w1 -s '--slots 2' '-w 2 --queue newest'; do
            # shellcheck disable=SC2086
            run -77 --separate-stderr rlock $options -k "$KEY" -- touch "$DIR/ran"
            assert_line "$(named "$kind") is no "
        done
        run -77 --separate-stderr rlock break --yes -k "$KEY"
        assert_line "$(named "$kind") is no "
        assert_eq "$(dump_keys)" "$before" "with $kind a $type"
        run -75 rlock status -k "$KEY"
        if [[ $kind != holder* ]]; then
            assert_match "$output" "wrong +$(named "$kind") is no "
            run -0 rlock list
            assert_match "$output" "$KEY +exclusive .*; wrong: $(named "$kind") is no "
            run -78 rlock doctor
            assert_match "$output" "locks: 1 of 1 locks can't be granted, .*$(named "$kind") is no "
        fi
        before=$(redis_cli dump "$(key_of "$kind")" | sha1sum)
        RLOCK_TOKEN=$token run -0 --separate-stderr rlock renew -k "$KEY"
        RLOCK_TOKEN=$token run -0 --separate-stderr rlock release -k "$KEY"
        assert_eq "$(redis_cli exists "$KEY")" 0 'the lock'
        assert_eq "$(redis_cli dump "$(key_of "$kind")" | sha1sum)" "$before" "$kind as a $type"
    done < <(each_wrong)
    [[ ! -e $DIR/ran ]]
}

@test "a holders' key of another type: no script grants or renews the lock, or changes that key" {
    local kind before
    for kind in holders holder-info; do
        redis_cli flushall >/dev/null
        MODE=s acquire $mine 1 >/dev/null
        redis_cli del "$(key_of $kind)" >/dev/null
        put $kind string
        redis_cli pexpire "$KEY" 20000 >/dev/null
        before=$(dump_keys)
        assert_match "$(MODE=s renew $mine "$(fence)")" "^FOREIGN .*$kind is no "
        assert_match "$(MODE=s acquire $yours 1)" "^FOREIGN .*$kind is no "
        assert_match "$(confirm $mine "$(fence)")" "^FOREIGN .*$kind is no "
        release $mine "$(fence)" >/dev/null
        undo $mine 1 >/dev/null
        leave $mine >/dev/null
        assert_eq "$(redis_cli get "$(key_of $kind)" | cut -c 1-32)" $third
        run -75 rlock status -k "$KEY"
        assert_match "$output" "wrong +$(named $kind) is no "
    done
}

# ---- the last fence ----

POISON=(inf -inf nan 1e300 1e5 18446744073709551615 9223372036854775807 9007199254740993
    9007199254740992 9007194959773697 '' abc -5 0 007 1.5 ' 7' '7 ' 0x10 '7
8')

@test "a last fence that is no number in range: rlock names it, doesn't prolong it, status 77" {
    local poison options
    for poison in "${POISON[@]}"; do
        redis_cli flushall >/dev/null
        redis_cli set "$(key_of fence)" "$poison" px 60000 >/dev/null
        before=$(dump_keys)
        for options in -n -s '--slots 2' '-w 3' '--protocol timestamp --timestamp-unit ms' \
            "-k $KEY:other"; do
            # shellcheck disable=SC2086
            run -77 --separate-stderr rlock $options -k "$KEY" -- touch "$DIR/ran"
            assert_line "^rlock: ($KEY:other )?$KEY: refused: .*$(named fence) is no fence .*DEL it"
            assert_eq "$(dump_keys)" "$before" "after $options with '$poison'"
        done
        run -0 rlock status -k "$KEY"
        assert_match "$output" "wrong +$(named fence) is no fence from 1 to "
        run -0 rlock list
        assert_match "$output" "$KEY +free .* wrong: $(named fence) is no fence from 1 to "
        run -0 rlock list --json
        assert_match "$output" "\"wrong\":\"$(named fence) is no fence from 1 to "
        run -78 rlock doctor
        assert_match "$output" "locks: 1 of 1 locks can't be granted, .*$(named fence) is no fence "
    done
    [[ ! -e $DIR/ran ]]
    redis_cli del "$(key_of fence)" >/dev/null
    run -0 rlock -k "$KEY" -- true
}

@test "the greatest fence: rlock grants a lock with it, and after that no lock" {
    local fences=() last each
    for last in 9007194959773694 5; do
        redis_cli set "$(key_of fence)" "$last" >/dev/null
        for each in 1 2 3; do
            run --separate-stderr rlock -n -k "$KEY" -- sh -c 'echo $RLOCK_FENCE'
            fences+=("$output")
        done
    done
    # The release of the first run also adds 1 to the last fence. The third run gets no lock.
    assert_eq "${fences[*]:0:3}" '9007194959773695 9007194959773697 ' 'fences'
    assert_eq "$status" 0
    ((fences[3] > 1700000000000000 && fences[4] > fences[3] && fences[5] > fences[4]))
}

@test "lua: a last fence out of range: acquire and confirm reply FOREIGN, and no key changes" {
    local before
    redis_cli set "$(key_of fence)" 1e300 px 60000 >/dev/null
    assert_match "$(acquire $mine 1)" '^FOREIGN '
    redis_cli set "$KEY" "$mine v1 try=1 ttl=30000 pid=1 since=1" px 60000 >/dev/null
    before=$(dump_keys)
    assert_match "$(confirm $mine 1800000000000000)" '^FOREIGN '
    assert_eq "$(dump_keys)" "$before"
    release $mine 1800000000000000 >/dev/null
    assert_eq "$(redis_cli get "$(key_of fence)")" 1e300
}
