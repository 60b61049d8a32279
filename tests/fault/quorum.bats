#!/usr/bin/env bats
# quorum: members that die, hang, lose their data or reply late. rlock holds a lock as long as a
# majority of the members confirms it, and no longer.
#
# run: about 100 s

load ../helpers/common
load ../helpers/fake
load ../helpers/quorum
load ../helpers/lua

setup() {
    common_setup
    ttl=$(lease 2)
    old=$((ttl + 1)) # a member's vote counts when the member has run longer than a TTL
    export KEY RLOCK TOOLS DIR RLOCK_TTL=${ttl}s
}

# fail_by kill|stop NUMBER...: kills or stops these members.
# come_back kill|stop NUMBER...: restarts or continues them.
fail_by() {
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

@test "two of five members killed or stopped: rlock acquires, renews and releases as usual" {
    local how healthy began
    quorum_start 5
    quorum_is_old "$old"
    run_ms rlock -k "$KEY" -- sh -c 'exit 7'
    healthy=$took
    for how in kill stop; do
        # the members fail while rlock holds the lock, for a TTL and the release
        hold middle -k "$KEY"
        fail_by "$how" 2 4
        never "$ttl" file_has "$DIR/middle.err" 'lost'
        let_go middle 7
        assert_status 7
        # the members have failed before rlock starts
        run_ms rlock -k "$KEY" --connect-timeout 1s -- sh -c 'exit 7'
        assert_status 7
        assert_eq "$stderr" ''
        is_sanitized ||
            assert_between "$took" 0 $((healthy * 3 / 2 + $(busy_ms 1000))) "ms with two $how"
        run_ms rlock -k "$KEY" -n --connect-timeout 1s -- true
        assert_status 0
        come_back "$how" 2 4
        # the members fail just before the release
        hold last -k "$KEY"
        fail_by "$how" 1 5
        began=$(now_ms)
        let_go last 7
        took=$(($(now_ms) - began))
        assert_status 7
        is_sanitized || assert_between "$took" 0 "$(busy_ms 1000)" "ms to release with two $how"
        come_back "$how" 1 5
        assert_no_locks
        quorum_is_old "$old"
    done
}

@test "three of five members killed or stopped: a holder ends with 76 in time, an acquire with 69" {
    local how began ended
    quorum_start 5
    quorum_is_old "$old"
    for how in stop kill; do
        rm -f "$DIR/clock"
        start holder "$RLOCK" -k "$KEY" -- sh -c 'trap "" TERM
            exec "$TOOLS/hold_clock" "$DIR/clock" 10'
        eventually 5 test -s "$DIR/clock"
        fail_by "$how" 1 3 5
        began=$(now_ms)
        finish holder
        ended=$(tail -n 1 "$DIR/clock")
        assert_status 76
        assert_match "$stderr" "lost: "
        # the last renewal was before the members failed, and `began` was read after that
        assert_between $((ended - began)) $((ttl * -900)) $((ttl * 1000)) \
            'ms that the command ran on'
        run_ms rlock -k "$KEY:2" -n --connect-timeout 500ms -- touch "$DIR/ran"
        assert_status 69
        assert_match "$stderr" '3 of 5 members failed, 3 must agree: 127.0.0.1:[0-9]+: '
        is_sanitized || assert_between "$took" 0 $((1500 + $(busy_ms 1000))) 'ms until rlock ended'
        [[ ! -e $DIR/ran ]]
        come_back "$how" 1 3 5
        quorum_is_old "$old"
        eventually 5 only_fences || fail "keys left: $(quorum_keys)"
    done
}

@test "two of three members down: -n fails at once; -w gets the lock when they are back" {
    quorum_start 3
    quorum_is_old "$old"
    each_of '1 2' redis_crash
    run_ms "$RLOCK" -k "$KEY" -n --connect-timeout 2 -- true
    assert_status 69
    start waiter "$RLOCK" -k "$KEY" -w 60 --connect-timeout 2 -- true
    never 4 dead "$pid"
    assert_match "$(<"$DIR/waiter.err")" 'no-quorum: for |server-unreachable: for '
    each_of '1 2' redis_restart
    finish waiter 30
    assert_status 0
    assert_match "$stderr" 'server-back: after '
}

@test "two of three members restarted: they grant no lock until the longest lease has ended" {
    local restarted long=$((ttl + 4))
    local forgotten='not granted by 2 of 3 restarted servers: these may have forgotten a holder,'
    forgotten+=' and their grants count again'
    quorum_start 3
    quorum_is_old "$old"
    # two of three members forget a lock, and its holder is killed, so that nobody can renew the
    # lock
    hold a -k "$KEY" -t "$long" --on-lost ignore
    each_of '1 2' redis_crash
    restarted=$(now_ms)
    each_of '1 2' redis_restart
    run --separate-stderr rlock -k "$KEY" -n -- touch "$DIR/ran"
    assert_status 69
    assert_match "$stderr" '2 of 3 servers were restarted, and may have forgotten who holds '
    [[ ! -e $DIR/ran ]]
    kill -KILL "$(<"$DIR/pids/a")"
    # the third member knows how long the lease is that the other two may have forgotten
    run -69 --separate-stderr rlock -k "$KEY" -w 0.3 -- touch "$DIR/ran"
    assert_match "$stderr" 'were restarted, and may have forgotten who holds the lock'
    run -0 --separate-stderr rlock -k "$KEY" -v -- sh -c "'$TOOLS/hold_clock' >'$DIR/at'"
    assert_match "$stderr" "waiting: $forgotten in [0-9]+s"
    [[ ! -e $DIR/ran ]]
    assert_between $(($(<"$DIR/at") - restarted)) $((long * 1000)) \
        $((long * 1000 + 3000 + $(busy_ms 4000))) 'ms until the restarted members granted a lock'
}

@test "a lock that one member has lost: a renewal puts it back while a majority has it" {
    quorum_start 5
    quorum_is_old "$old"
    hold a -k "$KEY"
    on 3 redis_crash
    on 3 redis_restart
    eventually 5 held_by "$KEY" 5
    on 4 redis_cli del "$KEY" >/dev/null
    eventually 5 held_by "$KEY" 5
    # members 3, 4 and 5 have the lock again, so 1 and 2 may fail
    on 1 redis_crash
    on 2 redis_crash
    never "$ttl" file_has "$DIR/a.err" lost
    let_go a 7
    assert_status 7
    each_of '1 2' redis_restart
    assert_no_locks
}

@test "a lock that only a minority grants is taken back, also from a member that sent no reply" {
    local each
    quorum_start 5
    quorum_is_old 9
    # a foreign client holds the lock on three members
    each_of '1 2 3' redis_cli set "$KEY" foreign >/dev/null
    on 4 redis_pause
    run -75 --separate-stderr rlock -k "$KEY" -n -t 8 -- true
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

# The URLs are Unix sockets: the kernel keeps requests there, and the member reads them later.
@test "a member that is stopped during a run: the lock is not left on it" {
    quorum_start 3
    quorum_is_old "$old"
    RLOCK_URL=$(each_of '1 2 3' eval 'echo unix://$REDIS_SOCKET' | tr '\n' ' ')
    on 2 redis_pause
    run -7 rlock -k "$KEY" -- sh -c 'exit 7'
    on 2 redis_continue
    on 2 redis_cli ping
    never 1 on 2 exists "$KEY"
    assert_no_locks
}

@test "a waiter that reaches two of five members doesn't delay waiters that reach all" {
    local each
    quorum_start 5
    quorum_is_old "$old"
    start half "$RLOCK" -u "$(quorum_urls 1)" -u "$(quorum_urls 2)" -u redis://127.0.0.1:1 \
        -u redis://127.0.0.1:2 -u redis://127.0.0.1:3 -k "$KEY" -w 20 -- touch "$DIR/ran"
    for each in {1..20}; do
        run_ms rlock -k "$KEY" -w 10 -- true
        assert_status 0
        is_sanitized || assert_between "$took" 0 $((500 + $(busy_ms 1000))) 'ms of a run'
    done
    [[ ! -e $DIR/ran ]]
}

# The race that a fence must survive:
# 1. Members 1 and 2 grant the lock to B. B's request to member 3 is still on its way.
# 2. Member 2 loses B's lock.
# 3. Members 2 and 3 grant the lock to A, with a greater fence. A runs its command and releases.
# 4. B's late request arrives at member 3, which grants it. B now has a majority.
# B may run its command only with a fence that is greater than A's.
@test "a request that arrives late: the rlock that sent it gets no fence older than one in use" {
    local urls a b
    quorum_start 3
    quorum_is_old "$old"
    line_start "$(on 3 eval 'echo $REDIS_PORT')"
    line delay 700
    read -ra urls <<<"$(quorum_urls 1 2) redis://127.0.0.1:$LINE_PORT"
    on 2 redis_cli set "$KEY" foreign PX 300 >/dev/null
    # with a TTL of 3 s rlock waits 0.3 s for a reply, and the line makes it 1.4 s late
    start b "$RLOCK" -u "${urls[0]}" -u "${urls[1]}" -u "${urls[2]}" -k "$KEY" -t 3 -w 20 -- \
        sh -c 'echo "b $RLOCK_FENCE" >>"$DIR/fences"'
    for _ in {1..10}; do
        on 2 redis_cli del "$KEY" >/dev/null
        run -0 rlock -k "$KEY" -t 2 -w 20 -- sh -c 'echo "a $RLOCK_FENCE" >>"$DIR/fences"'
    done
    finish b 30
    assert_status 0
    cut -d' ' -f2 "$DIR/fences" | sort -nuc
    assert_eq "$(wc -l <"$DIR/fences")" 11 'number of grants'
}

@test "eight clients, and members that lose their data in turn: no two runs overlap, fences grow" {
    local turns=63 each n=0
    ! is_sanitized || turns=8
    quorum_start 5
    quorum_is_old "$old"
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
        eventually 10 on $((n % 5 + 1)) has_run_for "$old" # until this member counts again
        n=$((n + 1))
    done
    echo "# $n restarts in $((turns * 8)) turns" >&3
    ((n > 0)) || fail 'no member was restarted'
    [[ ! -e $DIR/bad ]] || fail "exit statuses of failed runs: $(sort "$DIR/bad" | uniq -c)"
    [[ ! -e $DIR/overlaps ]] || fail "runs that overlapped another: $(wc -l <"$DIR/overlaps")"
    assert_eq "$(wc -l <"$DIR/fences")" $((turns * 8)) 'number of runs'
    sort -nuc "$DIR/fences"
}
started_clients() {
    local each
    for each in {1..8}; do
        dead "$(<"$DIR/pids/c$each")" || echo "$each"
    done
}

# ---- the scripts, called without rlock ----

# grant_of TOKEN NUMBER...: acquires on these members, and prints the greatest fence they granted.
grant_of() {
    local token=$1 each
    shift
    for each; do
        on "$each" acquire "$token" 1
        echo
    done | sed -nE 's/^1 [0-9]+ ([0-9]+) .*/\1/p' | sort -n | tail -n 1
}

# The same race as in the test "a request that arrives late", with each step called by the test. B
# acquires with the fence of members 1 and 2. Then members 2 and 3 grant a greater fence to A, so
# they must refuse to confirm B's fence.
@test "lua: a lock that a late request acquired is not confirmed with an older fence" {
    local b a late
    quorum_start 3
    b=$(grant_of "$mine" 1 2)
    on 2 redis_cli del "$KEY" >/dev/null # member 2 still knows the fence
    a=$(grant_of "$yours" 2 3)
    ((a > b)) || fail "A got $a after $b"
    assert_match "$(on 2 confirm "$yours" "$a")" "^1 [0-9]+ $a "
    assert_match "$(on 3 confirm "$yours" "$a")" "^1 [0-9]+ $a "
    each_of '2 3' release "$yours" "$a" >/dev/null
    late=$(grant_of "$mine" 3) # B's late request
    assert_match "$(on 1 confirm "$mine" "$b")" "^1 [0-9]+ $b "
    assert_match "$(on 2 confirm "$mine" "$b")" '^-1 [0-9]+ $'
    assert_match "$(on 3 confirm "$mine" "$b")" "^-2 [0-9]+ $late "
    # with the fence of the late grant, which is greater than A's, B's lock is confirmed
    assert_match "$(on 1 confirm "$mine" "$late")" "^1 [0-9]+ $late "
    assert_match "$(on 3 confirm "$mine" "$late")" "^1 [0-9]+ $late "
    ((late > a)) || fail "B got $late after $a"
    assert_eq "$(on 1 fence)" "$late" 'last fence'
    assert_between "$(on 1 ttl_ms "$(key_of fence)")" 604700000 604800000 'PTTL of the last fence'
}

# How two owners of a shared lock can come to the same fence:
# 1. Members 1 and 2 grant the lock to A; members 2 and 3 grant it to B.
# 2. A and B both ask member 2 to confirm the same number: by chance, or because a member has told
#    B the number that A confirmed.
# Member 2 must confirm it for one owner only. Here one server takes the part of member 2.
@test "lua: a fence that was confirmed for one owner is not confirmed for another" {
    local MODE=s a b
    quorum_start 1
    redis_use q1
    b=$(grant_of "$mine" 1)
    a=$(grant_of "$yours" 1)
    assert_match "$(confirm "$yours" "$a" "$a")" "^1 [0-9]+ $a "
    assert_match "$(confirm "$mine" "$a" "$b")" "^-2 [0-9]+ $a "
    assert_match "$(confirm "$mine" $((a + 1)) "$b")" "^1 [0-9]+ $((a + 1)) "
    assert_match "$(confirm "$yours" $((a + 1)) "$a")" "^-2 [0-9]+ $((a + 1)) "
}

@test "lua: in a quorum a free lock is not reserved for a waiter, and an undo wakes no waiter" {
    local HOLDER_INFO='pid=1 members=0123abcd' POLICY=fifo SLOWLY=1
    quorum_start 1
    redis_use q1
    acquire "$mine" 1 >/dev/null
    acquire "$yours" 1 >/dev/null
    acquire "$third" 1 >/dev/null
    assert_eq "$(redis_cli zcard "$(key_of queue)")" 2 'waiters in the queue'
    release "$mine" 0
    assert_eq "$(redis_cli exists "$KEY" "$(key_of wake:)$yours" "$(key_of wake:)$third")" 1 \
        'locks and wake-ups'
    # the lock is granted to the client that asks first, also if another one was woken
    assert_match "$(acquire "$third" 2)" '^1 '
    redis_cli del "$(key_of wake:)$yours" >/dev/null
    undo "$third" 2
    assert_eq "$(redis_cli exists "$KEY" "$(key_of wake:)$yours")" 0 'locks and wake-ups'
    # a waiter that leaves may have been woken for nothing: the first in the queue is woken instead
    leave "$third"
    assert_eq "$(redis_cli exists "$(key_of wake:)$yours")" 1 'wake-ups of the first in the queue'
}
