#!/usr/bin/env bats
# cgroup: with --cgroup rlock ends each process of the command, also those of another user.

load ../helpers/common
load ../helpers/server

# Makes $CGROUP, a cgroup that is delegated to the user 65534 (nobody), and $BIN, a folder with the
# programs that this user runs.
setup() {
    common_setup
    [[ $(id -u) == 0 ]] || skip 'only root can delegate a cgroup'
    need setpriv
    CGROUP=$(findmnt -nt cgroup2 -o TARGET | head -n 1)
    [[ -n $CGROUP ]] || skip 'cgroup v2 is not mounted'
    CGROUP=$CGROUP/rlock-test-$BASHPID
    mkdir "$CGROUP" || skip 'no cgroup can be made'
    [[ -e $CGROUP/cgroup.kill ]] || skip 'kernels before 5.14 have no cgroup.kill'
    chown 65534 "$CGROUP" "$CGROUP/cgroup.procs"
    BIN=$(mktemp -d /tmp/rlock-cgroup.XXXXXX)
    cp "$RLOCK" "$TOOLS/untouchable" "$BIN"
    chown 65534 "$BIN" "$BIN/rlock"
    chmod 755 "$BIN"
    chmod 4755 "$BIN/untouchable"
    export HOME=$BIN RLOCK_URL=redis://127.0.0.1:$REDIS_PORT CGROUP
}
teardown() {
    common_teardown
    [[ -z ${BIN:-} ]] || rm -rf "$BIN"
    [[ -z ${CGROUP:-} ]] || find "$CGROUP" -depth -type d -exec rmdir {} + || :
}

# start_as_nobody NAME COMMAND...: runs the command in the background, as `start` does, but as the
# user 65534 (nobody) in $CGROUP.
start_as_nobody() {
    local name=$1
    shift
    # shellcheck disable=SC2016
    start "$name" sh -c 'echo $$ >"$CGROUP/cgroup.procs" &&
        exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' - "$@"
}

# start_untouchable OPTION...: starts rlock --cgroup as the user 65534. The command has the
# set-user-ID bit and becomes root, so rlock may not signal it. Sets pid, guard and untouchable, the
# pid of the command.
start_untouchable() {
    start_as_nobody command "$BIN/rlock" --cgroup -k "$KEY" "$@" -- "$BIN/untouchable" "$BIN/end"
    eventually 10 file_has "$DIR/command.out" running
    guard=$(guard_of "$pid")
    untouchable=$(named untouchable)
}
has_command_cgroup() { [[ -n $(find "$CGROUP" -mindepth 1 -type d) ]]; }
has_no_command_cgroup() { [[ -z $(find "$CGROUP" -mindepth 1 -type d) ]]; }

@test "the lock is lost: a command that rlock may not signal is killed, without a message" {
    start_untouchable -t 2
    redis_cli set "$KEY" other XX
    eventually 5 dead "$untouchable"
    ended 76 command
    refute_match "$stderr" "can't be ended"
    has_no_command_cgroup
}

@test "the guard is killed: a command that rlock may not signal is killed, the lock is released" {
    start_untouchable -t 5
    kill -KILL "$guard"
    eventually 2 dead "$untouchable"
    ended 71 command
    gone "$KEY"
    has_no_command_cgroup
}

@test "rlock is killed: the guard ends a command of root by cgroup.kill, and removes the cgroup" {
    start_untouchable -t 5
    kill -KILL "$pid"
    eventually 2 dead "$untouchable"
    eventually 5 has_no_command_cgroup
    ended 137 command
}

@test "the command exits: rlock passes on its status, and removes its cgroup" {
    start_as_nobody command "$BIN/rlock" --cgroup -k "$KEY" -- sh -c 'cat /proc/self/cgroup; exit 7'
    ended 7 command
    assert_match "$output" "0::.*/rlock-[0-9]+-[0-9]+-0"
    has_no_command_cgroup
}

@test "the command leaves a daemon: it runs on in its cgroup; a later rlock takes its place" {
    start_as_nobody first "$BIN/rlock" --cgroup -k "$KEY" -- sh -c 'setsid sleep 60 & echo $!'
    ended 0 first
    alive "$output"
    has_command_cgroup
    kill -KILL "$output"
    eventually 5 dead "$output"
    echo 1 >"$CGROUP/cgroup.max.descendants"
    start_as_nobody next "$BIN/rlock" --cgroup -k "$KEY" -- true
    ended 0 next
    has_no_command_cgroup
}

# rlock names its cgroup after its own pid. If an earlier rlock had the same pid, a daemon of its
# command may still run in a cgroup of that name. The test makes two such cgroups before rlock
# starts.
@test "cgroups of the same name have members already: rlock does not kill these members" {
    local each strangers
    # shellcheck disable=SC2016
    start_as_nobody command bash -c '
        for each in "rlock-$(stat -Lc %i /proc/self/ns/pid)-$$-"{0,1}; do
            mkdir "$CGROUP/$each"
            (echo 0 >"$CGROUP/$each/cgroup.procs" && exec setsid sleep 60) &
            echo "stranger $!"
            until grep -qs "$each\$" "/proc/$!/cgroup"; do sleep 0.02; done
        done
        exec "$@"' - "$BIN/rlock" --cgroup -k "$KEY" -t 2 -- \
        sh -c 'trap "" TERM; echo running; sleep 60' # ends only if rlock kills the cgroup
    eventually 10 file_has "$DIR/command.out" running
    redis_cli set "$KEY" other XX
    ended 76 command
    mapfile -t strangers < <(sed -n 's/^stranger //p' "$DIR/command.out")
    assert_eq "${#strangers[@]}" 2
    for each in "${strangers[@]}"; do alive "$each"; done
}

# 1. A first rlock, in its own pid namespace, has made its cgroup, and waits for the lock. The
#    cgroup is empty, as the command has not started. Outside of that namespace no process has the
#    first rlock's pid.
# 2. A second rlock starts in the same parent cgroup, and removes the empty cgroups of dead rlocks.
#    The first rlock is not dead, so the second must keep its cgroup.
@test "an rlock in another pid namespace waits with an empty cgroup: the next rlock keeps it" {
    need unshare
    local free=30000
    while [[ -e /proc/$free ]]; do ((free++)); done
    redis_cli set "$KEY" other
    # shellcheck disable=SC2016
    start inner sh -c 'echo $$ >"$CGROUP/cgroup.procs" && exec "$@"' - \
        "${AS_PROCESS_1[@]}" sh -c '
            echo "$1" >/proc/sys/kernel/ns_last_pid
            shift
            setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
            exit $?' - $((free - 1)) "$BIN/rlock" --cgroup -k "$KEY" -- echo ran
    eventually 10 has_command_cgroup
    start_as_nobody next "$BIN/rlock" --cgroup -k "$KEY:next" -- true
    ended 0 next
    redis_cli del "$KEY"
    ended 0 inner
    assert_eq "$output" ran
    has_no_command_cgroup
}

@test "the cgroup is not delegated to the user: status 71, and no lock is asked for" {
    chown 0 "$CGROUP" "$CGROUP/cgroup.procs"
    local option
    redis_cli set "$KEY" other # so an rlock that asks for the lock ends with 75
    for option in --cgroup '--on-lost pause'; do
        # shellcheck disable=SC2086
        start_as_nobody command "$BIN/rlock" $option -n -k "$KEY" -- true
        ended 71 command
        assert_match "$stderr" \
            "$option: no control group can be made in $CGROUP, which isn't delegated.*Delegate=yes"
        # shellcheck disable=SC2086
        start_as_nobody explained "$BIN/rlock" $option --explain -u local: -k "$KEY" -- true
        ended 71 explained
    done
}
