# shellcheck shell=bash
# common: what every bats file needs: assertions, waiting, and processes that end with the test.
# This file also loads redis.bash and hold.bash, which nearly all files need.
#
# This file defines setup(), teardown() and teardown_file(), which ends the servers of setup_file().
# A bats file whose setup or teardown does more defines it again, and calls common_setup or
# common_teardown in it.
#
# common_setup sets these variables for each test:
#   KEY     a key that no other test uses; for more keys append to it, as "$KEY:2"
#   DIR     an empty folder of the test's own
#   RLOCK   the absolute path of the program under test; the function `rlock` runs the program
#   TOOLS   the folder of the programs made from tests/tools

bats_require_minimum_version 1.8.0

# Not the machine's locale, and set before bash reads a \u of a bats file. A test that needs another
# locale sets it.
export LC_ALL=C.UTF-8

# bats reads this file once for each file and test. What starts processes is done once for a file.
export RLOCK_TEST_ROOT=${RLOCK_TEST_ROOT:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
export RLOCK_TEST_PROCESSORS=${RLOCK_TEST_PROCESSORS:-$(nproc)}
ROOT=$RLOCK_TEST_ROOT
PROCESSORS=$RLOCK_TEST_PROCESSORS
RLOCK=${RLOCK:-$ROOT/rlock}
TOOLS=${RLOCK_TEST_TOOLS:-$ROOT/build/plain/tools}

common_setup() {
    # bats traces each command of each function, which takes 0.2 ms, a hundred times as long as the
    # command. From here on, bats traces only the test's own lines: if a helper fails, bats tells
    # the line of the test that called the helper. Two functions of bats end the trace then.
    declare -ft "$BATS_TEST_NAME" bats_error_trap bats_check_status_from_trap || :
    set +T
    [[ -x $RLOCK && -x $TOOLS/hold_clock ]] || fail "not built: $RLOCK and $TOOLS (make check-cli)"
    DIR=$BATS_TEST_TMPDIR
    mkdir -p "$DIR/pids"
    KEY="test:${BATS_TEST_FILENAME##*/}:$BATS_TEST_NUMBER"
    # Each process that the test starts inherits this variable: marked() finds the processes by it.
    export RLOCK_TEST_MARK="$KEY:$BASHPID"
    local name
    for name in "${!RLOCK_@}" VALKEY_URL REDIS_URL REDISCLI_AUTH VALKEYCLI_AUTH; do
        [[ $name == RLOCK_TEST_* ]] || unset "$name"
    done
    # The sanitizers in rlock write their reports to this test's folder, so that no report of
    # another test that runs now is taken for one of this test. If *SAN_OPTIONS has log_path twice,
    # the sanitizer uses the last one.
    for name in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
        export "$name=${!name:-}:log_path=$DIR/sanitizer"
    done
    export HOME=$DIR XDG_RUNTIME_DIR=$DIR
    unset XDG_CONFIG_HOME
    export RLOCK_LOCAL_DIR=$DIR/rlock # each test has a private server of its own
    export RLOCK_HOLD_DIR=$DIR/holds
    export DIR KEY RLOCK TOOLS # for shells that a test starts
}

common_teardown() {
    show_why_it_failed
    end_all
    leave_cgroup
    show_sanitizer_reports
}

# bats waits until no process has descriptor 3 open, so rlock doesn't inherit it.
rlock() { "$RLOCK" "$@" 3>&-; }

setup() { common_setup; }
teardown() { common_teardown; }
teardown_file() { redis_stop_all; }

# shellcheck source=tests/helpers/redis.bash
source "$ROOT/tests/helpers/redis.bash"
# shellcheck source=tests/helpers/hold.bash
source "$ROOT/tests/helpers/hold.bash"

# ---- a test that hangs ----

# After BATS_TEST_TIMEOUT seconds bats ends a test: it sends a signal to the test's shell, and calls
# this function to end its children. bats' own function would leave the children of `run`, and the
# shell would wait for their output. After a test that hung, each further one has 60 s only: most
# probably the program is broken.
bats_kill_childprocesses_of() { # PID of the test's shell
    local its_pid pids RLOCK_TEST_MARK="test:${BATS_TEST_FILENAME##*/}:$BATS_TEST_NUMBER:$1"
    pids=$(descendants "$1" && marked)
    ps -o pid,stat,args -p "$(xargs <<<"$pids")" >"$BATS_TEST_TMPDIR/hung"
    : >"$HUNG"
    for its_pid in $pids; do
        [[ $its_pid == "$BASHPID" ]] || kill -KILL "$its_pid" || :
    done
}
HUNG=${RUN_TESTS:-$BATS_RUN_TMPDIR}/hung
[[ ! -e $HUNG ]] || ((${BATS_TEST_TIMEOUT:-0} < 60)) || BATS_TEST_TIMEOUT=60

# ---- assertions ----

# fail MESSAGE: print the message, and fail the test.
fail() {
    printf '%s\n' "$@" >&2
    return 1
}

# skip_or_fail REASON: skip the test; with RLOCK_TEST_STRICT=1, which CI sets, fail it instead.
skip_or_fail() {
    if [[ ${RLOCK_TEST_STRICT:-} == 1 ]]; then
        fail "missing: $1"
    else
        skip "$1"
    fi
}

# need PROGRAM...: call skip_or_fail if one of these programs isn't installed.
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || skip_or_fail "$program"
    done
}

# need_cgroup: skip the test where rlock can't make a control group for its command. The test enters
# a group of its own: an rlock of another test kills the frozen command of a killed rlock beside it.
need_cgroup() {
    local status=0
    rlock -q --cgroup -n -k "$KEY" -u "unix://$DIR/none" -- true 2>/dev/null || status=$?
    [[ $status != 71 ]] || skip 'no control group can be made here'
    own_cgroup=$(cgroup_of self)/test-$BASHPID
    mkdir "$own_cgroup"
    echo "$BASHPID" >"$own_cgroup/cgroup.procs"
}

leave_cgroup() {
    [[ -n ${own_cgroup:-} ]] || return 0
    echo "$BASHPID" >"${own_cgroup%/*}/cgroup.procs"
    eventually 5 find "$own_cgroup" -depth -type d -delete
}

# cgroup_of PID: print the directory of the control group (cgroup v2) that a process is in.
cgroup_of() { echo "$(findmnt -nrt cgroup2 -o TARGET)$(sed -n 's/^0:://p' "/proc/$1/cgroup")"; }

# is_sanitized: true for a build with sanitizers, which is slower and needs more memory.
is_sanitized() { [[ ${RLOCK_TEST_FLAVOUR:-plain} == [at]san ]]; }

# assert_eq GOT WANTED [WHAT]
assert_eq() { [[ $1 == "$2" ]] || fail "${3:-value} is not as wanted" "   got: $1" "wanted: $2"; }

# assert_match TEXT EXTENDED_REGEX [WHAT]
assert_match() { [[ $1 =~ $2 ]] || fail "${3:-text} does not match" "   got: $1" "wanted: $2"; }

# refute_match TEXT EXTENDED_REGEX [WHAT]
refute_match() { ! [[ $1 =~ $2 ]] || fail "${3:-text} should not match" "   got: $1" "regex:  $2"; }

# assert_valid FILE: check that each line of FILE is a message as docs/messages.schema.json says.
assert_valid() {
    "$ROOT/tests/tools/check_schema.py" "$ROOT/docs/messages.schema.json" "$1" >&2
}

# assert_between NUMBER LOW HIGH [WHAT]
assert_between() { (($2 <= $1 && $1 <= $3)) || fail "${4:-number} is $1, not $2 to $3"; }

# assert_status WANTED: check the status of the last `run` or `finish`.
assert_status() { [[ $status == "$1" ]] || fail "status is $status, wanted $1"; }

# AS_PROCESS_1: run as root, "${AS_PROCESS_1[@]}" COMMAND... runs the command as process 1 of a new
# PID namespace with its own /proc. The option is for a chroot: there unshare can't change the
# propagation of the mounts in /, which it does otherwise.
AS_PROCESS_1=(unshare --propagation unchanged --pid --fork --kill-child --mount-proc)

# ---- time ----

SLACK=10000 # ms by which a busy machine may exceed a time that rlock promises

# now_ms: print the time on CLOCK_BOOTTIME, the clock that rlock uses.
now_ms() { "$TOOLS/hold_clock"; }

# booted_us: print when this machine was booted, by its wall clock, in microseconds (clockshim).
booted_us() { echo "$((${EPOCHREALTIME/[.,]/} - 1000 * $(now_ms)))"; }

# read_up_ms: set up_ms to the time on CLOCK_BOOTTIME, rounded down to 10 ms. Unlike now_ms, it
# starts no process, so a loop may call it often.
read_up_ms() {
    read -r up_ms _ </proc/uptime
    up_ms=$((10#${up_ms/./} * 10))
}

# rest SECONDS: return after SECONDS. Unlike sleep, `rest` starts no process once the pipe is there:
# it waits for the input of a pipe that nobody writes to. Another process may make the pipe first.
rest() {
    [[ -p $BATS_RUN_TMPDIR/nobody ]] || mkfifo "$BATS_RUN_TMPDIR/nobody" 2>/dev/null || :
    read -r -t "$1" <>"$BATS_RUN_TMPDIR/nobody" || :
}

# rest_since UP_MS: return after 20 ms or, if that is more, twice the time since read_up_ms has set
# up_ms to UP_MS, but at most 100 ms. So a loop that calls a command and rest_since leaves the
# processors to others most of the time, even where each call starts slow processes.
rest_since() {
    local ms seconds
    read_up_ms
    ms=$((2 * (up_ms - $1)))
    ms=$((ms < 20 ? 20 : ms > 100 ? 100 : ms))
    printf -v seconds '0.%03d' "$ms"
    rest "$seconds"
}

# eventually SECONDS COMMAND...: run the command again and again until it succeeds, with pauses as
# rest_since makes them; fail after SECONDS. With a sanitized build SECONDS count four times. A
# limit of 5 s or more is only there to end a test that hangs, so `eventually` raises such a limit
# on a busy machine. A shorter limit is part of what is tested (a lease would end, for example), so
# `eventually` keeps it.
eventually() {
    local - seconds=$1 end from up_ms
    set +T # as in common_setup, for setup_file
    shift
    is_sanitized && seconds=$((seconds * 4))
    ((seconds < 5)) || busy_s seconds "$seconds"
    read_up_ms
    end=$((up_ms + seconds * 1000))
    # One call of the command may take long. So give up only after a call that began at `end` or
    # later, and failed.
    while read_up_ms && from=$up_ms && ! "$@"; do
        ((from < end)) || fail "not within $seconds s: $*" || return 1
        rest_since "$from"
    done
}

# lease SECONDS: print the TTL for a test in which rlock must not lose the lease: SECONDS, or three
# times as much in a sanitized build or if the load is above four for each processor. In such a
# build or under such a load, rlock and the server run late, a renewal can come too late, and rlock
# would end the command. A test that calls lease computes all its times from the TTL.
lease() {
    local busy
    busy_s busy 1
    if is_sanitized || ((busy > 4)); then echo $((3 * $1)); else echo "$1"; fi
}

# busy_s NAME SECONDS: set the variable NAME to SECONDS multiplied by the load for each processor,
# but by no less than 1 and no more than 6.
busy_s() {
    local load ms
    read -r load _ </proc/loadavg
    ms=$((1000 * $2))
    ms=$((ms * 10#${load/./} / 100 / PROCESSORS))
    ((ms > 6000 * $2)) && ms=$((6000 * $2))
    printf -v "$1" %d $((ms / 1000 > $2 ? ms / 1000 : $2))
}

# never SECONDS COMMAND...: run the command again and again for SECONDS; fail if it succeeds.
never() {
    local up_ms from end
    read_up_ms
    end=$((up_ms + $1 * 1000))
    shift
    while read_up_ms && from=$up_ms && ((from < end)); do
        ! "$@" || fail "was not to happen: $*" || return 1
        rest_since "$from"
    done
}

# public_names, make_targets: print the functions of librlock's headers, the makefiles' targets.
public_names() { sed -nE 's/^[a-z].*[ *](rlock_[a-z_]+)\(.*/\1/p' "$ROOT"/lib/rlock{,_admin}.h; }
make_targets() {
    sed -nE 's/^([a-z][a-z -]*):.*/\1/p' "$ROOT"/{Makefile,*/*.mk} | tr ' ' '\n'
}

file_has() { grep -Eq -- "$2" "$1" 2>/dev/null; } # FILE EXTENDED_REGEX

# ---- processes ----

# start NAME COMMAND...: run the command in the background, with its output in $DIR/NAME.out and
# $DIR/NAME.err, and set `pid`. The command doesn't inherit descriptor 3: bats waits until no
# process has it open. `set -m` gives the command a process group of its own; without `set -m`, bash
# would start it with INT and QUIT ignored.
#
# start empties both files before it forks. The fork would do so later, and until then a test would
# take the output of an earlier command of this NAME for that of the new one.
start() {
    local name=$1
    shift
    : >"$DIR/$name.out" 2>"$DIR/$name.err"
    set -m
    "$@" >"$DIR/$name.out" 2>"$DIR/$name.err" </dev/null 3>&- &
    pid=$!
    set +m
    echo "$pid" >"$DIR/pids/$name"
}

# finish NAME [SECONDS]: wait until the command ends; set status, output and stderr, as `run` does.
finish() {
    local name=$1 its_pid
    its_pid=$(<"$DIR/pids/$name")
    eventually "${2:-10}" dead "$its_pid" || return 1
    status=0
    wait "$its_pid" || status=$?
    output=$(<"$DIR/$name.out")
    stderr=$(<"$DIR/$name.err")
}

# ended STATUS NAME [SECONDS]: as finish; check that the command ends with STATUS.
ended() { finish "${@:2}" && assert_status "$1"; }

# has_state PID STATES: true if the state of the process, as in proc(5), is one of these letters.
# Like the functions below that call it often, it starts no process.
has_state() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    line=${line##*) }
    [[ $2 == *"${line%% *}"* ]]
}

alive() { has_state "$1" RSDTtIW; }
dead() { ! alive "$1"; }
stopped() { has_state "$1" T; }
# stop PID: stops a process, and waits until each of its threads has stopped: one that the kernel
# has interrupted in send(2) may still send.
stop() { kill -STOP "$1" && eventually 20 all_stopped "$1"; }
all_stopped() { ! grep -qvE '^[0-9]+ \(.*\) T ' /proc/"$1"/task/*/stat; }

# children PID, descendants PID: print the pids of these processes, one a line.
children() { tr -s ' ' '\n' 2>/dev/null <"/proc/$1/task/$1/children" || :; }
descendants() {
    local child
    for child in $(children "$1"); do
        echo "$child"
        descendants "$child"
    done
}

# is_marked PID: true if the process inherited RLOCK_TEST_MARK from this test.
is_marked() { grep -qsz "^RLOCK_TEST_MARK=$RLOCK_TEST_MARK$" "/proc/$1/environ"; }

# marked: print the pids of the processes that inherited RLOCK_TEST_MARK from this test and still
# run. Don't pipe its output to a program: marked would list that program as well.
marked() {
    local file its_pid
    for file in $(grep -lsz "^RLOCK_TEST_MARK=$RLOCK_TEST_MARK$" /proc/[0-9]*/environ); do
        its_pid=${file#/proc/}
        its_pid=${its_pid%/environ}
        dead "$its_pid" || echo "$its_pid"
    done
}

# named NAME...: print the pids of the processes of this test whose program has one of these names.
# A process just forked still has the name of its parent.
named() {
    local its_pid name
    for its_pid in $(marked); do
        { read -r name <"/proc/$its_pid/comm"; } 2>/dev/null || continue
        [[ " $* " != *" $name "* ]] || echo "$its_pid"
    done
}

# is_child PID: true if the process is a child of this shell.
is_child() {
    local pids=''
    { read -r pids <"/proc/$$/task/$$/children"; } 2>/dev/null || : # the line has no end
    [[ " $pids " == *" $1 "* ]]
}

# started: print the pids of the commands that `start` started and that still run. marked() misses
# a shell function that `start` runs in the background: the fork of the shell has no exec, so its
# /proc/PID/environ lacks RLOCK_TEST_MARK. started() ignores a pid that isn't a child of this shell:
# the command has ended, and the kernel gave its pid to another process.
started() {
    local file its_pid
    for file in "$DIR"/pids/*; do
        [[ -e $file ]] && read -r its_pid <"$file" && is_child "$its_pid" || continue
        dead "$its_pid" || echo "$its_pid"
    done
}

# end_all: kill all processes of the test, each by its pid, until none is left. On a busy machine it
# takes seconds to list them. Meanwhile, a process of the list may end, and the kernel may give its
# pid to a process of another test. So end_all checks each process again just before it kills it.
end_all() {
    local its_pid left round up_ms
    [[ -n ${RLOCK_TEST_MARK:-} ]] || return 0
    for round in {1..50}; do
        left=$(started && marked)
        [[ -n $left ]] || return 0
        for its_pid in $left; do
            if is_child "$its_pid"; then
                kill -KILL "$its_pid" 2>/dev/null || :
                wait "$its_pid" 2>/dev/null || : # else bash prints "Killed"
            elif is_marked "$its_pid"; then
                kill -KILL "$its_pid" 2>/dev/null || :
                read_up_ms
                rest_since "$up_ms"
            fi
        done
    done
    fail "still there after $round rounds of KILL: $(started) $(marked)"
}

# show_why_it_failed: if the test failed, prints the load of the machine, the number of its
# processes, what the last `run` wrote, and the last 20 lines that each `start` wrote to standard
# error.
show_why_it_failed() {
    local file
    [[ -z ${BATS_TEST_COMPLETED:-} && -z ${BATS_TEST_SKIPPED:-} ]] || return 0
    echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg) on $PROCESSORS processors"
    echo "processes: $(ps -e --no-headers | wc -l), of these $(ps -eo stat= | grep -c '^Z') zombies"
    [[ -z ${BATS_TIMED_OUT:-} ]] || grep -v bats-exec "$BATS_TEST_TMPDIR/hung" || :
    [[ -z ${output:-} ]] || { echo '--- output of the last run' && tail -n 20 <<<"$output"; }
    [[ -z ${stderr:-} ]] || printf '%s\n' '--- stderr of the last run' "$stderr"
    for file in "$DIR"/*.err; do
        [[ ! -s $file ]] || { echo "--- ${file##*/}" && tail -n 20 "$file"; }
    done
} >&2

# Fail the test if a sanitizer has reported an error in rlock: rlock's exit status may hide it.
show_sanitizer_reports() {
    local report found=0
    for report in "$DIR"/sanitizer.*; do
        [[ -e $report ]] || continue
        cat "$report" >&2
        rm -f "$report"
        found=1
    done
    return "$found"
}
