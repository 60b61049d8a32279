#!/usr/bin/env bats
# quorum: members that die, hang, lose their data or answer late: a majority goes on, and less than
# one doesn't.

load ../helpers/common
load ../helpers/fake
load ../helpers/quorum
load ../helpers/lua

setup() {
    common_setup
    export KEY RLOCK TOOLS DIR RLOCK_TTL=1s
}

# Two ways to go, and to be there again.
fail_by() { # kill|stop NUMBER...
    local how=$1
    shift
    case $how in
    kill) each_of "$*" redis_crash ;;
    stop) each_of "$*" redis_pause ;;
    esac
}
come_back() {
    local how=$1
    shift
    case $how in
    kill) each_of "$*" redis_restart ;;
    stop) each_of "$*" redis_continue ;;
    esac
}

@test "two of five killed or stopped, before, in the middle or at release: nothing is noticed" {
    local how healthy began
    quorum_start 5
    quorum_is_old 2
    run_ms rlock -k "$KEY" -- sh -c 'exit 7'
    healthy=$took
    for how in kill stop; do
        # in the middle: over more than one renewal
        hold middle -k "$KEY"
        fail_by "$how" 2 4
        never 2 file_has "$DIR/middle.err" 'lost'
        let_go middle 7
        assert_status 7
        # before
        run_ms rlock -k "$KEY" --connect-timeout 1s -- sh -c 'exit 7'
        assert_status 7
        assert_eq "$stderr" ''
        is_sanitized || assert_between "$took" 0 $((healthy * 3 / 2 + 1000)) "ms with two $how"
        run_ms rlock -k "$KEY" -n --connect-timeout 1s -- true
        assert_status 0
        come_back "$how" 2 4
        # at release
        hold last -k "$KEY"
        fail_by "$how" 1 5
        began=$(now_ms)
        let_go last 7
        took=$(($(now_ms) - began))
        assert_status 7
        is_sanitized || assert_between "$took" 0 1000 "ms to release with two $how"
        come_back "$how" 1 5
        assert_no_locks
        quorum_is_old 2
    done
}

@test "three of five killed or stopped: 69 at first, then 76, and no command beyond its lease" {
    local how began ended
    quorum_start 5
    quorum_is_old 2
    for how in stop kill; do
        rm -f "$DIR/beat"
        start holder "$RLOCK" -k "$KEY" -- sh -c 'trap "" TERM
            while "$TOOLS/hold_clock" >"$DIR/beat.new"; do mv "$DIR/beat.new" "$DIR/beat"; done'
        eventually 5 test -e "$DIR/beat"
        fail_by "$how" 1 3 5
        began=$(now_ms)
        finish holder
        ended=$(<"$DIR/beat")
        assert_status 76
        assert_match "$stderr" "lost: "
        # the last renewal was before they failed, and `began` is read after that
        assert_between $((ended - began)) -900 1000 'ms that the command went on'
        run_ms rlock -k "$KEY:2" -n --connect-timeout 500ms -- touch "$DIR/ran"
        assert_status 69
        assert_match "$stderr" '2 of 5 members answered, 3 are needed; 127.0.0.1:[0-9]+: '
        is_sanitized || assert_between "$took" 0 2500 'ms until that was said'
        [[ ! -e $DIR/ran ]]
        come_back "$how" 1 3 5
        quorum_is_old 2
        eventually 5 only_fences || fail "left: $(quorum_keys)"
    done
}

@test "too few members: who says how long to wait is served when they are back; -n fails at once" {
    quorum_start 3
    quorum_is_old 2
    each_of '1 2' redis_crash
    run_ms "$RLOCK" -k "$KEY" -n -t 1 --connect-timeout 2 -- true
    assert_status 69
    start waiter "$RLOCK" -k "$KEY" -t 1 -w 60 --connect-timeout 2 -- true
    never 4 dead "$pid"
    assert_match "$(<"$DIR/waiter.err")" 'no-quorum: since |server-unreachable: since '
    each_of '1 2' redis_restart
    finish waiter 30
    assert_status 0
    assert_match "$stderr" 'server-back: after '
}

@test "a member that was restarted counts only after the longest lease" {
    local restarted
    quorum_start 3
    quorum_is_old 2
    # two of three forget a lock that nobody renews any more
    hold a -k "$KEY" -t 5 --on-lost ignore
    each_of '1 2' redis_crash
    restarted=$(now_ms)
    each_of '1 2' redis_restart
    run --separate-stderr rlock -k "$KEY" -n -t 1 -- touch "$DIR/ran"
    assert_status 69
    assert_match "$stderr" '2 of 3 members were restarted, and may have forgotten who holds it'
    [[ ! -e $DIR/ran ]]
    kill -KILL "$(<"$DIR/pids/a")"
    # the third tells how long the lease is that they may have forgotten
    run -69 --separate-stderr rlock -k "$KEY" -t 1 -w 0.3 -- touch "$DIR/ran"
    assert_match "$stderr" 'were restarted, and may have forgotten who holds it'
    run -0 --separate-stderr rlock -k "$KEY" -t 1 -v -- sh -c "'$TOOLS/hold_clock' >'$DIR/at'"
    assert_match "$stderr" 'waiting: for 2 of 3 servers that were restarted, and may have forgotten'
    [[ ! -e $DIR/ran ]]
    assert_between $(($(<"$DIR/at") - restarted)) 5000 12000 'ms until they counted'
}

@test "what was lost by one member is put back while the majority has it" {
    quorum_start 5
    quorum_is_old 2
    hold a -k "$KEY"
    on 3 redis_crash
    on 3 redis_restart
    eventually 5 held_by "$KEY" 5
    on 4 redis_cli del "$KEY" >/dev/null
    eventually 5 held_by "$KEY" 5
    # so one after the other may be restarted
    on 1 redis_crash
    on 2 redis_crash
    never 2 file_has "$DIR/a.err" lost
    let_go a 7
    assert_status 7
    each_of '1 2' redis_restart
    assert_no_locks
}

@test "what a minority granted is taken back from all, also where no answer came" {
    local each
    quorum_start 5
    quorum_is_old 2
    # a foreign client has three of them
    each_of '1 2 3' redis_cli set "$KEY" foreign >/dev/null
    on 4 redis_pause
    run -75 --separate-stderr rlock -k "$KEY" -n -- true
    on 4 redis_continue
    eventually 3 gone_from 4 5
    each_of '1 2 3' redis_cli del "$KEY" >/dev/null
    assert_no_locks
}
gone_from() {
    local each
    for each; do
        on "$each" gone "$KEY" || return 1
    done
}

# Over Unix sockets, where the kernel keeps what was sent to it.
@test "a member that was stopped keeps nothing of a run that went on without it" {
    quorum_start 3
    quorum_is_old 4
    RLOCK_URL=$(each_of '1 2 3' eval 'echo unix://$REDIS_SOCKET' | tr '\n' ' ')
    on 2 redis_pause
    run -7 rlock -k "$KEY" -t 3 -- sh -c 'exit 7'
    on 2 redis_continue
    on 2 redis_cli ping
    never 1 on 2 exists "$KEY"
    assert_no_locks
}

@test "a waiter that reaches too few members holds up nobody" {
    local urls
    quorum_start 5
    quorum_is_old 2
    urls="$(quorum_urls 1 2) redis://127.0.0.1:1 redis://127.0.0.1:2 redis://127.0.0.1:3"
    start half "$RLOCK" -u "$(quorum_urls 1)" -u "$(quorum_urls 2)" -u redis://127.0.0.1:1 \
        -u redis://127.0.0.1:2 -u redis://127.0.0.1:3 -k "$KEY" -w 20 -- touch "$DIR/ran"
    for each in {1..20}; do
        run_ms rlock -k "$KEY" -w 10 -- true
        assert_status 0
        is_sanitized || assert_between "$took" 0 1500 'ms for a turn'
    done
    [[ ! -e $DIR/ran ]]
}

# safety.md 3.3: B gets two of three, one of which forgets it, A gets that one and the third, runs
# and ends; then B's late request to the third arrives, and B is granted with an older number.
@test "a late request doesn't let an older fence be granted after a newer one" {
    local urls a b
    quorum_start 3
    quorum_is_old 2
    line_start "$(on 3 eval 'echo $REDIS_PORT')"
    line delay 700
    # B has 30 s for it all: its phases wait for each other
    read -ra urls <<<"$(quorum_urls 1 2) redis://127.0.0.1:$LINE_PORT"
    on 2 redis_cli set "$KEY" foreign PX 300 >/dev/null
    start b "$RLOCK" -u "${urls[0]}" -u "${urls[1]}" -u "${urls[2]}" -k "$KEY" -t 3 -w 20 -- \
        sh -c 'echo "b $RLOCK_FENCE" >>"$DIR/fences"'
    for _ in {1..10}; do
        on 2 redis_cli del "$KEY" >/dev/null
        run -0 rlock -k "$KEY" -t 2 -w 20 -- sh -c 'echo "a $RLOCK_FENCE" >>"$DIR/fences"'
    done
    finish b 30
    assert_status 0
    cut -d' ' -f2 "$DIR/fences" | sort -nuc
    assert_eq "$(wc -l <"$DIR/fences")" 11 grants
}

@test "eight clients, members that lose all one after the other: nobody overlaps, fences grow" {
    local turns=63 each n=0
    ! is_sanitized || turns=8
    quorum_start 5
    quorum_is_old 2
    cat >"$DIR/turn" <<'END'
mkdir "$DIR/alone" || echo "$RLOCK_FENCE" >>"$DIR/overlaps"
echo "$RLOCK_FENCE" >>"$DIR/fences"
rmdir "$DIR/alone"
END
    for each in {1..8}; do
        start "c$each" bash -c 'for ((i = 0; i < $1; i++)); do
            "$RLOCK" -k "$KEY" -- sh "$DIR/turn" || echo "$?" >>"$DIR/bad"
        done' bash "$turns"
    done
    while [[ -n $(started_clients) ]]; do
        on $((n % 5 + 1)) redis_crash
        on $((n % 5 + 1)) redis_restart
        eventually 10 on $((n % 5 + 1)) has_run_for 2 # not faster than a TTL
        n=$((n + 1))
    done
    echo "# $n restarts in $((turns * 8)) turns" >&3
    ((n > 0)) || fail "$n restarts"
    [[ ! -e $DIR/bad ]] || fail "ended with: $(sort "$DIR/bad" | uniq -c)"
    [[ ! -e $DIR/overlaps ]] || fail "not alone: $(wc -l <"$DIR/overlaps")"
    assert_eq "$(wc -l <"$DIR/fences")" $((turns * 8)) turns
    sort -nuc "$DIR/fences"
}
started_clients() {
    local each
    for each in {1..8}; do
        dead "$(<"$DIR/pids/c$each")" || echo "$each"
    done
}

# ---- the scripts ----

# The greatest fence that these grant.
grant_of() { # TOKEN NUMBER...
    local token=$1 each
    shift
    for each; do
        on "$each" acquire "$token" 1
        echo
    done | sed -nE 's/^1 [0-9]+ ([0-9]+) .*/\1/p' | sort -n | tail -n 1
}

# The same by the scripts alone, step by step. With a fence that is as great, or less, than one that
# was granted, the second round of B fails where it should not be alone with its number.
@test "the scripts: what a late request has placed is not confirmed with an older fence" {
    local b a late
    quorum_start 3
    b=$(grant_of "$mine" 1 2)
    on 2 redis_cli del "$KEY" >/dev/null # it forgets the lock, not the fence
    a=$(grant_of "$yours" 2 3)
    ((a > b)) || fail "A got $a after $b"
    assert_match "$(on 2 confirm "$yours" "$a")" "^1 [0-9]+ $a "
    assert_match "$(on 3 confirm "$yours" "$a")" "^1 [0-9]+ $a "
    each_of '2 3' release "$yours" "$a" >/dev/null
    late=$(grant_of "$mine" 3) # and is too late to be counted
    assert_match "$(on 1 confirm "$mine" "$b")" "^1 [0-9]+ $b "
    assert_match "$(on 2 confirm "$mine" "$b")" '^-1 [0-9]+ $'
    assert_match "$(on 3 confirm "$mine" "$b")" "^-2 [0-9]+ $late "
    # with the greater number it is had, and that is greater than A's
    assert_match "$(on 1 confirm "$mine" "$late")" "^1 [0-9]+ $late "
    assert_match "$(on 3 confirm "$mine" "$late")" "^1 [0-9]+ $late "
    ((late > a)) || fail "B got $late after $a"
    assert_eq "$(on 1 fence)" "$late" 'last fence'
    assert_between "$(on 1 ttl_ms "$(helper fence)")" 604700000 604800000 'its PTTL'
}

@test "the scripts: with several servers no turn is kept, and who undoes an attempt wakes nobody" {
    local CARD='pid=1 members=0123abcd' QUEUE=fifo SLOWLY=1
    quorum_start 1
    redis_use q1
    acquire "$mine" 1 >/dev/null
    acquire "$yours" 1 >/dev/null
    acquire "$third" 1 >/dev/null
    assert_eq "$(redis_cli zcard "$(helper queue)")" 2 'in line'
    release "$mine" 0
    assert_eq "$(redis_cli exists "$KEY" "$(helper wake:)$yours" "$(helper wake:)$third")" 1 \
        'the first is woken, and no more'
    # whoever comes has it
    assert_match "$(acquire "$third" 2)" '^1 '
    redis_cli del "$(helper wake:)$yours" >/dev/null
    undo "$third" 2
    assert_eq "$(redis_cli exists "$KEY" "$(helper wake:)$yours")" 0 'the lock, and who is woken'
    # who leaves passes on what it may have been woken for
    leave "$third"
    assert_eq "$(redis_cli exists "$(helper wake:)$yours")" 1 'the first is woken'
}
