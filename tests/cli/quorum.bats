#!/usr/bin/env bats
# quorum: several independent servers, of which a majority decides.

load ../helpers/common
load ../helpers/quorum

setup_file() {
    DIR=$BATS_FILE_TMPDIR
    quorum_start 5
    echo "$RLOCK_URL" >"$BATS_FILE_TMPDIR/urls"
    quorum_is_old 7
}
setup() {
    common_setup
    export RLOCK_URL QUORUM=5 RLOCK_TTL=5s
    RLOCK_URL=$(<"$BATS_FILE_TMPDIR/urls")
    quorum_flush
}

fences() { each_of '1 2 3 4 5' redis_cli get "{${1:-$KEY}}:rlock:fence"; }

# ---- the list of members ----

@test "several servers are named by repeated -u, in RLOCK_URL, or in a file" {
    local urls=$RLOCK_URL words
    read -ra words <<<"${urls//redis:/-u redis:}"
    echo "url = $urls" >"$DIR/line"
    tr ' ' '\n' <<<"$urls" | sed 's/^/url = /' >"$DIR/lines"
    unset RLOCK_URL
    run -0 rlock "${words[@]}" -k "$KEY:1" -- true
    RLOCK_URL="  ${urls// /   } " run -0 rlock -k "$KEY:2" -- true
    RLOCK_CONFIG=$DIR/line run -0 rlock -k "$KEY:3" -- true
    RLOCK_CONFIG=$DIR/lines run -0 rlock -k "$KEY:4" -- true
    # -u replaces the file's servers, and doesn't add to them.
    RLOCK_CONFIG=$DIR/lines run -0 rlock -u "${words[1]}" -k "$KEY:5" -- true
    assert_eq "$(for n in 1 2 3 4 5; do fences "$KEY:$n" | wc -w; done | xargs)" '5 5 5 5 1'
}

# ---- grants by a majority ----

@test "all members of a quorum have the lock under one token, and after the run none has it" {
    hold a -k "$KEY"
    assert_eq "$(holders "$KEY")" 5 'members that have the lock'
    assert_eq "$(each_of '1 2 3 4 5' redis_cli get "$KEY" | cut -c1-32 | sort -u)" \
        "$(env_of a RLOCK_TOKEN)" token
    assert_eq "$(fences | sort -u)" "$(env_of a RLOCK_FENCE)" 'last fence of each'
    assert_match "$(on 3 redis_cli get "$KEY")" ' members=[0-9a-f]{8} since='
    never 2 file_has "$DIR/a.err" . # a renewal in these 2 s succeeds without a message
    let_pass a 7
    assert_no_locks
}

# hold_waiter NAME OPTION...: starts an rlock, whose command will write the time to $DIR/NAME.at,
# and returns when it waits in the queue.
hold_waiter() {
    local name=$1
    shift
    start "$name" "$RLOCK" -k "$KEY" "$@" -- sh -c '"$TOOLS/hold_clock" >"$0"' "$DIR/$name.at"
    eventually 5 in_lines 1
}
in_lines() { [[ $(on 1 redis_cli zcard "{$KEY}:rlock:queue") == "$1" ]]; }

@test "quorum: -s, two keys, --once, --min-hold, --queue newest, nesting work as with one server" {
    hold a -k "$KEY" -s
    run -0 rlock -k "$KEY" -s -n -- true
    run -75 rlock -k "$KEY" -n -- true
    let_go a
    hold a -k "$KEY" -k "$KEY:2"
    run -75 rlock -k "$KEY:2" -n -- true
    run -75 rlock -k "$KEY:3" -k "$KEY" -n -- true
    assert_eq "$(holders "$KEY:3")" 0 'members that have the free key alone'
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
    ended 75 old
    let_go a
    ended 0 new
}

# ---- status, list, break and doctor ----

three_agree() {
    run -0 rlock status -k "$KEY:some"
    [[ $output =~ free.*'servers '+'3 of 5 agree' ]]
}
all_agree() {
    run -75 rlock status -k "$KEY" --json
    [[ $output =~ '"mode":"exclusive",'.*'"members":5,"alike":5,' ]]
}
@test "status and list show what the majority has, and break takes the lock on all members" {
    hold a -k "$KEY" --on-lost ignore
    eventually 20 all_agree # a busy machine may leave a member's answer out
    run -75 rlock status -k "$KEY"
    assert_match "$output" 'held.*holder +sh of .*servers +[345] of 5 agree'
    # Members 2 and 4 still have a lock that the other three members don't have.
    each_of '2 4' redis_cli set "$KEY:some" "$(printf '%032d' 7) v1 try=1 ttl=9 host=x since=1" \
        PX 60000 >/dev/null
    run -0 rlock list --json
    assert_eq "$(grep -c . <<<"$output")" 1 'locks that a majority has'
    assert_match "$output" "\"key\":\"$KEY\","
    eventually 20 three_agree
    # One member has another holder by now.
    on 5 redis_cli set "$KEY" foreign PX 60000 >/dev/null
    run -0 --separate-stderr rlock break -k "$KEY" --yes
    assert_match "$stderr" 'broken: it was held for [0-9]+s by sh of '
    assert_eq "$(holders "$KEY")" 1 'members that still have the lock'
    on 5 redis_cli del "$KEY" >/dev/null
    each_of '2 4' redis_cli del "$KEY:some" >/dev/null
    let_go a 7
    assert_no_locks
}

@test "doctor examines each member, then the quorum as a whole, and reports a missing member" {
    local urls
    read -ra urls <<<"$RLOCK_URL"
    run -0 rlock doctor -k "$KEY" --json
    assert_eq "$(grep -c '"check":"rights"' <<<"$output")" 5 'members examined'
    assert_match "$output" '"check":"quorum","grade":"good","found":"5 of 5 members answer'
    run -0 rlock doctor
    assert_match "$output" $'\ntogether:\ngood    quorum: '
    export RLOCK_URL="${urls[*]:0:4} redis://127.0.0.1:1"
    run -0 rlock doctor
    assert_match "$output" "weak    member: this server can't be examined: 127.0.0.1:1: connect"
    assert_match "$output" 'weak    quorum: 4 of 5 members answer'
    export RLOCK_URL="${urls[*]:0:1} redis://127.0.0.1:1 redis://127.0.0.1:2"
    run -69 rlock doctor
}
