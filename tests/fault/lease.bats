#!/usr/bin/env bats
# lease: a lock is held for as long as its command runs, or the command is not run any longer.
#
# Where a run is to survive, the TTL is 3 s and --kill-after is short: that leaves 1.6 s between a
# renewal that fails and the end of the command, enough for a busy machine. Where it is to be lost
# the TTL is 1 s.

load ../helpers/common

setup() {
    common_setup
    CLI=$(type -P redis-cli valkey-cli | head -n 1)
}

# ---- runs ----

# run_rlock OPTION... -- COMMAND...: on "$KEY", until it ends
run_rlock() {
    start run "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY" "$@"
    finish run
}

# hold NAME [OPTION...]: starts rlock as NAME on the key "$KEY:NAME"; its command prints its pid,
# and ends with the status that `release` gives it.
hold() {
    local name=$1
    shift
    mkfifo "$DIR/$name.end"
    start "$name" "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY:$name" "$@" -- \
        sh -c 'exec 5<>"$0"; echo $$; read -r status <&5; exit "$status"' "$DIR/$name.end"
    eventually 10 file_has "$DIR/$name.out" '^[0-9]+$'
}

command_pid() { head -n 1 "$DIR/$1.out"; }

# tell_end NAME STATUS: the command reads it, if it lives. release: and then as `finish` does.
tell_end() { timeout 10 sh -c 'echo "$2" >"$1"' sh "$DIR/$1.end" "$2"; }
release() {
    tell_end "$@" || fail 'no command reads its end'
    finish "$1"
}

value() { redis_cli get "$KEY:$1"; }
token() { head -c 32 <<<"$(value "$1")"; }
is_free() { [[ $(redis_cli exists "$KEY:$1") == 0 ]]; }
is_held() { [[ $(value "$1") =~ ^[0-9a-f]{32}' v1 ' ]]; }

# Two looks at the time that is left: it grows only by a renewal.
has_grown() {
    local before=$LEFT
    LEFT=$(redis_cli pttl "$KEY:$1")
    ((LEFT > before))
}
await_renewal() {
    LEFT=999999
    eventually 5 has_grown "$1"
}

has_trouble() { (($(grep -c ': renewal-failed' "$DIR/$1.err") >= $2)); } # NAME TIMES

assert_lost() { # NAME REGEX: one line says so, and why
    assert_eq "$(grep -c ": lost: " "$DIR/$1.err")" 1 "lines about the loss"
    assert_match "$stderr" "rlock: $KEY:$1: lost: $2"
}

# ---- renewal ----

@test "a command of 3 x TTL keeps the lock all the time" {
    # The command itself takes the samples, so that each of them is within the run.
    local ttl=1
    ! is_sanitized || ttl=3
    redis_start
    run_rlock -t $ttl --report "$DIR/report" -- \
        "$CLI" -s "$REDIS_SOCKET" -r $((60 * ttl)) -i 0.05 get "$KEY"
    assert_status 0
    assert_eq "$(grep -c . <<<"$output")" $((60 * ttl)) "samples with a value"
    assert_eq "$(sort -u <<<"$output" | wc -l)" 1 "different values"
    assert_match "$output" '^[0-9a-f]{32} v1 '
    assert_match "$(<"$DIR/report")" '"renewals":([89]|1[0-9])[,}]'
    assert_eq "$(redis_cli exists "$KEY")" 0
}

@test "one failed renewal ends nothing, whatever the reason" {
    local fault repair n_failed=0 held
    redis_start
    mkdir "$REDIS_DIR/dump.rdb" # so that the server can't save, if it is told to
    hold holder -t 3 --kill-after 100ms
    held=$(value holder)
    while IFS='|' read -r fault repair; do
        $fault >/dev/null
        eventually 5 has_trouble holder $((++n_failed))
        $repair >/dev/null
        await_renewal holder
        assert_eq "$(value holder)" "$held" "value after $fault"
    done <<'END'
redis_cli client pause 1400|:
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

@test "a connection or a script that the server dropped is not even a failed renewal" {
    redis_start redis --hz 100 --timeout 1
    # A client counts as idle after 1 to 2 s, and the renewal comes after 2.1 to 2.4 s.
    hold holder -t 7
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

has_no_client() { [[ $(redis_cli client list | wc -l) == 1 ]]; } # but the one that asks

@test "renewal and release work on a server that is out of memory, acquire is refused" {
    redis_start
    hold holder -t 2 --kill-after 100ms
    redis_cli config set maxmemory 1
    await_renewal holder
    await_renewal holder
    run_rlock -n -- true
    assert_status 69
    assert_match "$stderr" "rlock: $KEY: unreachable: .*OOM"
    release holder 7
    assert_status 7
    assert_eq "$stderr" ""
    is_free holder
}

# ---- a server that is away ----

@test "a paused server that goes on within the lease: the command survives" {
    local held
    redis_start
    hold holder -t 3 --kill-after 100ms
    await_renewal holder
    held=$(value holder)
    redis_pause
    sleep 1.6 # of the 2.6 s until TERM
    redis_continue
    await_renewal holder
    assert_eq "$(value holder)" "$held"
    release holder 7
    assert_status 7
    refute_match "$stderr" ': (lost|restored)'
    is_free holder
}

@test "a server that is killed and back within the lease with its data: the command survives" {
    local held
    redis_start redis --appendonly yes --appendfsync always
    hold holder -t 3 --kill-after 100ms
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

@test "a server that is back without its data: the command is ended, 76" {
    redis_start
    hold holder -t 3
    redis_crash
    redis_restart
    finish holder
    assert_status 76
    assert_lost holder 'it is gone'
    is_free holder
}

@test "a server paused for longer: the whole tree is dead before the lease ends, 76" {
    outlives_no_lease redis_pause
}

@test "a server that is killed: the whole tree is dead before the lease ends, 76" {
    outlives_no_lease redis_crash
}

@test "a server that refuses to write: the whole tree is dead before the lease ends, 76" {
    outlives_no_lease redis_cli replicaof 127.0.0.1 1
    assert_match "$stderr" 'lost: .*READONLY'
}

# outlives_no_lease COMMAND...: what is done to the server while a command runs that is a shell
# with a child, a child in another session, and an orphan in another session. All ignore TERM.
outlives_no_lease() {
    local end name
    redis_start
    redis_monitor "$DIR/monitor"
    start holder "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY:holder" -t 1 -- sh -c '
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
    end=$(earliest_end 1000)
    eventually 5 is_past "$end"
    assert_between "$(sort -n "$DIR"/clock.* | tail -n 1)" $((end - 1000)) $((end - 1)) 'last sign'
}

is_past() { (($(now_ms) > $1)); }

# earliest_end TTL_MS: before this, on rlock's clock, the key can't have expired. The server's
# log has its own clock. Ours is read first, so what passes in between makes the bound stricter.
earliest_end() {
    local boot wall last
    boot=$(now_ms)
    wall=${EPOCHREALTIME/[.,]/}
    last=$(grep -E " lua\] \"(SET|PEXPIRE)\" \"$KEY:holder\" " "$DIR/monitor" | tail -n 1)
    last=${last%% *}
    echo $((boot + (${last/./} - wall) / 1000 + $1))
}

@test "a server that is gone at the end changes nothing: the lease was proven until then" {
    redis_start
    run_rlock -t 30 -- sh -c "kill -9 $REDIS_PID; exit 7"
    assert_status 7
    assert_match "$stderr" "^rlock: $KEY: not-released: [^"$'\n'"]*; the lock is free when"
}

# ---- a key that was changed by others ----

@test "a key that was deleted is put back, which is said, and the holder is the same" {
    local held fence
    redis_start
    hold holder -t 2 --kill-after 100ms
    held=$(token holder)
    fence=$(redis_cli get "{$KEY:holder}:rlock:fence")
    redis_cli del "$KEY:holder"
    eventually 5 is_held holder
    assert_eq "$(token holder)" "$held" 'the owner'
    assert_eq "$(redis_cli get "{$KEY:holder}:rlock:fence")" "$fence" 'the fence'
    assert_between "$(redis_cli pttl "$KEY:holder")" 1 2000
    await_renewal holder
    release holder 7
    assert_status 7
    assert_match "$stderr" "^rlock: $KEY:holder: restored: [^"$'\n'"]*$"
    is_free holder
}

@test "a key that was deleted just before the end was not held until the end: 76" {
    redis_start
    run_rlock -t 30 -- "$CLI" -s "$REDIS_SOCKET" del "$KEY"
    assert_status 76
    assert_match "$stderr" "^rlock: $KEY: lost: [^"$'\n'"]*$"
}

@test "a key that somebody else had meanwhile is not put back: 76" {
    redis_start
    hold holder -t 2
    redis_cli del "$KEY:holder"
    KEY=$KEY:holder run_rlock -n -- true
    assert_status 0
    finish holder
    assert_status 76
    assert_lost holder 'it is gone'
    never 1 is_held holder
}

@test "a foreign value ends the command with 76, and neither it nor its TTL is touched" {
    local name
    redis_start
    hold endless -t 1
    hold timed -t 1
    hold ignored -t 1 --on-lost ignore
    redis_cli set "$KEY:endless" other XX
    redis_cli set "$KEY:timed" other XX PX 100000
    redis_cli set "$KEY:ignored" other XX PX 100000
    for name in endless timed; do
        finish "$name"
        assert_status 76
        assert_lost "$name" 'it is held by another program \("other"\)'
        dead "$(command_pid "$name")"
    done
    eventually 5 file_has "$DIR/ignored.err" ': lost: it is held by another .*runs on'
    alive "$(command_pid ignored)"
    release ignored 0
    assert_status 76
    assert_eq "$(value endless)$(value timed)$(value ignored)" otherotherother
    assert_eq "$(redis_cli pttl "$KEY:endless")" -1
    assert_between "$(redis_cli pttl "$KEY:timed")" 50000 100000
    assert_between "$(redis_cli pttl "$KEY:ignored")" 50000 100000
}

@test "a key that became another type is neither touched nor kept: 76" {
    redis_start
    hold holder -t 1
    redis_cli eval 'redis.call("DEL", KEYS[1]) redis.call("RPUSH", KEYS[1], "a")' 1 "$KEY:holder"
    finish holder
    assert_status 76
    assert_lost holder '.*WRONGTYPE'
    assert_eq "$(redis_cli lrange "$KEY:holder" 0 -1)" a
    assert_eq "$(redis_cli pttl "$KEY:holder")" -1
}

@test "FLUSHALL takes the proof away with the key: 76" {
    redis_start
    hold holder -t 2
    redis_cli flushall
    finish holder
    assert_status 76
    assert_lost holder 'it is gone'
    dead "$(command_pid holder)"
    is_free holder
}

@test "a key that was evicted is put back" {
    local held used
    redis_start redis --maxmemory-policy volatile-ttl --maxmemory-samples 64
    hold holder -t 3 --kill-after 100ms
    held=$(token holder)
    # The lock is what expires first, and its fence key what expires last.
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

# ---- a success that was not proven ----

@test "--on-lost ignore: a warning, the command goes on, and 76 although it returned 0" {
    redis_start
    hold holder -t 1 --on-lost ignore
    redis_pause
    eventually 5 file_has "$DIR/holder.err" \
        "^rlock: $KEY:holder: lost: no renewal was confirmed in time.*runs on \(--on-lost ignore\)"
    never 1 dead "$(command_pid holder)"
    release holder 0
    assert_status 76
    assert_lost holder ''
}

@test "a command that answers TERM with status 0 was ended all the same: 76" {
    # The end comes from both of rlock's processes, or from the guard alone.
    local stop
    redis_start
    for stop in redis_pause 'kill -STOP $pid'; do
        start holder "$RLOCK" -u "redis://127.0.0.1:$REDIS_PORT" -k "$KEY:holder" -t 1 -- \
            sh -c 'trap "exit 0" TERM; echo $$; while :; do sleep 0.02; done'
        eventually 5 file_has "$DIR/holder.out" '^[0-9]+$'
        eval "$stop"
        eventually 5 dead "$(command_pid holder)"
        kill -CONT "$pid" "$REDIS_PID"
        finish holder
        assert_status 76
        assert_lost holder ''
    done
}

@test "rlock was stopped while the lease ended and the command returned 0: 76" {
    redis_start
    hold holder -t 1 --on-lost ignore
    kill -STOP "$pid"
    eventually 5 is_free holder
    tell_end holder 0
    eventually 5 dead "$(command_pid holder)"
    kill -CONT "$pid"
    finish holder
    assert_status 76
    assert_lost holder ''
}

@test "everything was stopped until the lease had ended, and the command goes on first: 76" {
    local all end
    redis_start
    hold holder -t 1
    all="$(descendants "$pid" | tac) $pid"
    # shellcheck disable=SC2086
    kill -STOP $all
    redis_pause # so that only the clock can tell
    end=$(($(now_ms) + 1000))
    eventually 5 is_past $end
    tell_end holder 0
    # shellcheck disable=SC2086
    kill -CONT $all
    finish holder
    assert_status 76
    assert_lost holder 'no renewal was confirmed in time'
}
