#!/usr/bin/env bats
# cgroup: with --cgroup nothing that the command started gets away, whoever it runs as.
#
# run: alone

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }

# A cgroup that is delegated to somebody who isn't root, and what that user needs.
setup() {
    common_setup
    [[ $(id -u) == 0 ]] || skip 'only root can delegate a cgroup'
    need setpriv
    CGROUP=$(findmnt -nt cgroup2 -o TARGET | head -n 1)
    [[ -n $CGROUP ]] || skip 'cgroup v2 is not mounted'
    CGROUP=$CGROUP/rlock-test-$BASHPID
    mkdir "$CGROUP" || skip 'no cgroup can be made'
    [[ -e $CGROUP/cgroup.kill ]] || skip 'a kernel before 5.14'
    chown 65534 "$CGROUP" "$CGROUP/cgroup.procs"
    PLACE=$(mktemp -d /tmp/rlock-cgroup.XXXXXX)
    cp "$RLOCK" "$TOOLS/untouchable" "$TOOLS/runaway" "$PLACE"
    chown 65534 "$PLACE" "$PLACE"/r*
    chmod 755 "$PLACE"
    chmod 4755 "$PLACE/untouchable"
    export HOME=$PLACE RLOCK_URL=redis://127.0.0.1:$REDIS_PORT CGROUP
}
teardown() {
    common_teardown
    [[ -z ${PLACE:-} ]] || rm -rf "$PLACE"
    [[ -z ${CGROUP:-} ]] || find "$CGROUP" -depth -type d -exec rmdir {} + || :
}

# start_there NAME COMMAND...: start, as that user, in that cgroup.
start_there() {
    local name=$1
    shift
    # shellcheck disable=SC2016
    start "$name" sh -c 'echo $$ >"$CGROUP/cgroup.procs" &&
        exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' - "$@"
}

# start_command OPTION...: one that took other rights, so that its user can't signal it.
start_command() {
    start_there command "$PLACE/rlock" --cgroup -k "$KEY" "$@" -- "$PLACE/untouchable" "$PLACE/end"
    eventually 10 file_has "$DIR/command.out" running
    guard=$(guard_of "$pid")
    untouchable=$(marked_as untouchable)
}
marked_as() {
    local each
    for each in $(marked); do
        [[ $(<"/proc/$each/comm") != "$1" ]] || echo "$each"
    done
}
holds_a_cgroup() { [[ -n $(find "$CGROUP" -mindepth 1 -type d) ]]; }
holds_no_cgroup() { [[ -z $(find "$CGROUP" -mindepth 1 -type d) ]]; }

@test "a lock that another has: who can't be signalled is killed, with nothing said of that" {
    start_command -t 2
    redis_cli set "$KEY" other XX
    eventually 5 dead "$untouchable"
    finish command
    assert_status 76
    refute_match "$stderr" "can't be ended"
    holds_no_cgroup
}

@test "the guard is killed: who can't be signalled is killed, and the lock given back" {
    start_command -t 5
    kill -KILL "$guard"
    eventually 2 dead "$untouchable"
    finish command
    assert_status 71
    gone "$KEY"
    holds_no_cgroup
}

@test "rlock is killed: who can't be signalled is killed, and the guard removes the cgroup" {
    start_command -t 5
    kill -KILL "$pid"
    eventually 2 dead "$untouchable"
    eventually 5 holds_no_cgroup
    finish command
    assert_status 137
}

@test "the command has its own status, and its cgroup is gone behind it" {
    start_there command "$PLACE/rlock" --cgroup -k "$KEY" -- sh -c 'cat /proc/self/cgroup; exit 7'
    finish command
    assert_status 7
    assert_match "$output" "0::.*/rlock-[0-9]+-[0-9]+-0"
    holds_no_cgroup
}

@test "a daemon that the command leaves behind keeps its cgroup, until the next run" {
    start_there first "$PLACE/rlock" --cgroup -k "$KEY" -- sh -c 'setsid sleep 60 & echo $!'
    finish first
    assert_status 0
    alive "$output"
    [[ -n $(find "$CGROUP" -mindepth 1 -type d) ]]
    kill -KILL "$output"
    eventually 5 dead "$output"
    start_there next "$PLACE/rlock" --cgroup -k "$KEY" -- true
    finish next
    assert_status 0
    holds_no_cgroup
}

# The pid of an rlock that has ended is given again, and what that one left behind is a stranger's.
@test "a cgroup of the same name has members already: they are not killed with the command" {
    local each strangers
    # shellcheck disable=SC2016
    start_there command bash -c 'for each in "rlock-$(stat -Lc %i /proc/self/ns/pid)-$$-"{0,1}; do
            mkdir "$CGROUP/$each"
            (echo 0 >"$CGROUP/$each/cgroup.procs" && exec setsid sleep 60) &
            echo "stranger $!"
            until grep -qs "$each\$" "/proc/$!/cgroup"; do sleep 0.02; done
        done
        exec "$@"' - "$PLACE/rlock" --cgroup -k "$KEY" -t 2 -- \
        sh -c 'trap "" TERM; echo running; sleep 60' # so that KILL is what ends it
    eventually 10 file_has "$DIR/command.out" running
    redis_cli set "$KEY" other XX
    finish command
    assert_status 76
    mapfile -t strangers < <(sed -n 's/^stranger //p' "$DIR/command.out")
    assert_eq "${#strangers[@]}" 2
    for each in "${strangers[@]}"; do alive "$each"; done
}

# 1. In a pid namespace of its own, a first rlock has made its cgroup, and waits for the lock. The
#    cgroup is empty, as the command has not started. Outside of that namespace no process has the
#    first rlock's pid.
# 2. A second rlock starts below the same cgroup and removes the directories of dead ones.
@test "an rlock of another pid namespace waits with an empty cgroup: the next rlock keeps it" {
    need unshare
    local free=30000
    while [[ -e /proc/$free ]]; do ((free++)); done
    redis_cli set "$KEY" other
    # shellcheck disable=SC2016
    start inner sh -c 'echo $$ >"$CGROUP/cgroup.procs" && exec "$@"' - \
        unshare --pid --fork --mount-proc sh -c '
            echo "$1" >/proc/sys/kernel/ns_last_pid
            shift
            setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
            exit $?' - $((free - 1)) "$PLACE/rlock" --cgroup -k "$KEY" -- echo ran
    eventually 10 holds_a_cgroup
    start_there next "$PLACE/rlock" --cgroup -k "$KEY:next" -- true
    finish next
    assert_status 0
    redis_cli del "$KEY"
    finish inner
    assert_status 0
    assert_eq "$output" ran
    holds_no_cgroup
}

@test "a cgroup that isn't the user's to divide: 71, and the lock is not asked for" {
    chown 0 "$CGROUP" "$CGROUP/cgroup.procs"
    start_there command "$PLACE/rlock" --cgroup -k "$KEY" -- touch "$PLACE/ran"
    finish command
    assert_status 71
    assert_match "$stderr" "no control group can be made in $CGROUP, which isn't delegated"
    [[ ! -e $PLACE/ran ]]
}

last_ms() {
    local last
    last=$("$TOOLS/runaway" last "$PLACE/shown")
    echo "${last% *}"
}
ran() {
    [[ -s $PLACE/shown ]] && (($("$TOOLS/runaway" last "$PLACE/shown" | cut -d ' ' -f 2) > 100))
}

# Each would run for 9 s. When the first KILL is sent depends on when the guard gets a processor:
# four programs beside the 64 do nothing but run.
@test "64 runaways of a user, on a busy machine: the lock is lost, and none gets away" {
    local kind each since
    for each in {1..4}; do
        start "busy$each" sh -c 'while :; do :; done'
    done
    for kind in setsid-fork clone; do
        for each in $(seq "${RLOCK_TEST_RUNS:-1}"); do
            rm -f "$PLACE/shown"
            start_there away "$PLACE/rlock" --cgroup -k "$KEY" -t 5 -- \
                "$PLACE/runaway" "$kind" 64 9 "$PLACE/shown"
            eventually 10 ran
            since=$(now_ms)
            redis_cli set "$KEY" other PX 9000
            finish away 20
            echo "# $kind $(($(last_ms) - since)) ms" >&3
            is_sanitized || assert_between $(($(last_ms) - since)) -9000 8000 "ms of $kind" ||
                return 1
            redis_cli del "$KEY"
        done
    done
}
