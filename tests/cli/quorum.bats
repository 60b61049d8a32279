#!/usr/bin/env bats
# quorum: several independent servers, of which a majority decides.

load ../helpers/common
load ../helpers/redis
load ../helpers/hold
load ../helpers/quorum

setup_file() {
    DIR=$BATS_FILE_TMPDIR
    quorum_start 5
    echo "$RLOCK_URL" >"$BATS_FILE_TMPDIR/urls"
    quorum_is_old 3
}
teardown_file() {
    QUORUM=5
    each_of '1 2 3 4 5' redis_stop
}
setup() {
    common_setup
    export RLOCK_URL QUORUM=5 RLOCK_TTL=1s KEY RLOCK TOOLS DIR
    RLOCK_URL=$(<"$BATS_FILE_TMPDIR/urls")
    quorum_flush
}
teardown() { common_teardown; }

fences() { each_of '1 2 3 4 5' redis_cli get "rlock:fence:{${1:-$KEY}}:${1:-$KEY}"; }

# ---- which servers ----

@test "each way to name several servers: again, in the environment, in a file" {
    local urls=$RLOCK_URL url words=()
    for url in $urls; do
        words+=(-u "$url")
    done
    unset RLOCK_URL
    run -0 rlock "${words[@]}" -k "$KEY" -- true
    assert_eq "$(fences | wc -w)" 5 'members by -u'
    quorum_flush
    RLOCK_URL="  ${urls// /   } " run -0 rlock -k "$KEY" -- true
    assert_eq "$(fences | wc -w)" 5 'members by RLOCK_URL'
    quorum_flush
    echo "url = $urls" >"$DIR/config"
    RLOCK_CONFIG=$DIR/config run -0 rlock -k "$KEY" -- true
    assert_eq "$(fences | wc -w)" 5 'members by a line of a file'
    quorum_flush
    tr ' ' '\n' <<<"$urls" | sed 's/^/url = /' >"$DIR/config"
    RLOCK_CONFIG=$DIR/config run -0 rlock -k "$KEY" -- true
    assert_eq "$(fences | wc -w)" 5 'members by a line for each'
    # the nearest source counts alone
    RLOCK_CONFIG=$DIR/config run -0 rlock -u "${words[1]}" -k "$KEY:one" -- true
    assert_eq "$(fences "$KEY:one" | wc -w)" 1 'members of one'
}

@test "a number that is even or too great, or a server that is named twice, is 78" {
    local urls many
    read -ra urls <<<"$RLOCK_URL"
    RLOCK_URL="${urls[*]:0:2}" run -78 --separate-stderr rlock -k "$KEY" -- touch "$DIR/ran"
    assert_match "$stderr" 'misconfigured: 2 servers: a quorum has an odd number of members'
    many=$(printf 'redis://127.0.0.1:%d ' {1..11})
    RLOCK_URL=$many run -78 --separate-stderr rlock -k "$KEY" -- touch "$DIR/ran"
    assert_match "$stderr" 'misconfigured: 11 servers: a quorum has at most 9 members'
    redis_use q1
    RLOCK_URL="${urls[*]:0:2} unix://$REDIS_SOCKET" \
        run -78 --separate-stderr rlock -k "$KEY" -- touch "$DIR/ran"
    assert_match "$stderr" \
        "misconfigured: 127.0.0.1:$REDIS_PORT and $REDIS_SOCKET are the same server"
    [[ ! -e $DIR/ran ]]
    assert_no_locks
    run -78 --separate-stderr rlock -u "${urls[0]}" -u local: -u "${urls[1]}" -k "$KEY" -- true
}

@test "what several servers can't do is refused in words" {
    run -64 --separate-stderr rlock -k "$KEY" --slots 2 -- true
    assert_match "$stderr" "slots: several servers can't count them"
    run -64 --separate-stderr rlock -k "$KEY" --protocol timestamp -- true
    assert_match "$stderr" 'a lock that is a timestamp is on one server'
}

@test "one server is asked no more than before: two requests, and nothing about itself" {
    redis_use q1
    redis_cli config resetstat >/dev/null
    run -0 rlock -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" -- true
    assert_eq "$(redis_cli info commandstats | sed -n 's/^cmdstat_eval:calls=\([0-9]*\),.*/\1/p')" 2
    refute_match "$(redis_cli info commandstats)" 'cmdstat_(cluster|role)'
    run -0 redis_cli info commandstats
    assert_match "$output" 'cmdstat_info:calls=2,' # those above
}

@test "a member that doesn't tell who it is doesn't count" {
    each_of '1 2 3' redis_cli acl setuser shy on '>pw' '~*' '+@all' -info >/dev/null
    RLOCK_URL=${RLOCK_URL//redis:\/\//redis://shy:pw@} \
        run --separate-stderr rlock -k "$KEY" -n -- touch "$DIR/ran"
    each_of '1 2 3' redis_cli acl deluser shy >/dev/null
    assert_status 77
    assert_match "$stderr" '0 of 5 members answered, 3 are needed; .*INFO'
    [[ ! -e $DIR/ran ]]
    assert_no_locks
}

# ---- a grant ----

@test "the lock is on all of them, with one token, and free on all of them after it" {
    hold a -k "$KEY"
    assert_eq "$(holders "$KEY")" 5 'members that have it'
    assert_eq "$(each_of '1 2 3 4 5' redis_cli get "$KEY" | cut -c1-32 | sort -u)" \
        "$(env_of a RLOCK_TOKEN)" token
    assert_eq "$(fences | sort -u)" "$(env_of a RLOCK_FENCE)" 'last fence of each'
    assert_match "$(on 3 redis_cli get "$KEY")" ' members=[0-9a-f]{8} since='
    never 2 file_has "$DIR/a.err" . # it is renewed in between
    let_go a 7
    assert_status 7
    assert_no_locks
}

@test "the fence is the greatest of all, and noted with all, whatever they had" {
    on 2 redis_cli set "rlock:fence:{$KEY}:$KEY" 8000000000000000 >/dev/null
    run -0 rlock -k "$KEY" -- sh -c 'echo $RLOCK_FENCE'
    assert_eq "$output" 8000000000000001 fence
    fences >"$DIR/fences"
    # a release raises what it has noted
    assert_eq "$(sort -u "$DIR/fences")" 8000000000000002 'the last fence of each'
    on 2 redis_cli del "rlock:fence:{$KEY}:$KEY" >/dev/null
    run -0 rlock -k "$KEY" -- sh -c 'echo $RLOCK_FENCE'
    (($output > 8000000000000001)) || fail "fence $output"
}

@test "busy: told by whom, and had as soon as it is given back" {
    local before
    hold a -k "$KEY" --label first
    run -75 --separate-stderr rlock -k "$KEY" -n -- true
    assert_match "$stderr" 'busy: held by sh of .* \(first\), for up to [01]\.[0-9] s more'
    run -75 --separate-stderr rlock -k "$KEY" -w 0.3 -- true
    hold_waiter b
    before=$(now_ms)
    let_go a
    finish b
    assert_status 0
    is_sanitized || assert_between $(($(cat "$DIR/b.at") - before)) 0 500 'ms until it had it'
    assert_no_locks
}

hold_waiter() { # NAME OPTION...
    local name=$1
    shift
    start "$name" "$RLOCK" -k "$KEY" "$@" -- sh -c '"$TOOLS/hold_clock" >"$0"' "$DIR/$name.at"
    eventually 5 in_lines 1
}
in_lines() { [[ $(on 1 redis_cli zcard "rlock:line:{$KEY}:$KEY") == "$1" ]]; }

@test "shared, several keys, once, min-hold, newest and nested runs, as with one server" {
    hold a -k "$KEY" -s
    run -0 rlock -k "$KEY" -s -n -- true
    run -75 rlock -k "$KEY" -n -- true
    let_go a
    hold a -k "$KEY" -k "$KEY:2"
    run -75 rlock -k "$KEY:2" -n -- true
    run -75 rlock -k "$KEY:3" -k "$KEY" -n -- true
    assert_eq "$(holders "$KEY:3")" 0 'members with a key of which the other was not had'
    let_go a
    run -0 rlock -k "$KEY:once" --once 2s -- touch "$DIR/once"
    run -0 --separate-stderr rlock -k "$KEY:once" --once 2s -- touch "$DIR/twice"
    assert_match "$stderr" 'done: by touch'
    [[ -e $DIR/once && ! -e $DIR/twice ]]
    run -0 rlock -k "$KEY:min" --min-hold 1500ms -- true
    run -75 rlock -k "$KEY:min" -n -- true
    run -7 rlock -k "$KEY" -- "$RLOCK" -k "$KEY" -n -- sh -c 'exit 7'
    hold a -k "$KEY"
    hold_waiter old --queue newest
    hold_waiter new --queue newest
    finish old
    assert_status 75
    let_go a
    finish new
    assert_status 0
}

@test "by token: acquire, renew, release; what isn't ours is 76" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY" -t 2)
    export RLOCK_TOKEN
    run -0 rlock renew -k "$KEY" -t 3
    (($(on 4 redis_cli pttl "$KEY") > 2000)) || fail "not renewed"
    run -0 rlock release -k "$KEY"
    run -76 rlock release -k "$KEY"
    run -76 rlock renew -k "$KEY"
    assert_no_locks
}

@test "16 waiters: each is served, one at a time, and nobody waits for long" {
    local each
    hold a -k "$KEY"
    for each in {1..16}; do
        start "w$each" "$RLOCK" -k "$KEY" -- sh -c 'mkdir "$DIR/alone" || echo >>"$DIR/overlaps"
            sleep 0.01; rmdir "$DIR/alone"; echo "$RLOCK_FENCE" >>"$DIR/fences"'
    done
    eventually 10 in_lines 16
    let_go a
    for each in {1..16}; do
        finish "w$each" 20
        assert_status 0
    done
    [[ ! -e $DIR/overlaps ]] || fail 'not alone'
    sort -nuc "$DIR/fences"
    assert_eq "$(wc -l <"$DIR/fences")" 16 turns
    assert_no_locks
}
