#!/usr/bin/env bats
# lease: rlock holds the lock for as long as the command runs. If rlock can't renew the lease, or
# finds that the lock is another's, rlock ends the command before the lease ends.
#
# In tests in which the command is to survive, the TTL is at least 3 s and --kill-after is 100 ms.
# That leaves at least 1.6 s between a renewal that fails and TERM to the command: time for a busy
# machine to run the server and rlock. In tests in which the lock is to be lost the TTL is shorter.

load ../helpers/common

setup() {
    common_setup
    CLI=$(type -P redis-cli valkey-cli | head -n 1)
}

# ---- helper functions ----

# run_rlock OPTION... -- COMMAND...: runs rlock with the lock "$KEY", and waits until it has ended.
run_rlock() {
    start run "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" "$@"
    finish run
}

# hold NAME [OPTION...]: starts rlock as NAME with the lock "$KEY:NAME". Returns when the command
# has printed its pid. The command ends with the status that `release` or `tell_end` gives it.
hold() {
    local name=$1
    shift
    mkfifo "$DIR/$name.end"
    start "$name" "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY:$name" "$@" -- \
        sh -c 'exec 5<>"$0"; echo $$; read -r status <&5; exit "$status"' "$DIR/$name.end"
    eventually 10 file_has "$DIR/$name.out" '^[0-9]+$'
}

command_pid() { head -n 1 "$DIR/$1.out"; }

# tell_end NAME STATUS: tells the command to end with this status; fails if there is no command.
# release NAME STATUS: calls tell_end, then waits until rlock has ended and sets what `finish` sets.
tell_end() { timeout 10 sh -c 'echo "$2" >"$1"' sh "$DIR/$1.end" "$2"; }
release() {
    tell_end "$@" || fail 'no command reads its end'
    finish "$1"
}

value() { redis_cli get "$KEY:$1"; }
token() { head -c 32 <<<"$(value "$1")"; }
is_free() { [[ $(redis_cli exists "$KEY:$1") == 0 ]]; }
is_held() { [[ $(value "$1") =~ ^[0-9a-f]{32}' v1 ' ]]; }

# has_grown NAME: true if the key's PTTL has grown since the last call: only a renewal makes it
# grow.
has_grown() {
    local before=$LEFT
    LEFT=$(redis_cli pttl "$KEY:$1")
    ((LEFT > before))
}
await_renewal() { # await_renewal NAME
    LEFT=999999
    eventually 5 has_grown "$1"
}

has_trouble() { (($(grep -c ': renewal-failed' "$DIR/$1.err") >= $2)); } # has_trouble NAME TIMES

# assert_lost NAME REGEX: rlock has printed exactly one line `lost`, with a reason that matches.
assert_lost() {
    assert_eq "$(grep -c ": lost: " "$DIR/$1.err")" 1 "number of lines that say lost"
    assert_match "$stderr" "rlock: $KEY:$1: lost: $2"
}

# ---- renewals that succeed or fail ----

@test "renewal: while a command runs for three TTLs, its lock is never free" {
    # The command itself reads the key, so each value was read while the command ran.
    local ttl
    ttl=$(lease 3)
    redis_start
    run_rlock -t $ttl --report "$DIR/report" -- \
        "$CLI" -s "$REDIS_SOCKET" -r $((60 * ttl)) -i 0.05 get "$KEY"
    assert_status 0
    assert_eq "$(grep -c . <<<"$output")" $((60 * ttl)) "times that the key had a value"
    assert_eq "$(sort -u <<<"$output" | wc -l)" 1 "number of different values"
    assert_match "$output" '^[0-9a-f]{32} v1 '
    assert_match "$(<"$DIR/report")" '"renewals":([89]|1[0-9])[,}]'
    assert_eq "$(redis_cli exists "$KEY")" 0 'number of keys after the run'
}

@test "renewal: one renewal that fails by a pause, READONLY or MISCONF doesn't end the command" {
    local fault repair n_failed=0 held ttl
    ttl=$(lease 3)
    redis_start
    mkdir "$REDIS_DIR/dump.rdb" # the server can't write its dump over a directory: BGSAVE fails
    hold holder -t "$ttl" --kill-after 100ms
    held=$(value holder)
    while IFS='|' read -r fault repair; do
        await_renewal holder # so that nearly a whole lease is left when the fault begins
        $fault >/dev/null
        eventually 5 has_trouble holder $((++n_failed))
        $repair >/dev/null
        await_renewal holder
        assert_eq "$(value holder)" "$held" "value after $fault"
    done <<END
redis_cli client pause $((ttl * 1400 / 3))|:
redis_cli replicaof 127.0.0.1 1|redis_cli replicaof no one
cannot_save|need_not_save
END
    release holder 7
    assert_status 7
    assert_match "$stderr" 'READONLY'
    assert_match "$stderr" 'MISCONF'
    is_free holder
}

cannot_save() {
    redis_cli config set save '1 1'
    redis_cli bgsave
    eventually 5 last_save_failed
}
need_not_save() { redis_cli config set save ''; }
last_save_failed() { redis_cli info persistence | grep -q '^rdb_last_bgsave_status:err'; }

@test "renewal: a connection that the server closed, or a script it forgot, is no failed renewal" {
    local ttl
    ttl=$(lease 7)
    redis_start redis --hz 100 --timeout 1
    # The server closes a connection that is idle for 1 to 2 s. The renewer waits a third of the
    # TTL, at least 2.1 s, between two renewals.
    hold holder -t "$ttl"
    eventually 5 has_no_client
    await_renewal holder
    redis_cli script flush
    redis_cli client kill type normal
    eventually 5 has_no_client
    await_renewal holder
    release holder 7
    assert_status 7
    assert_eq "$stderr" ""
    is_free holder
}

has_no_client() { [[ $(redis_cli client list | wc -l) == 1 ]]; } # the one client is redis_cli

@test "out of memory: the server renews and releases a lock, and grants none" {
    redis_start
    hold holder -t "$(lease 3)" --kill-after 100ms
    redis_cli config set maxmemory 1
    await_renewal holder
    await_renewal holder
    run_rlock -n -- true
    assert_status 69
    assert_match "$stderr" "rlock: $KEY: unreachable: .*OOM"
    release holder 7
    assert_status 7
    refute_match "$stderr" 'OOM|: (lost|restored|not-released)'
    is_free holder
}

# ---- a server that stops, dies or refuses to write ----

@test "a server that is stopped and goes on within the lease: the command isn't ended" {
    local held
    redis_start
    hold holder -t "$(lease 3)" --kill-after 100ms
    await_renewal holder
    held=$(value holder)
    redis_pause
    eventually 5 has_trouble holder 1
    redis_continue
    await_renewal holder
    assert_eq "$(value holder)" "$held"
    release holder 7
    assert_status 7
    refute_match "$stderr" ': (lost|restored)'
    is_free holder
}

@test "a server that restarts with its data within the lease: the command isn't ended" {
    local held
    redis_start redis --appendonly yes --appendfsync always
    hold holder -t "$(lease 3)" --kill-after 100ms
    await_renewal holder
    held=$(value holder)
    redis_crash
    eventually 5 has_trouble holder 1
    redis_restart
    await_renewal holder
    assert_eq "$(value holder)" "$held"
    release holder 7
    assert_status 7
    refute_match "$stderr" ': (lost|restored)'
    is_free holder
}

@test "a server that restarts without its data: rlock ends the command, status 76" {
    redis_start
    hold holder -t "$(lease 3)"
    await_renewal holder
    redis_crash
    redis_restart
    finish holder
    assert_status 76
    assert_lost holder 'the server no longer has the lock'
    is_free holder
}

@test "a server that is stopped until the lease ends: the tree has ended before that, status 76" {
    outlives_no_lease redis_pause
}

@test "a server that is killed: the tree has ended before the lease ends, status 76" {
    outlives_no_lease redis_crash
}

@test "a server that refuses to write: the tree has ended before the lease ends, status 76" {
    outlives_no_lease redis_cli replicaof 127.0.0.1 1
    assert_match "$stderr" 'lost: .*READONLY'
}

# outlives_no_lease FAULT...: starts rlock with a tree of four processes: a shell, its child, a
# child in another session, and an orphan in another session. All ignore TERM. Then runs FAULT, a
# command that keeps the server from renewing. None of the four may run after the end of the lease.
outlives_no_lease() {
    local end name ttl
    ttl=$(lease 1)
    redis_start
    redis_monitor "$DIR/monitor"
    start holder "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY:holder" -t "$ttl" -- sh -c '
        trap "" TERM
        "$0" "$1.child" 5 &
        setsid "$0" "$1.session" 5 &
        (setsid "$0" "$1.orphan" 5 &)
        exec "$0" "$1.itself" 5' "$TOOLS/hold_clock" "$DIR/clock"
    for name in child session orphan itself; do
        eventually 5 test -s "$DIR/clock.$name"
    done
    await_renewal holder
    "$@"
    finish holder
    assert_status 76
    assert_lost holder 'no renewal was confirmed in time'
    end=$(earliest_end $((ttl * 1000)))
    eventually 5 is_past "$end"
    assert_between "$(sort -n "$DIR"/clock.* | tail -n 1)" $((end - ttl * 1000)) $((end - 1)) \
        'the moment at which a process of the tree ran last'
}

is_past() { (($(now_ms) > $1)); }

# earliest_end TTL_MS: prints a moment on rlock's clock before which the key can't have expired: the
# time of the last SET or PEXPIRE in the server's MONITOR output, plus the TTL. MONITOR has wall
# clock times. The script reads rlock's clock before the wall clock, so that a pause between the two
# makes the printed moment earlier, and the test stricter.
earliest_end() {
    local boot wall last
    boot=$(now_ms)
    wall=${EPOCHREALTIME/[.,]/}
    last=$(grep -E " lua\] \"(SET|PEXPIRE)\" \"$KEY:holder\" " "$DIR/monitor" | tail -n 1)
    last=${last%% *}
    echo $((boot + (${last/./} - wall) / 1000 + $1))
}

@test "a server that is killed just before the command ends: the status is the command's" {
    redis_start
    run_rlock -t 30 -- sh -c "kill -9 $REDIS_PID; exit 7"
    assert_status 7
    assert_match "$stderr" "^rlock: $KEY: not-released: [^"$'\n'"]*; the lock is free when"
}

# ---- keys that other clients change ----

@test "a key that was deleted: the next renewal puts it back for the same holder, and says so" {
    local held fence ttl
    ttl=$(lease 2)
    redis_start
    hold holder -t "$ttl" --kill-after 100ms
    held=$(token holder)
    fence=$(redis_cli get "{$KEY:holder}:rlock:fence")
    redis_cli del "$KEY:holder"
    eventually 5 is_held holder
    assert_eq "$(token holder)" "$held" 'token of the holder'
    assert_eq "$(redis_cli get "{$KEY:holder}:rlock:fence")" "$fence" 'fence'
    assert_between "$(redis_cli pttl "$KEY:holder")" 1 $((ttl * 1000)) 'PTTL'
    await_renewal holder
    release holder 7
    assert_status 7
    assert_match "$stderr" "^rlock: $KEY:holder: restored: [^"$'\n'"]*$"
    is_free holder
}

@test "a key deleted just before the command ends: rlock can't prove the lease, status 76" {
    redis_start
    run_rlock -t 30 -- "$CLI" -s "$REDIS_SOCKET" del "$KEY"
    assert_status 76
    assert_match "$stderr" "^rlock: $KEY: lost: [^"$'\n'"]*$"
}

@test "a key deleted, and held by another rlock since: no renewal puts it back, status 76" {
    redis_start
    hold holder -t "$(lease 6)"
    redis_cli del "$KEY:holder"
    KEY=$KEY:holder run_rlock -n -- true # before the next renewal, which comes after 2 s
    assert_status 0
    finish holder
    assert_status 76
    assert_lost holder 'the server no longer has the lock'
    never 1 is_held holder
}

@test "a key that another program overwrote: rlock leaves value and TTL as they are, status 76" {
    local name ttl
    ttl=$(lease 3)
    redis_start
    hold endless -t "$ttl"
    hold timed -t "$ttl"
    hold ignored -t "$ttl" --on-lost ignore
    redis_cli set "$KEY:endless" other XX
    redis_cli set "$KEY:timed" other XX PX 100000
    redis_cli set "$KEY:ignored" other XX PX 100000
    for name in endless timed; do
        finish "$name"
        assert_status 76
        assert_lost "$name" 'the lock is held by another program \("other"\)'
        dead "$(command_pid "$name")"
    done
    eventually 5 file_has "$DIR/ignored.err" ': lost: the lock is held by another .*runs on'
    alive "$(command_pid ignored)"
    release ignored 0
    assert_status 76
    assert_eq "$(value endless)$(value timed)$(value ignored)" otherotherother
    assert_eq "$(redis_cli pttl "$KEY:endless")" -1 'PTTL of a key without expiry'
    assert_between "$(redis_cli pttl "$KEY:timed")" 50000 100000 'PTTL'
    assert_between "$(redis_cli pttl "$KEY:ignored")" 50000 100000 'PTTL with --on-lost ignore'
}

@test "a key that another program has made a list: rlock leaves the list as it is, status 76" {
    redis_start
    hold holder -t "$(lease 1)"
    redis_cli eval 'redis.call("DEL", KEYS[1]) redis.call("RPUSH", KEYS[1], "a")' 1 "$KEY:holder"
    finish holder
    assert_status 76
    assert_lost holder '.*WRONGTYPE'
    assert_eq "$(redis_cli lrange "$KEY:holder" 0 -1)" a
    assert_eq "$(redis_cli pttl "$KEY:holder")" -1
}

@test "FLUSHALL: without the last fence a renewal can't prove that the lock is ours, status 76" {
    redis_start
    hold holder -t "$(lease 2)"
    redis_cli flushall
    finish holder
    assert_status 76
    assert_lost holder 'the server no longer has the lock'
    dead "$(command_pid holder)"
    is_free holder
}

@test "a key that the server evicted: the next renewal puts it back" {
    local held used
    redis_start redis --maxmemory-policy volatile-ttl --maxmemory-samples 64
    hold holder -t "$(lease 3)" --kill-after 100ms
    held=$(token holder)
    # volatile-ttl evicts the key that expires first: the lock. The fence's key expires last.
    redis_cli eval 'for i = 1, 1000 do
        redis.call("SET", "filler" .. i, string.rep("x", 1000), "EX", 1000) end' 0
    used=$(redis_cli info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p')
    redis_cli config set maxmemory $((used - 200000))
    eventually 5 is_free holder
    eventually 5 is_held holder
    assert_eq "$(token holder)" "$held"
    release holder 7
    assert_status 7
    assert_match "$stderr" "rlock: $KEY:holder: restored: "
}

# ---- commands that return 0 although the lease has ended ----

@test "--on-lost ignore: rlock warns, the command runs on and returns 0, and rlock exits with 76" {
    redis_start
    hold holder -t "$(lease 1)" --on-lost ignore
    redis_pause
    eventually 5 file_has "$DIR/holder.err" \
        "^rlock: $KEY:holder: lost: no renewal was confirmed in time.*runs on \(--on-lost ignore\)"
    never 1 dead "$(command_pid holder)"
    release holder 0
    assert_status 76
    assert_lost holder ''
}

@test "a command that exits with 0 when rlock sends TERM for a lost lease: rlock exits with 76" {
    # If the server is stopped, rlock's main process and the guard both find that the lease ends. If
    # rlock's main process is stopped, the guard alone does.
    local stop
    redis_start
    for stop in redis_pause 'kill -STOP $pid'; do
        start holder "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY:holder" \
            -t "$(lease 1)" -- sh -c 'trap "exit 0" TERM; echo $$; while :; do sleep 0.02; done'
        eventually 5 file_has "$DIR/holder.out" '^[0-9]+$'
        eval "$stop"
        eventually 5 dead "$(command_pid holder)"
        kill -CONT "$pid" "$REDIS_PID"
        finish holder
        assert_status 76
        assert_lost holder ''
    done
}

@test "rlock is stopped until the lease has ended and the command has returned 0: status 76" {
    redis_start
    hold holder -t "$(lease 1)" --on-lost ignore
    kill -STOP "$pid"
    eventually 5 is_free holder
    tell_end holder 0
    eventually 5 dead "$(command_pid holder)"
    kill -CONT "$pid"
    finish holder
    assert_status 76
    assert_lost holder ''
}

@test "rlock, guard and command are stopped beyond the lease; the command returns 0: status 76" {
    local all end ttl
    ttl=$(lease 1)
    redis_start
    hold holder -t "$ttl"
    all="$(descendants "$pid" | tac) $pid" # the command first, so that CONT reaches it first
    # shellcheck disable=SC2086
    kill -STOP $all
    # While the server is stopped, no renewal can tell rlock that the key is gone. rlock has to find
    # the end of the lease by its clock.
    redis_pause
    end=$(($(now_ms) + ttl * 1000))
    eventually 5 is_past $end
    tell_end holder 0
    # shellcheck disable=SC2086
    kill -CONT $all
    finish holder
    assert_status 76
    assert_lost holder 'no renewal was confirmed in time'
}
