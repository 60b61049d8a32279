#!/usr/bin/env bats
# shared: many readers hold a lock together, or one writer holds it alone.

load ../helpers/common
load ../helpers/server

holders() { redis_cli zcard "{$KEY}:rlock:holders"; }
holds() { [[ $(holders) == "$1" ]]; }

@test "readers that come after a waiting writer wait, too, and then hold the lock together" {
    local each
    hold first -k "$KEY" -s
    run -0 rlock -n -k "$KEY" -s -- true
    run -75 rlock -q -n -k "$KEY" -- true
    queued writer -- sh -c 'echo writer >>"$DIR/served"; sleep 0.1'
    for each in 1 2 3; do
        # shellcheck disable=SC2016
        queued "r$each" -s -- sh -c 'echo reader >>"$DIR/served"; read -r _ <"$DIR/end"'
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
