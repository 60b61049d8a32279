#!/usr/bin/env bats
# break: take a lock away from the holders that the user was shown, but not from a later holder.

load ../helpers/common
load ../helpers/server
load ../helpers/pty

TOKEN=0123456789abcdef0123456789abcdef

break_it() { run --separate-stderr "$RLOCK" break -k "$KEY" "$@"; }
@test "break: the holder's command is ended, and its renewals don't restore the lock" {
    local fence
    hold first -k "$KEY" -t 2 --label nightly
    fence=$(env_of first RLOCK_FENCE)
    break_it --yes
    assert_status 0
    assert_eq "$output" ""
    assert_line "^rlock: $KEY: broken: it was held for [0-9]+s by sh of .* \(nightly\)$"
    assert_match "$stderr" ", pid $(<"$DIR/pids/first") "
    gone "$KEY"
    (($(redis_cli get "{$KEY}:rlock:fence") > fence))
    assert_between "$(ttl_ms "{$KEY}:rlock:fence")" 604700000 604800000
    ended 76 first
    gone "$KEY"
}

@test "break: the first waiter in the queue is granted the lock, with a greater fence" {
    local fence
    hold first -k "$KEY" -t 1m
    fence=$(env_of first RLOCK_FENCE)
    queued second -- sh -c 'echo "$RLOCK_FENCE"'
    queued third -- true
    break_it --yes --json
    assert_status 0
    assert_match "$stderr" '^\{"event":"broken",.*"key":"'"$KEY"'",.*'
    assert_match "$stderr" '"why":"it was held for [0-9]+s by sh of '
    ended 0 second 5
    ((output > fence))
    ended 0 third 5
    eventually 5 gone "$KEY"
}

@test "break: a free lock is reported with status 0, and no key is left on the server" {
    break_it --yes
    assert_status 0
    assert_line "^rlock: $KEY: free: "
    assert_eq "$(redis_cli dbsize)" 0
    redis_cli set "$KEY" "$(printf '0%.0s' {1..32}) v1 try=0 since=1" ex 100
    break_it --yes
    assert_status 0
    assert_line "^rlock: $KEY: free: "
    exists "$KEY"
}

@test "break: another program's lock is broken, too; a key of another type is refused with 77" {
    head -c 1048576 /dev/zero | redis_cli -x set "$KEY"
    break_it --yes
    assert_status 0
    gone "$KEY"
    redis_cli set "$KEY" "$(printf 'v\033[2J\n')"
    break_it --yes
    assert_status 0
    [[ $(LC_ALL=C tr -d ' -~\n' <<<"$stderr") == '' ]] || fail "not printable: $stderr"
    assert_line "broken: it was held by another program"
    redis_cli lpush "$KEY" x
    break_it --yes
    assert_status 77
    exists "$KEY"
}

@test "break: all holders of a shared lock are told" {
    hold one -k "$KEY" -s -t 1m
    hold two -k "$KEY" -s -t 1m
    break_it --yes
    assert_status 0
    assert_line "broken: it was held for [0-9]+s by sh of .*; and by sh of "
    gone "$KEY"
}

@test "break: without a terminal and without --yes it exits with 64 and asks nothing" {
    redis_cli set "$KEY" x
    redis_cli config resetstat
    break_it </dev/null
    assert_status 64
    assert_line "^rlock: $KEY: usage: there is no terminal to ask on: give --yes"
    refute_match "$(redis_cli info commandstats)" 'cmdstat_eval'
    run -64 --separate-stderr "$RLOCK" break --yes
    assert_line '^rlock: usage: no key'
    run -64 "$RLOCK" break --yes -k a -k b
    exists "$KEY"
}

# ---- break on a terminal ----

# answer TEXT STATUS: types TEXT as the answer to the question on the screen; break ends with
# STATUS.
answer() {
    pty_type "$1"
    pty_prompt
    pty_status "$2"
}
ask() {
    pty_type '"$RLOCK" break -k "$KEY"'
    pty_expect 5 "${1:-break it\?} \[y/N\] "
}

@test "break: on a terminal it asks, and any answer but y or yes leaves the lock alone" {
    local word
    redis_cli set "$KEY" "$TOKEN v1 try=1 host=web1 user=u command=tar pid=5 label=%1B[2J since=1"
    pty_start
    for word in '' n ye yesyes "$(printf 'y%.0s' {1..200})"; do
        ask
        answer "$word" 75
        exists "$KEY"
    done
    assert_match "$(pty_screen)" \
        'held for [0-9dh]+ by tar of u@web1, pid 5 \(.*x1b\[2J\); never expires: break it\?'
    ask
    answer Yes 0
    gone "$KEY"
    redis_cli set "$KEY" x
    ask
    pty_key C-d
    pty_prompt
    exists "$KEY"
    ask
    answer y 0
    gone "$KEY"
}

@test "break: the question tells what keeps a lock without a holder" {
    pty_start
    rlock -k "$KEY" --once 1m -- true
    ask "marked as done [0-9]+s ago by true of .*, for another 5[0-9]s: remove the mark\?"
    answer y 0
    assert_match "$(pty_screen)" "broken: it was marked as done [0-9]+s ago by true of "
    gone "$KEY"
    rlock -k "$KEY" --min-hold 1m -- true
    ask "still taken by the --min-hold of true of .*, for another 5[0-9]s: free it\?"
    answer y 0
    gone "$KEY"
}

@test "break: it ignores what was typed before the question" {
    need python3
    redis_cli set "$KEY" x
    pty_start
    redis_pause
    pty_type '"$RLOCK" break -k "$KEY"'
    eventually 5 breaks
    pty_type y
    eventually 5 typed
    redis_continue
    pty_expect 5 'break it\? \[y/N\] '
    answer n 75
    exists "$KEY"
}
breaks() {
    local its_pid
    for its_pid in $(descendants "$(<"$DIR/pids/pty")"); do
        [[ $(cat "/proc/$its_pid/comm") != rlock ]] || return 0
    done
    return 1
}
# typed: has the terminal characters that no program has read yet?
typed() { python3 -c 'import fcntl, sys, termios
buffer = bytearray(4)
with open(sys.argv[1], "rb", buffering=0) as tty:
    fcntl.ioctl(tty, termios.FIONREAD, buffer)
sys.exit(buffer == bytes(4))' "$(<"$DIR/tty")"; }

@test "break: a holder that was granted the lock after the question keeps it" {
    redis_cli set "$KEY" "$TOKEN v1 try=1 host=one since=1"
    pty_start
    ask
    redis_cli set "$KEY" "$TOKEN v1 try=2 host=two since=1"
    answer y 75
    assert_match "$(pty_screen)" 'busy: the lock was not broken'
    assert_match "$(value "$KEY")" host=two
    ask
    redis_cli del "$KEY"
    answer y 0
    assert_match "$(pty_screen)" 'free: the lock has become free meanwhile'
    assert_eq "$(redis_cli keys '*:rlock:fence')" ''
}
