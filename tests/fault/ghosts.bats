#!/usr/bin/env bats
# ghosts: a server executes a request that rlock has given up, or a reply is lost after the server
# has executed its request. Neither leaves a lock that no rlock owns.
#
# tests/sim loses and delays messages in all orders, and tests/unit/scripts.txt has what the scripts
# do with requests that are late. Here kernels and real servers take part.

load ../helpers/common
load ../helpers/fake

setup_file() {
    redis_start
    redis_load_scripts # so that the first request is executed, and not answered by NOSCRIPT
}

setup() {
    common_setup
    redis_cli config resetstat >/dev/null
    export CLI
    CLI=$(type -P redis-cli valkey-cli | head -n 1)
    URL=redis://127.0.0.1:$REDIS_PORT
}
teardown() {
    redis_continue # a failed test may have left the server stopped
    common_teardown
}

any_lock() { [[ -n $(redis_cli --scan --pattern "$KEY*") ]]; }

# run_through_line OPTION... -- COMMAND...: starts rlock as `holder`, connected through a proxy.
run_through_line() { start holder "$RLOCK" -u "redis://127.0.0.1:$LINE_PORT" -k "$KEY" "$@"; }

# ---- requests that rlock gave up and the server executes later ----

# rlock gives up in four ways: with -n, with -w, by default after --connect-timeout, and on TERM.
# The kernel keeps rlock's requests, and the server reads them when it runs again.
@test "requests that a stopped server executes after rlock gave them up: no lock is left" {
    local way options names=''
    redis_pause
    while read -r way options; do
        # shellcheck disable=SC2086
        start "$way" "$RLOCK" -k "$KEY:$way" -t 30 --connect-timeout 1500ms $options -- \
            touch "$DIR/ran"
        names+=" $way"
    done <<END
once -n -u $URL
wait -w 2 -u unix://$REDIS_SOCKET
default -u $URL
ended --connect-timeout 60s -u unix://$REDIS_SOCKET
END
    eventually 10 blocks_signals ended
    kill -TERM "$(<"$DIR/pids/ended")"
    for way in $names; do
        finish "$way"
        if [[ $way == ended ]]; then assert_status 143; else assert_status 69; fi
    done
    redis_continue
    redis_cli ping >/dev/null
    never 1 any_lock
    [[ ! -e $DIR/ran ]]
}

# blocks_signals NAME: true if this rlock has blocked signals. An rlock that has done so isn't
# killed by TERM, but undoes its request and ends.
blocks_signals() { grep -q '^SigBlk:.*[1-9a-f]' "/proc/$(<"$DIR/pids/$1")/status"; }

# ---- lost replies to requests that the server executed ----

# A command that adds a line to a file for each run, and writes the lock's value to another file.
counted='echo "$RLOCK_TOKEN" >>"$0"; "$CLI" -s "$REDIS_SOCKET" get "$RLOCK_KEY" >"$0.value"; exit 7'

assert_ran_once() {
    assert_status 7
    assert_eq "$(wc -l <"$DIR/runs")" 1 'runs of the command'
    assert_match "$(<"$DIR/runs.value")" "^$(<"$DIR/runs") v1 try=[2-9] "
    gone "$KEY"
}

@test "a reset before the reply to an acquire: rlock asks again, and runs its command once" {
    line_start "$REDIS_PORT"
    line cut-after-request 1
    run_through_line -t 60 -n -- sh -c "$counted" "$DIR/runs"
    finish holder
    assert_ran_once
}
