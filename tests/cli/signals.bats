#!/usr/bin/env bats
# signals: what each signal does to rlock, the command and the lock, at whatever moment it comes.

load ../helpers/common
load ../helpers/server
load ../helpers/fake

# The signals of the table in cmd/process/signals.c that end a command; of the real-time signals
# only the first and the last.
ending=(HUP INT QUIT TERM USR1 USR2 ALRM VTALRM PROF IO PWR STKFLT RTMIN RTMAX)

nothing_left() { [[ -z $(marked) ]]; }

# seen MICROSECONDS SIGNAL COMMAND...: sends the signal to COMMAND after that time (SIGNAL 0: none).
# Prints COMMAND's PID and `exit STATUS` or `signal N`, which a shell can't tell apart. After a time
# limit COMMAND gets KILL.
seen() {
    # shellcheck disable=SC2016
    perl -e '
        use Time::HiRes "usleep";
        my ($after, $signal, @command) = @ARGV;
        my $pid = fork // die;
        if (!$pid) { exec @command or die }
        $| = print "pid $pid\n";
        $SIG{ALRM} = sub { kill "KILL", $pid };
        alarm 20;
        if ($signal) { usleep $after; kill $signal, $pid }
        waitpid $pid, 0;
        print $? & 127 ? "signal " . ($? & 127) : "exit " . ($? >> 8), "\n"' "$@"
}

# ---- signals before the command starts ----

# no_client: true if the server has one connection, redis_cli's own: no rlock is connected.
no_client() { [[ $(redis_cli client list | grep -c .) == 1 ]]; }

# ends_by SIGNAL COMMAND...: COMMAND gets the signal after 0.1 s, and must end by it.
ends_by() {
    how=$(seen 100000 "$@")
    assert_eq "${how##*$'\n'}" "signal $1" "the end by $1"
}

@test "while rlock waits, each signal ends rlock at once and leaves nothing on the server" {
    need perl
    local name
    redis_cli set "$KEY" other >/dev/null
    for name in "${ending[@]}"; do
        ends_by "$(kill -l "$name")" "$RLOCK" -k "$KEY" -- touch "$DIR/ran"
    done
    assert_eq "$(redis_cli get "$KEY")" other
    [[ ! -e $DIR/ran ]]
    nothing_left
    eventually 5 no_client
}

# ---- while the command runs ----

# start_shown COMMAND...: starts rlock with a command that writes its signals to shown.out.
start_shown() {
    start shown "$@"
    eventually 5 file_has "$DIR/shown.out" '^ready'
}

@test "each signal to rlock reaches the command once, and the command's status is returned" {
    local name
    local arrived=(HUP INT QUIT USR1 USR2 VTALRM PROF IO PWR STKFLT RTMIN RTMAX CONT WINCH TERM)
    start_shown "$RLOCK" -k "$KEY" -t 5 -- "$TOOLS/show_signals" 15 3
    for name in "${arrived[@]}"; do
        kill -s "$name" "$pid"
        eventually 5 file_has "$DIR/shown.out" "^$(kill -l "$name") "
    done
    ended 3 shown
    gone "$KEY"
    assert_eq "$(awk '$1 + 0 && $1 != 17 { print $1 }' "$DIR/shown.out")" \
        "$(for name in "${arrived[@]}"; do kill -l "$name"; done)"
}

@test "a command that ignores TERM runs on under its lock" {
    start one "$RLOCK" -k "$KEY" -t 10 -- \
        sh -c "trap '' TERM; exec '$TOOLS/hold_clock' '$DIR/clock' 60"
    eventually 5 test -s "$DIR/clock"
    kill -TERM "$pid"
    never 2 gone "$KEY"
    kill -INT "$pid"
    ended 130 one
}

@test "signals that rlock inherited as ignored stay ignored, also for the command" {
    local name
    redis_cli set "$KEY" other >/dev/null
    start one env --ignore-signal=HUP,INT,USR1,RTMAX "$RLOCK" -k "$KEY" -t 20 -- \
        "$TOOLS/hold_clock" "$DIR/clock" 60
    eventually 5 waits
    signal_ignored "$pid"
    redis_cli del "$KEY" >/dev/null
    eventually 5 test -s "$DIR/clock"
    signal_ignored "$pid"
    signal_ignored "$(descendants "$pid" | tail -n 1)"
    eventually 5 ticks_on
    kill -TERM "$pid"
    ended 143 one
}
signal_ignored() { for name in HUP INT USR1 RTMAX; do kill -s "$name" "$1"; done; }
ticks_on() { (($(tail -n 1 "$DIR/clock") > $(now_ms) - 100)); }

# ---- signals after the command has ended ----

@test "a signal during the release: rlock removes the key and ends with the command's status" {
    local name
    line_start "$REDIS_PORT"
    start one "$RLOCK" -u "redis://127.0.0.1:$LINE_PORT" -k "$KEY" -t 30 -- \
        sh -c "until [ -e '$DIR/slow' ]; do :; done; exit 3"
    eventually 5 exists "$KEY"
    line delay 400
    touch "$DIR/slow"
    eventually 5 alone "$pid"
    for name in HUP INT QUIT TERM USR1; do kill -s "$name" "$pid"; done
    alive "$pid"
    ended 3 one
    gone "$KEY"
}
# alone PID: all children of rlock have ended, also those it hasn't reaped.
alone() {
    local each
    alive "$1" && for each in $(children "$1"); do dead "$each" || return 1; done
}

# The command sends the signals. strace delays each read of one, so that the next one is there then.
# A guard whose answers rlock doesn't read can't send the command's status in the end.
@test "signals come faster than rlock takes them: it hears the guard in each turn" {
    need strace
    cat >"$DIR/many" <<'END'
trap '' USR1
read -r _ _ _ rlock _ <"/proc/$PPID/stat"
i=0
while [ $((i += 1)) -lt 100000 ]; do kill -USR1 "$rlock"; done
exit 3
END
    # LeakSanitizer fails under strace.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 run strace -qq -o "$DIR/trace" \
        -e trace=read,sendto,poll -e inject=read:delay_enter=1000 \
        "$RLOCK" -k "$KEY" -t 60 -- sh "$DIR/many"
    assert_status 3
    assert_between "$(awk '/^sendto/ && ++n > most { most = n } /^poll/ { n = 0 }
        END { print most + 0 }' "$DIR/trace")" 1 3 'requests in one turn'
}

# The job runs as cron runs it: its session has no process outside its process group.
@test "the stopped process of a job doesn't make the kernel send HUP when the command ends" {
    cat >"$DIR/job" <<'END'
sleep 60 &
kill -STOP $!
"$RLOCK" -k "$KEY" -- true
echo $? >"$DIR/job.status"
kill -KILL $!
END
    setsid --wait bash "$DIR/job"
    assert_eq "$(<"$DIR/job.status")" 0
}
