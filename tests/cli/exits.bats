#!/usr/bin/env bats
# exits: rlock exits with the command's status, or with one of its own and a line that says why.

load ../helpers/common
load ../helpers/server

# ends STATUS 'WHAT: WHY' ARG...: rlock on $KEY ends with STATUS and this line on stderr, and
# doesn't run the command, which would create a file.
ends() {
    local wanted=$1 says=$2
    shift 2
    run "-$wanted" --separate-stderr rlock -k "$KEY" "$@" touch "$DIR/ran"
    assert_line "^rlock: $KEY: $says"
    assert_eq "$output" ""
    [[ ! -e $DIR/ran ]] || fail "the command ran"
}

# ---- the command's own status ----

@test "rlock exits with the command's status, and writes nothing" {
    local wanted
    for wanted in 0 1 7 64 75 76 124 125 126 127 128 143 255; do
        run "-$wanted" --separate-stderr rlock -k "$KEY" -- sh -c "exit $wanted"
        assert_eq "$stderr" ""
        gone "$KEY"
    done
}

@test "the status is 128 + N if signal N ended the command, for 1 to 15 and real-time signals" {
    local number
    ulimit -c 0
    for number in {1..15} 34 64; do
        # The tests may have been started with ignored signals, which a shell can't undo.
        run "-$((128 + number))" --separate-stderr \
            env --default-signal "$RLOCK" -k "$KEY" -- sh -c "kill -$number \$\$"
        assert_eq "$stderr" ""
        gone "$KEY"
    done
}

@test "the status is that of the command's first process, not of a process that it left behind" {
    run -3 --separate-stderr rlock -k "$KEY" --wait-all -- \
        sh -c '(exit 9) & (sleep 0.2; exit 8) & exit 3'
    run -3 --separate-stderr rlock -k "$KEY" -- sh -c 'sh -c "kill -9 \$\$"; exit 3'
}

# ---- the statuses of rlock's own ----

@test "status 64: an unknown option, a bad value, no key, no command" {
    local arguments says
    while IFS='|' read -r arguments says; do
        # shellcheck disable=SC2086 # several words
        run -64 --separate-stderr rlock $arguments
        assert_line "^rlock: ([^ ]+: )?usage: $says.*; see rlock --help$"
        assert_eq "$output" ""
    done <<END
-k $KEY --no-such-option -- true|unknown option: --no-such-option
-k $KEY -t 5x -- true|ttl: not a duration .*"5x"
-k $KEY|no command
-- true|no key
END
}

@test "status 69: the server refuses the connection, doesn't exist, or its name has no address" {
    local before
    redis_start gone
    redis_stop
    before=$(now_ms)
    ends 69 "unreachable: 127\.0\.0\.1:$REDIS_PORT: connect: Connection refused" \
        --connect-timeout 100ms -u "redis://127.0.0.1:$REDIS_PORT"
    ends 69 "unreachable: $DIR/none: connect: No such file" --connect-timeout 100ms \
        -u "unix://$DIR/none"
    ends 69 'unreachable: no-such-host\.invalid' --connect-timeout 300ms \
        -u redis://no-such-host.invalid
    (($(now_ms) - before < 4500)) || fail 'rlock waited for the default of 5 s'
}

@test "status 75: the lock is taken; -E changes this status and no other" {
    local wanted
    redis_cli set "$KEY" other PX 60000
    ends 75 'busy: held ' -n
    ends 75 'timeout: after [0-9.]+s: held ' -w 1
    for wanted in 0 1 76 255; do
        ends "$wanted" 'busy: held ' -n -E "$wanted"
        ends "$wanted" 'timeout: after [0-9.]+s: held ' -w 1 --conflict-exit-code="$wanted"
    done
    ends 69 unreachable -n -E 0 -u "unix://$DIR/none"
    redis_cli del "$KEY"
    run -5 --separate-stderr rlock -k "$KEY" -n -E 9 -- sh -c 'exit 5'
}

@test "status 76: the command succeeded, but the lock was lost before the command's end" {
    hold job -k "$KEY" -t 20
    redis_cli del "$KEY"
    let_go job 0
    assert_status 76
    assert_line "^rlock: $KEY: lost: when the command had ended, the server no longer had the lock"
}

@test "status 77: a key of another type, no permission, a password that the server doesn't want" {
    redis_cli rpush "$KEY" a b
    ends 77 'refused: .*WRONGTYPE' -n
    ends 77 'refused: .*WRONGTYPE' # rlock doesn't wait until the key is gone
    assert_eq "$(redis_cli lrange "$KEY" 0 -1)" $'a\nb'
    redis_cli del "$KEY"
    redis_cli acl setuser reader on '>pw' '~*' +get
    redis_cli acl setuser elsewhere on '>pw' '~elsewhere:*' +@all
    ends 77 'refused: .*(NOPERM|permission)' -u "redis://reader:pw@127.0.0.1:$REDIS_PORT"
    ends 77 'refused: .*(NOPERM|permission|access)' -u "redis://elsewhere:pw@127.0.0.1:$REDIS_PORT"
    RLOCK_PASSWORD=pw ends 77 'refused: .*password'
}

@test "status 78: a bad URL, a file that doesn't exist, a server that can't do what is asked" {
    ends 78 'misconfigured: --url: bad URL: ' -u 127.0.0.1
    ends 78 "misconfigured: password file $DIR/none: No such file" --password-file "$DIR/none"
    redis_start old --rename-command EVAL eval-of-ours
    ends 78 "misconfigured: .*unknown command" --scripts yes -u "unix://$REDIS_SOCKET"
}

@test "status 126 and 127: the command isn't executable or isn't found; the lock is free at once" {
    local row
    printf '#!/bin/sh\n' >"$DIR/plain"
    for row in "126 not-executable $DIR/plain Permission" "126 not-executable $DIR Permission" \
        "127 not-found $DIR/none No such file" "127 not-found no-such-command No such file"; do
        read -r wanted what command why <<<"$row"
        run "-$wanted" --separate-stderr rlock -k "$KEY" -- "$command"
        assert_line "^rlock: $KEY: $what: $command: $why"
        gone "$KEY"
    done
}

# ---- -c ----

@test "-c runs its argument by /bin/sh, not by a shell of the PATH, and returns its status" {
    run -5 --separate-stderr rlock -k "$KEY" -c \
        'x="a  b"; echo "$x" | cat; echo "$# $RLOCK_KEY"; exit 5'
    assert_eq "$output" $'a  b\n0 '"$KEY"
    run -4 --separate-stderr env PATH=/none "$RLOCK" -k "$KEY" --command='exit 4'
    run -0 --separate-stderr rlock -k "$KEY" -c 'readlink "/proc/$$/exe"'
    assert_eq "$output" "$(readlink -f /bin/sh)"
}

# ---- --max-hold ----

# held_too_long ARG...: rlock ends with 124 and leaves no key. Unlike `run`, it doesn't wait for
# other processes that have the output open.
held_too_long() {
    start job "$RLOCK" -k "$KEY" "$@"
    ended 124 job
    assert_match "$stderr" "^rlock: $KEY: max-hold: the command ran for"
    gone "$KEY"
    assert_eq "$(marked)" "" "processes that still run"
}

@test "--max-hold sends TERM to the command, and after --kill-after KILL" {
    local term end
    held_too_long -t 20 --max-hold 300ms --kill-after 2 -- sh -c '
        trap "$TOOLS/hold_clock >>$DIR/term" TERM
        (trap "" TERM; exec setsid "$TOOLS/hold_clock" "$DIR/ticks" 5) &
        while :; do wait; done'
    term=$(head -n 1 "$DIR/term")
    end=$(tail -n 1 "$DIR/ticks")
    ((end - term >= 1000)) || fail 'KILL came too early' # the trap may have been late
}

@test "--max-hold: rlock exits with 124 also if the command exits with another status after TERM" {
    held_too_long --max-hold 200ms -- sh -c 'trap "exit 0" TERM; sleep 60 & wait'
    held_too_long --max-hold 200ms --kill-after 0 -- sh -c 'trap "" TERM; sleep 60'
    run -6 rlock -k "$KEY" --max-hold 20 -- sh -c 'exit 6'
}

# ---- --wait-all ----

@test "the lock is released when the command ends; with --wait-all when its last process ends" {
    run -5 --separate-stderr timeout -k 1 10 "$RLOCK" -k "$KEY" \
        -c '(setsid sleep 60 &) >/dev/null 2>&1; exit 5'
    assert_eq "$stderr" ""
    gone "$KEY"
    [[ -n $(marked) ]] || fail "the daemon was ended"
    run -0 rlock -k "$KEY" --wait-all -c "(sleep 0.3; $(asking) exists \"\$RLOCK_KEY\") &"
    assert_eq "$output" 1 'the lock is held until the last process ends'
}
