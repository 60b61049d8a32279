# shellcheck shell=bash
# common: what every bats file needs: where things are, processes that are always ended, waiting;
# and redis.bash and hold.bash, which nearly all need.
#
# setup() and teardown() are defined here; a file with more to do defines them again, and calls
# common_setup and common_teardown.
#
# common_setup gives each test
#   KEY     a key that no other test uses; make more as "$KEY:2"
#   DIR     its own empty folder
#   RLOCK   the program under test, as an absolute path; `rlock` is a function that runs it
#   TOOLS   the folder of fakeredis, cutline, show_signals, hold_clock and turn

bats_require_minimum_version 1.8.0

ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
RLOCK=${RLOCK:-$ROOT/rlock}
TOOLS=${RLOCK_TEST_TOOLS:-$ROOT/build/plain/tools}
PROCESSORS=$(nproc)

common_setup() {
    [[ -x $RLOCK && -x $TOOLS/hold_clock ]] || fail "not built: $RLOCK and $TOOLS (make check-cli)"
    DIR=$BATS_TEST_TMPDIR
    mkdir -p "$DIR/pids"
    KEY="test:${BATS_TEST_FILENAME##*/}:$BATS_TEST_NUMBER"
    # Every process of this test inherits the mark, and is found by it however it got away.
    export RLOCK_TEST_MARK="$KEY:$BASHPID"
    local name
    for name in "${!RLOCK_@}" REDIS_URL REDISCLI_AUTH; do
        [[ $name == RLOCK_TEST_* ]] || unset "$name"
    done
    # A sanitizer's report goes to the folder of the test that it is about: others run at the same
    # time. Of two log_path the last one counts.
    for name in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
        export "$name=${!name:-}:log_path=$DIR/sanitizer"
    done
    export HOME=$DIR XDG_RUNTIME_DIR=$DIR XDG_CONFIG_HOME=$DIR/.config
    export RLOCK_LOCAL_DIR=$DIR/rlock # the private server is the test's own
}

common_teardown() {
    show_why_it_failed
    end_all
    show_sanitizer_reports
}

rlock() { "$RLOCK" "$@" 3>&-; } # without what bats would wait for, see start()

setup() { common_setup; }
teardown() { common_teardown; }

# shellcheck source=tests/helpers/redis.bash
source "$ROOT/tests/helpers/redis.bash"
# shellcheck source=tests/helpers/hold.bash
source "$ROOT/tests/helpers/hold.bash"

# ---- results ----

# fail MESSAGE: the end of the test.
fail() {
    printf '%s\n' "$@" >&2
    return 1
}

# skip_or_fail REASON: what may be missing at home may not be missing in CI.
skip_or_fail() {
    if [[ ${RLOCK_TEST_STRICT:-} == 1 ]]; then
        fail "missing: $1"
    else
        skip "$1"
    fi
}

# need PROGRAM...
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || skip_or_fail "$program"
    done
}

# is_sanitized: bounds on time and memory are for the plain build only.
is_sanitized() { [[ ${RLOCK_TEST_FLAVOUR:-plain} == [at]san ]]; }

# assert_eq GOT WANTED [WHAT]
assert_eq() { [[ $1 == "$2" ]] || fail "${3:-value} is not as wanted" "   got: $1" "wanted: $2"; }

# assert_match TEXT EXTENDED_REGEX [WHAT]
assert_match() { [[ $1 =~ $2 ]] || fail "${3:-text} does not match" "   got: $1" "wanted: $2"; }

# refute_match TEXT EXTENDED_REGEX [WHAT]
refute_match() { ! [[ $1 =~ $2 ]] || fail "${3:-text} should not match" "   got: $1" "regex:  $2"; }

# assert_between NUMBER LOW HIGH [WHAT]
assert_between() { (($2 <= $1 && $1 <= $3)) || fail "${4:-number} is $1, not $2 to $3"; }

# assert_status WANTED: of the last `run` or `finish`, with what was said.
assert_status() {
    [[ $status == "$1" ]] ||
        fail "status is $status, wanted $1" "output: ${output:-}" "stderr: ${stderr:-}"
}

# ---- time ----

# now_ms: the clock that rlock uses, CLOCK_BOOTTIME.
now_ms() { "$TOOLS/hold_clock"; }

# read_up_ms: sets up_ms, the same clock to 10 ms, without a new process: for loops.
read_up_ms() {
    read -r up_ms _ </proc/uptime
    up_ms=$((10#${up_ms/./} * 10))
}

# busy_ms MS: what a machine that has nothing else to do may add to a time that is measured; one
# that has more to do than it has processors, as many times more.
busy_ms() {
    awk -v ms="$1" -v processors="$PROCESSORS" '
        { busy = $1 / processors; printf "%d\n", ms * (busy > 1 ? busy : 1) }' /proc/loadavg
}

# eventually SECONDS COMMAND...: tries each 20 ms until it succeeds. A sanitized build gets four
# times as long. 5 seconds and more are patience, which only bounds a failure: a busy machine gets
# more of it. Fewer than 5 are part of what is promised, say because a lease would end by itself.
eventually() {
    local seconds=$1 end from up_ms
    shift
    is_sanitized && seconds=$((seconds * 4))
    ((seconds < 5)) || seconds=$(busy_s "$seconds")
    read_up_ms
    end=$((up_ms + seconds * 1000))
    # a look may take long itself: it is one that began after the end that must not fail
    while read_up_ms && from=$up_ms && ! "$@"; do
        ((from < end)) || fail "not within $seconds s: $*" || return 1
        sleep 0.02
    done
}

# lease SECONDS: a TTL for a lease that rlock is to keep in a test. The TTL is three times as long
# in a sanitized build, and on a machine with more than four runnable processes for each processor:
# rlock and the server get their processor late there, and rlock ends a command rather than run it
# without a proven lease. All times of such a test are computed from the TTL.
lease() {
    if is_sanitized || (($(busy_ms 1) > 4)); then echo $((3 * $1)); else echo "$1"; fi
}

# busy_s SECONDS: the same for patience; at most six times as long.
busy_s() {
    local load ms
    read -r load _ </proc/loadavg
    ms=$((1000 * $1))
    ms=$((ms * 10#${load/./} / 100 / PROCESSORS))
    ((ms > 6000 * $1)) && ms=$((6000 * $1))
    echo $((ms / 1000 > $1 ? ms / 1000 : $1))
}

# never SECONDS COMMAND...: the same, but that it succeeds is the failure.
never() {
    local up_ms end
    read_up_ms
    end=$((up_ms + $1 * 1000))
    shift
    while read_up_ms && ((up_ms < end)); do
        ! "$@" || fail "was not to happen: $*" || return 1
        sleep 0.02
    done
}

# run_ms COMMAND...: `run`; sets took as well.
run_ms() {
    local before
    before=$(now_ms)
    run --separate-stderr "$@"
    took=$(($(now_ms) - before))
}

file_has() { grep -Eq -- "$2" "$1" 2>/dev/null; } # FILE EXTENDED_REGEX

# ---- processes ----

# start NAME COMMAND...: in the background; standard output and error go to $DIR/NAME.out and
# NAME.err. Sets `pid`. Bats waits for whoever has its descriptor 3, so that is closed. With -m
# it gets its own process group, and INT and QUIT are not ignored as they are without.
start() {
    local name=$1
    shift
    set -m
    "$@" >"$DIR/$name.out" 2>"$DIR/$name.err" </dev/null 3>&- &
    pid=$!
    set +m
    echo "$pid" >"$DIR/pids/$name"
}

# finish NAME [SECONDS]: waits until it ended; sets status, output and stderr as `run` does.
finish() {
    local name=$1 its_pid
    its_pid=$(<"$DIR/pids/$name")
    eventually "${2:-10}" dead "$its_pid" || return 1
    status=0
    wait "$its_pid" || status=$?
    output=$(<"$DIR/$name.out")
    stderr=$(<"$DIR/$name.err")
}

# state PID: R, S, T, Z and so on as in proc(5); nothing if there is no such process.
state() {
    local line
    read -r line 2>/dev/null <"/proc/$1/stat" || return 0
    line=${line##*) }
    echo "${line%% *}"
}

alive() { [[ $(state "$1") == [!ZX] ]]; }
dead() { ! alive "$1"; }
stopped() { [[ $(state "$1") == T ]]; }

# children PID, descendants PID: pids, one a line.
children() { tr -s ' ' '\n' 2>/dev/null <"/proc/$1/task/$1/children" || :; }
descendants() {
    local child
    for child in $(children "$1"); do
        echo "$child"
        descendants "$child"
    done
}

# marked: pids of the live programs that this test started, directly or not, however they got
# away. Not for a pipe: what reads from it has the mark too.
marked() {
    local file its_pid
    for file in $(grep -lsz "^RLOCK_TEST_MARK=$RLOCK_TEST_MARK$" /proc/[0-9]*/environ); do
        its_pid=${file#/proc/}
        its_pid=${its_pid%/environ}
        dead "$its_pid" || echo "$its_pid"
    done
}

# started: pids of what `start` started and still lives; a function runs in a fork of this shell,
# and so without the mark. That it is our child shows that the number is not somebody else's now.
started() {
    local its_pid
    for its_pid in $(cat "$DIR"/pids/* 2>/dev/null); do
        [[ " $(children "$$") " == *[[:space:]]"$its_pid"[[:space:]]* ]] || continue
        dead "$its_pid" || echo "$its_pid"
    done
}

# end_all: each by its own pid, until none is left; by KILL, as nothing may hang here.
end_all() {
    local its_pid round
    [[ -n ${RLOCK_TEST_MARK:-} ]] || return 0
    for round in {1..50}; do
        [[ -n "$(started)$(marked)" ]] || return 0
        for its_pid in $(started) $(marked); do
            kill -KILL "$its_pid" 2>/dev/null || :
            wait "$its_pid" 2>/dev/null || : # else bash reports its death
        done
        sleep 0.02
    done
    fail "still there after $round rounds of KILL: $(started) $(marked)"
}

# show_why_it_failed: after a failed test, prints how busy the machine is, and the last lines that
# each program which `run` or `start` started has written to standard error.
show_why_it_failed() {
    local file
    [[ -z ${BATS_TEST_COMPLETED:-} && -z ${BATS_TEST_SKIPPED:-} ]] || return 0
    echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg) on $PROCESSORS processors"
    [[ -z ${stderr:-} ]] || printf '%s\n' '--- stderr of the last run' "$stderr"
    for file in "$DIR"/*.err; do
        [[ ! -s $file ]] || { echo "--- ${file##*/}" && tail -n 20 "$file"; }
    done
} >&2

# A report of any process of rlock's is a failure, also if nobody looks at its status.
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
