#!/usr/bin/env bats
# crowds: however many processes there are, and however deep, all that should end do, and no others.
#
# run: alone
#
# RLOCK_TEST_CROWD=5000 for the crowds that were promised; the default is for a quick look.

load ../helpers/common

# Each by itself was too many once: 512 in a list, 256 levels, zombies that filled the list first.
children=${RLOCK_TEST_CROWD:-700}
zombies=$((children * 2 / 5))
depth=$((children * 3 / 7)) # 300 of 700
patience=$((20 + children / 100))

setup() {
    common_setup
    redis_start
    export RLOCK_URL=unix://$REDIS_SOCKET DIR
}
teardown() {
    local file
    redis_continue # whatever went wrong while it was stopped
    for file in "$DIR/ours" "$DIR/others"; do
        [[ ! -s $file ]] || "$TOOLS/crowd" end "$file"
    done
    common_teardown
}

ready_or_dead() { [[ -e $DIR/ours.ready ]] || dead "$pid"; }

# start_crowd OPTION...: rlock, which inherits a crowd, with a crowd as its command and with a small
# stack; sets pid, guard and total.
start_crowd() {
    start crowd sh -c 'ulimit -s 128; exec "$@"' sh \
        "$TOOLS/crowd" "$DIR/others" "$zombies" "$children" 0 "$RLOCK" -k "$KEY" "$@" -- \
        "$TOOLS/crowd" "$DIR/ours" "$zombies" "$children" "$depth"
    eventually "$patience" ready_or_dead
    [[ -e $DIR/ours.ready ]] || fail "the crowd was not started: $(<"$DIR/crowd.err")" || return 1
    guard=$(guard_of "$pid")
    total=$((children + depth + 1))
    assert_eq "$("$TOOLS/crowd" states "$DIR/ours")" "$total S" 'the crowd'
}

all_ended() { [[ -z $("$TOOLS/crowd" states "$DIR/ours") ]]; }

# ended_within_1_s SINCE_MS
ended_within_1_s() {
    eventually 10 all_ended
    is_sanitized || assert_between $(($(now_ms) - $1)) -60000 "$(busy_ms 1000)" 'ms until the end'
}

others_untouched() {
    assert_eq "$("$TOOLS/crowd" states "$DIR/others")" "$children S" 'those that were there before'
    assert_eq "$("$TOOLS/crowd" terms "$DIR/others")" "$children 0" 'TERMs that those got'
}

each_got_one_term() { assert_eq "$("$TOOLS/crowd" terms "$DIR/ours")" "$total 1" 'TERMs'; }

@test "crowds: KILL of the guard" {
    start_crowd -t 10
    local since
    since=$(now_ms)
    kill -KILL "$guard"
    ended_within_1_s "$since"
    others_untouched
    finish crowd
    assert_status 71
}

@test "crowds: KILL of the program" {
    start_crowd -t 10
    local since
    since=$(now_ms)
    kill -KILL "$pid"
    ended_within_1_s "$since"
    dead "$guard"
    others_untouched
    finish crowd
    assert_status 137
}

@test "crowds: the lock is another's: TERM to each once, then KILL, 76" {
    start_crowd -t 6
    redis_cli set "$KEY" other PX 60000
    finish crowd 15
    all_ended
    each_got_one_term
    others_untouched
    assert_status 76
}

@test "crowds: no renewal is confirmed: TERM to each once, all has ended before the lease, 76" {
    local end
    start_crowd -t 6
    redis_pause
    end=$(($(now_ms) + 6000)) # a lease that began before has ended by then
    eventually 15 all_ended
    is_sanitized || assert_between "$(now_ms)" 0 "$end" 'ms after the lease'
    redis_continue
    finish crowd
    each_got_one_term
    others_untouched
    assert_status 76
}

@test "crowds: --max-hold: TERM to each once, then KILL, 124" {
    start_crowd -t 6 --max-hold "$((patience / 2))" --kill-after 1
    finish crowd $((patience + 10))
    all_ended
    each_got_one_term
    others_untouched
    assert_status 124
}

goes_on() { [[ $("$TOOLS/crowd" states "$DIR/ours") == "$total S" ]]; }
is_frozen() { [[ $("$TOOLS/crowd" states "$DIR/ours") == "$total t" ]]; }

@test "crowds: --on-lost pause: all is frozen in time, goes on, and ends with another's lock" {
    # to freeze some thousand takes a second: they are given two, as with the default
    start_crowd -t $((children > 1000 ? 20 : 10)) --on-lost pause
    redis_pause
    eventually 25 is_frozen
    eventually 5 file_has "$DIR/crowd.err" paused
    redis_continue
    eventually 10 file_has "$DIR/crowd.err" resumed
    eventually 5 goes_on
    redis_cli set "$KEY" other PX 60000
    finish crowd 20
    all_ended
    each_got_one_term
    others_untouched
    assert_status 76
}

@test "crowds: --bind-pid: TERM to each once, then KILL, whoever else has a child there" {
    start others "$TOOLS/crowd" "$DIR/others" 0 "$children" 0 sleep 60
    start ours sh -c 'ulimit -s 128; exec "$@"' sh \
        "$TOOLS/crowd" "$DIR/ours" "$zombies" "$children" "$depth"
    eventually "$patience" ready_or_dead
    [[ -e $DIR/ours.ready ]] || fail "the crowd was not started: $(<"$DIR/crowd.err")" || return 1
    eventually "$patience" test -e "$DIR/others.ready"
    total=$((children + depth + 1))
    rlock acquire -k "$KEY" -t 6 --bind-pid "$pid" --kill-after 2
    redis_cli set "$KEY" other PX 60000
    eventually 15 all_ended
    each_got_one_term
    others_untouched
}
