#!/usr/bin/env bats
# scarce: rlock with closed or unread standard descriptors, and without descriptors, processes or
# disk space.

load ../helpers/common
load ../helpers/server

# A shell script that writes to a file which of its first ten descriptors are open. The script looks
# at the descriptors before it opens the file, which takes one of them.
show_open='open=; for fd in 0 1 2 3 4 5 6 7 8 9; do [ ! -e "/proc/$$/fd/$fd" ] || open=$open$fd
    done; echo "$open" >"$DIR/open"'

# bats test_tags=long
@test "rlock starts with closed standard descriptors: so does the command, and the lock is freed" {
    local closed command
    redis_load_scripts # a server that doesn't know a script replies with the error NOSCRIPT
    redis_cli config resetstat
    for closed in '<&-' '>&-' '2>&-' '<&- >&-' '>&- 2>&-' '<&- >&- 2>&-'; do
        for command in '"$@"' '"$RLOCK" -v -k "$KEY" -- "$@"'; do
            run -6 bash -c "exec 3>&- 7</dev/null $closed; $command" - sh -c "$show_open; exit 6"
            mv "$DIR/open" "$DIR/open.${#command}"
        done
        assert_eq "$(cat "$DIR/open.${#command}")" "$(cat "$DIR/open.4")" "descriptors with $closed"
        gone "$KEY"
    done
    # A message that rlock wrote to its socket by mistake would be a bad command to the server.
    refute_match "$(redis_cli info errorstats)" errorstat_
}

@test "a full disk, a broken pipe or a full pipe on stderr changes neither lock nor status" {
    local sink broken full reader
    mkfifo "$DIR/full" "$DIR/broken"
    # Linux opens a named pipe for reading and writing at once without waiting for another process.
    # The pipe is broken when its only reader is closed. No `{broken}> >(:)` with `wait $!` here:
    # bash 5.2 overlooks a process that ends just after its fork, and `wait` then hangs.
    exec {full}<>"$DIR/full" {reader}<>"$DIR/broken" {broken}>"$DIR/broken" {reader}<&-
    dd if=/dev/zero of="$DIR/full" bs=4096 count=10000 oflag=nonblock status=none 2>/dev/null || :
    # env needs --default-signal, because whoever runs the tests may ignore SIGPIPE.
    for sink in /dev/full "&$broken" "&$full"; do
        run -6 timeout -k 1 20 env --default-signal bash -c 'exec "$@" 2>'"$sink" - \
            "$RLOCK" -v -k "$KEY" -- sh -c 'exit 6'
        gone "$KEY"
        redis_cli set "$KEY" other PX 60000
        run -75 timeout -k 1 20 env --default-signal bash -c 'exec "$@" 2>'"$sink" - \
            "$RLOCK" -n -k "$KEY" -- true
        redis_cli del "$KEY"
    done
}

# injected SYSCALL when=CALLS ARG...: runs rlock under strace, which lets the system call fail in
# each process by $error: when=1 the first call, when=1+ all calls.
injected() {
    local call=$1 when=error=${error:-EAGAIN}:$2
    shift 2
    # LeakSanitizer fails under strace.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 run --separate-stderr strace -f -qq \
        -o "$DIR/trace" -e trace="$call" -e inject="$call:$when" "$RLOCK" "$@"
    grep -q INJECTED "$DIR/trace" || fail "rlock did not call $call"
}

@test "if no process or timer can be made, rlock exits with 71, and the lock is free at once" {
    local call error
    need strace
    for call in clone,?fork ?vfork; do
        # ThreadSanitizer replaces vfork by fork.
        [[ $call != '?vfork' || ${RLOCK_TEST_FLAVOUR:-} != tsan ]] || continue
        injected "$call" when=1+ -k "$KEY" -- touch "$DIR/ran"
        assert_status 71
        assert_line "^rlock: $KEY: system: .* can.t be started: Resource "
        gone "$KEY"
    done
    error=EMFILE
    injected signalfd4 when=1 -k "$KEY" -- touch "$DIR/ran"
    assert_status 71
    assert_line "^rlock: $KEY: system: signals can.t be received: Too many open files; raise the "
    injected timerfd_create when=1+ -k "$KEY" -- touch "$DIR/ran"
    assert_status 71
    assert_line "^rlock: $KEY: system: .*: Too many open files"
    gone "$KEY"
    [[ ! -e $DIR/ran ]]
}

@test "if no thread can be started, the command runs until its lease ends, and rlock tries again" {
    need strace
    injected clone3 when=1+ -t 6 -k "$KEY" -- sh -c 'sleep 2.1; exit 6'
    assert_status 6
    assert_match "$stderr" "^rlock: $KEY: renewal-failed: renewals can.t be started: Resource "
    gone "$KEY"
    injected clone3 when=1+ -t 1 -k "$KEY" -- sleep 20
    assert_status 76
    assert_match "$stderr" "rlock: $KEY: lost: no renewal was confirmed in time"
    injected clone3 when=1 -t 6 -k "$KEY" -- sh -c 'sleep 6.1; exit 6' # the second try succeeds
    assert_status 6
    injected clone3 when=1+ -u redis://localhost:1 -k "$KEY" -- true
    assert_line "^rlock: $KEY: system: .* look up its address: .*; look at the limit ulimit -u$"
}

@test "if no file may grow (ulimit -f 0), messages and reports are lost, but not the lock" {
    local option
    for option in --report --report-append; do
        # --default-signal, because whoever runs the tests may have SIGXFSZ ignored.
        run -3 env --default-signal bash -c 'ulimit -f 0; exec "$@"' - \
            "$RLOCK" -k "$KEY" "$option" "$DIR/report" -- sh -c 'exit 3'
        assert_eq "$output" "rlock: $KEY: no-report: $DIR/report: File too large"
        gone "$KEY"
        [[ ! -s $DIR/report ]]
    done
    : >"$DIR/log"
    run -71 env --default-signal bash -c 'ulimit -f 0; exec "$@" >>"$DIR/log"' - "$RLOCK" --help
    run -71 env --default-signal bash -c 'ulimit -f 0; exec "$@" >>"$DIR/log"' - \
        "$RLOCK" status -k "$KEY"
    assert_eq "$(wc -c <"$DIR/log")" 0
    redis_cli del "$KEY"
}
