#!/usr/bin/env bats
# crowds: rlock ends all of a command's thousands of processes in time, and no other process.
#
# run: alone
# bats file_tags=long
#
# RLOCK_TEST_CROWD is the number of children. rlock is to cope with 5000. The default of 700 makes
# the tests quick.

load ../helpers/common
load ../helpers/pids

# Earlier versions of rlock missed processes beyond 512 in a list of children, below 256 levels, and
# behind zombies that had filled the list. These numbers exceed each of those limits.
children=${RLOCK_TEST_CROWD:-700}
zombies=$((children * 2 / 5))
depth=$((children * 3 / 7)) # 300 with the default
patience=$((20 + children / 100))

setup() {
    common_setup
    until_reaped
    redis_start
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}
teardown() {
    local file
    redis_continue # a failed test may have left the server stopped
    for file in "$DIR/ours" "$DIR/others"; do
        [[ ! -s $file ]] || "$TOOLS/crowd" end "$file"
    done
    common_teardown
}

is_ready_or_dead() { [[ -e $DIR/ours.ready ]] || dead "$pid"; }

# start_crowd OPTION...: starts rlock with a stack of 128 KiB. rlock has the crowd "others" as
# children from before its exec, and runs the crowd "ours" as its command. Sets pid, guard and total
# (how many processes of "ours" live).
start_crowd() {
    start crowd sh -c 'ulimit -s 128; exec "$@"' sh \
        "$TOOLS/crowd" "$DIR/others" "$zombies" "$children" 0 "$RLOCK" -k "$KEY" "$@" -- \
        "$TOOLS/crowd" "$DIR/ours" "$zombies" "$children" "$depth"
    eventually "$patience" is_ready_or_dead
    [[ -e $DIR/ours.ready ]] || fail "the crowd was not started: $(<"$DIR/crowd.err")" || return 1
    guard=$(guard_of "$pid")
    total=$((children + depth + 1))
    assert_eq "$("$TOOLS/crowd" states "$DIR/ours")" "$total S" 'the crowd'
}

crowd_has_ended() { [[ -z $("$TOOLS/crowd" states "$DIR/ours") ]]; }

# assert_crowd_ends_within_1_s SINCE_MS: the whole crowd ends at most 1 s after SINCE_MS; on a busy
# machine it has more time, see busy_ms().
assert_crowd_ends_within_1_s() {
    eventually 10 crowd_has_ended
    is_sanitized ||
        assert_between $(($(now_ms) - $1)) -60000 "$(busy_ms 1000)" 'ms until the crowd had ended'
}

assert_others_untouched() {
    assert_eq "$("$TOOLS/crowd" states "$DIR/others")" "$children S" 'the inherited crowd'
    assert_eq "$("$TOOLS/crowd" terms "$DIR/others")" "$children 0" 'TERMs of the inherited crowd'
}

assert_each_got_one_term() {
    assert_eq "$("$TOOLS/crowd" terms "$DIR/ours")" "$total 1" 'TERMs of the crowd of the command'
}

@test "crowds: rlock is killed: the whole crowd ends within 1 s" {
    start_crowd -t 10
    local killed_ms
    killed_ms=$(now_ms)
    kill -KILL "$pid"
    assert_crowd_ends_within_1_s "$killed_ms"
    dead "$guard"
    assert_others_untouched
    ended 137 crowd
}

@test "crowds: another program takes the lock: each process gets one TERM, then KILL, status 76" {
    start_crowd -t 6
    redis_cli set "$KEY" other PX 60000
    finish crowd 15
    crowd_has_ended
    assert_each_got_one_term
    assert_others_untouched
    assert_status 76
}

@test "crowds: the server stops: each process gets one TERM, and ends within the lease, status 76" {
    local end
    start_crowd -t 6
    redis_pause
    end=$(($(now_ms) + 6000)) # the lease ends earlier, as no renewal came after the pause
    eventually 15 crowd_has_ended
    # TERM wakes a thousand processes: on a busy machine they, and the guard, run late.
    is_sanitized || assert_between "$(now_ms)" 0 $((end + $(busy_ms 1000) - 1000)) \
        'the time at which the crowd had ended'
    redis_continue
    finish crowd
    assert_each_got_one_term
    assert_others_untouched
    assert_status 76
}

all_run_again() { [[ $("$TOOLS/crowd" states "$DIR/ours") == "$total S" ]]; }
all_are_frozen() { file_has "$cgroup/cgroup.events" '^frozen 1'; }

@test "crowds: --on-lost pause: rlock freezes all in time, resumes them, ends them at the loss" {
    local cgroup
    need_cgroup
    start_crowd -t $((children > 1000 ? 20 : 10)) --on-lost pause
    cgroup=$(cgroup_of "$(children "$(guard_of "$pid")" | head -n 1)")
    redis_pause
    eventually 25 all_are_frozen
    eventually 5 file_has "$DIR/crowd.err" paused
    redis_continue
    eventually 10 file_has "$DIR/crowd.err" resumed
    eventually 5 all_run_again
    redis_cli set "$KEY" other PX 60000
    finish crowd 20
    crowd_has_ended
    assert_each_got_one_term
    assert_others_untouched
    assert_status 76
}

@test "crowds: --bind-pid: the bound tree's processes get one TERM, then KILL; no others do" {
    start others "$TOOLS/crowd" "$DIR/others" 0 "$children" 0 sleep 60
    start ours sh -c 'ulimit -s 128; exec "$@"' sh \
        "$TOOLS/crowd" "$DIR/ours" "$zombies" "$children" "$depth"
    eventually "$patience" is_ready_or_dead
    [[ -e $DIR/ours.ready ]] || fail "the crowd was not started: $(<"$DIR/crowd.err")" || return 1
    eventually "$patience" test -e "$DIR/others.ready"
    total=$((children + depth + 1))
    rlock acquire -k "$KEY" -t 6 --bind-pid "$pid" --kill-after 2
    redis_cli set "$KEY" other PX 60000
    eventually 15 crowd_has_ended
    assert_each_got_one_term
    assert_others_untouched
}
