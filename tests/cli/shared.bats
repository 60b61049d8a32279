#!/usr/bin/env bats
# shared: many readers hold a lock together, or one writer holds it alone.

load ../helpers/common
load ../helpers/server
load ../helpers/kinds

setup() { kinds_setup; }

holders() { redis_cli zcard "{$KEY}:rlock:holders"; }
holds() { [[ $(holders) == "$1" ]]; }

# most_before_a_writer: counts for each writer the grants to others between the writer's start and
# its grant, and prints the greatest count. The output files have a line for each grant: the mode,
# the time of the start, and the fence, which is the time of the grant.
most_before_a_writer() {
    cat "$DIR"/*.out | awk '{ at[NR] = $3 } $1 == "x" { from[NR] = $2 }
        END { for (w in from) { n = 0
                  for (i in at) n += at[i] > from[w] && at[i] < at[w]
                  if (n > most) most = n }
              print most + 0 }'
}

# bats test_tags=long
@test "20 readers and 5 writers: a writer holds the lock alone, readers together; none starves" {
    local each turns most before overlaps
    turns=$(few 100 10)
    # shellcheck disable=SC2016
    loop_file <<'END'
export TURN_NOTE="$2 ${EPOCHREALTIME/./}"
"$RLOCK" "-$2" -k "$KEY" -- "$TOOLS/guarded" 1 "$2:$DIR/guarded" || exit
END
    for each in {1..20}; do start "s$each" bash "$DIR/loop" "$turns" s; done
    for each in {1..5}; do start "x$each" bash "$DIR/loop" "$turns" x; done
    for each in s{1..20} x{1..5}; do
        ended 0 "$each" 150
    done
    read -r each most overlaps <<<"$("$TOOLS/guarded" show "$DIR/guarded")"
    assert_eq "$overlaps overlaps, $each turns" "0 overlaps, $((5 * turns)) turns" \
        'turns of writers, and overlaps with others'
    assert_between "$most" 2 20 'readers at a time'
    before=$(most_before_a_writer)
    echo "# readers at a time: $most; grants before a writer's: $before" >&3
    # 24 others can be ahead in the queue, and some more come before the writer has joined it
    is_sanitized || assert_between "$before" 1 75 "grants before a writer's"
    assert_only_fences
}

@test "readers that come after a waiting writer wait, too, and then hold the lock together" {
    local each
    hold first -k "$KEY" -s
    run -0 rlock -n -k "$KEY" -s -- true
    run -75 rlock -q -n -k "$KEY" -- true
    start writer "$RLOCK" -k "$KEY" -- sh -c 'echo writer >>"$DIR/served"; sleep 0.1'
    eventually 5 in_line 1
    for each in 1 2 3; do
        # shellcheck disable=SC2016
        start "r$each" "$RLOCK" -k "$KEY" -s -- \
            sh -c 'echo reader >>"$DIR/served"; read -r _ <"$DIR/end"'
        eventually 5 in_line $((each + 1))
    done
    run -75 rlock -q -n -k "$KEY" -s -- true
    never 1 test -e "$DIR/served" # 1 s is longer than the lock is kept for the first waiter
    mkfifo "$DIR/end"
    let_go first
    finish writer
    eventually 5 holds 3
    run -75 rlock -q -n -k "$KEY" -- true
    exec {end}<>"$DIR/end"
    printf '\n\n\n' >&"$end"
    for each in 1 2 3; do
        ended 0 "r$each"
    done
    exec {end}>&-
    assert_eq "$(xargs <"$DIR/served")" 'writer reader reader reader'
    assert_only_fences
}

@test "each reader renews its own lease, and TERM releases it at once" {
    hold one -k "$KEY" -s -t 6 --report "$DIR/report"
    hold two -k "$KEY" -s -t 6
    hold three -k "$KEY" -s -t 60
    never 7 redis_cli_says '' zscore "{$KEY}:rlock:holders" "$(env_of one RLOCK_TOKEN)"
    kill -TERM "$(<"$DIR/pids/two")"
    ended 143 two
    holds 2
    let_go three
    assert_between "$(ttl_ms "$KEY")" 1 6000 # the key expires with the lease that is left
    let_pass one
    assert_match "$(<"$DIR/report")" '"verdict":"granted".*"renewals":([2-9]|[1-9][0-9])'
    assert_only_fences
}
redis_cli_says() { [[ $(redis_cli "${@:2}") == "$1" ]]; }

@test "when the key is overwritten or deleted, all readers' commands are ended" {
    local each
    for each in one two three; do hold "$each" -k "$KEY" -s -t 1; done
    redis_cli set "$KEY" foreign px 60000 >/dev/null
    for each in one two three; do
        ended 76 "$each"
    done
    assert_eq "$(value "$KEY")" foreign
    redis_cli del "$KEY" >/dev/null
    eventually 5 assert_only_fences # helper keys expire with the readers' leases
}
