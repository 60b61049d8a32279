#!/usr/bin/env bats
# local: a private server for one machine, which rlock starts when needed, and which ends after its
# last user.

load ../helpers/common

setup() {
    common_setup
    export RLOCK_URL=local:
    place=$RLOCK_LOCAL_DIR
}

# keepers: prints the PIDs of the parents of this test's private servers. `marked` does not find
# them, nor the servers, because their environment is empty.
keepers() {
    local each
    for each in $(grep -lsx rlock-local /proc/[0-9]*/comm); do
        each=${each%/comm}
        [[ $(readlink "$each/cwd") != "$place" ]] || echo "${each#/proc/}"
    done
}

servers() {
    local keeper each name
    for keeper in $(keepers); do
        for each in $(children "$keeper"); do
            read -r name <"/proc/$each/comm" && [[ $name == rlock-local ]] || echo "$each"
        done
    done 2>/dev/null
}

no_server() { [[ -z "$(keepers)" ]]; }
local_cli() { REDIS_BY_TCP='' REDIS_SOCKET=$place/server.sock redis_cli "$@"; }

# hold NAME [OPTION...]: holds the lock $KEY:NAME until $DIR/NAME.stop exists.
hold() {
    start "$1" "$RLOCK" -k "$KEY:$1" "${@:2}" -- \
        sh -c 'echo >"$DIR/$1.runs"; until [ -e "$DIR/$1.stop" ]; do sleep 0.02; done' sh "$1"
}
let_go() { touch "$DIR/$1.stop" && finish "$1"; }
runs() { [[ -e $DIR/$1.runs ]]; }

# as_server SCRIPT: makes SCRIPT the server program that rlock finds first. SCRIPT must use absolute
# paths, as its environment is empty.
as_server() {
    mkdir -p "$DIR/bin"
    printf '#!/bin/sh\n%s\n' "$1" >"$DIR/bin/valkey-server"
    chmod +x "$DIR/bin/valkey-server"
    PATH=$DIR/bin:$PATH
}

# counting_server: the server writes a line to $DIR/starts each time it is started.
counting_server() { as_server "echo >>'$DIR/starts'; exec '$(redis_program)' \"\$@\""; }
starts() { wc -l <"$DIR/starts"; }

# ---- start and end of the server ----

@test "local: rlock needs no running server, and leaves none running" {
    run -7 "$RLOCK" -k "$KEY" -- sh -c 'exit 7'
    eventually 5 no_server
    [[ ! -e $place/server.sock ]]
}

# bats test_tags=long
@test "ten rlocks that start at the same moment start one server, and all use it" {
    local n
    counting_server
    for n in {1..10}; do hold "$n"; done
    for n in {1..10}; do eventually 10 runs "$n"; done
    assert_eq "$(servers | wc -l)" 1 servers
    assert_eq "$(local_cli dbsize)" 20 'keys and last fences on the server'
    for n in {1..10}; do
        let_pass "$n"
    done
    assert_eq "$(starts)" 1 starts
    eventually 5 no_server
}

@test "when the last rlock gets KILL, the private server ends, too" {
    hold one
    eventually 5 runs one
    kill -KILL "$pid"
    eventually 5 no_server
    nothing_left
}
nothing_left() { [[ -z $(marked) && -z $(keepers) ]]; }

# The guard keeps the server running, because the guard may outlive rlock, and must then end the
# command while the lock is still held.
@test "rlock and its guard each keep the private server running, and the command doesn't" {
    hold one
    eventually 5 runs one
    holds_server "$pid"
    holds_server "$(guard_of "$pid")"
    run ! holds_server "$(children "$(guard_of "$pid")")"
    let_go one
}
holds_server() { find "/proc/$1/fd" -lname "$place/users" | grep -q .; }

@test "when the private server or its parent gets KILL, the command is ended and the lock is free" {
    local victim
    for victim in servers keepers; do
        rm -f "$DIR/one.runs"
        hold one -t 4
        eventually 5 runs one
        kill -KILL "$($victim)"
        ended 76 one
        run -0 "$RLOCK" -k "$KEY:one" -- true
        eventually 5 no_server
    done
}

# ---- a server that is killed while its locks are held ----

# stubborn NAME [OPTION...]: holds the lock as `hold` does, with a command that ignores TERM, and a
# lease so long that no renewal comes during the test.
stubborn() {
    start "$1" "$RLOCK" -k "$KEY" -t 600 --kill-after 2 "${@:2}" -- \
        sh -c 'trap "" TERM; echo $$ >"$DIR/$1.runs"
            until [ -e "$DIR/$1.stop" ]; do sleep 0.02; done' sh "$1"
    eventually 5 test -s "$DIR/$1.runs"
}
not_granted() {
    run -69 --separate-stderr "$RLOCK" -k "$KEY" --connect-timeout 0.3 -n -- touch "$DIR/ran"
    assert_match "$stderr" 'no lock is granted before'
    [[ ! -e $DIR/ran ]]
}
kill_server() {
    local server
    server=$(servers)
    kill -KILL "$server" && eventually 5 dead "$server"
}

@test "when the private server is killed, rlock ends the command before other rlocks get locks" {
    local loop
    for loop in 1 2 3; do
        rm -f "$DIR"/*.runs
        stubborn one
        kill_server
        run -0 --separate-stderr "$RLOCK" -k "$KEY" -- \
            sh -c '! kill -0 "$1"' sh "$(<"$DIR/one.runs")"
        ended 76 one 30
        assert_match "$stderr" 'lost: the private server has ended, and with it the lock'
        refute_match "$stderr" 'not-released|free when its ttl ends'
    done
}

# bats test_tags=long
@test "if private server and rlock are killed, the guard ends the command; then others get locks" {
    local guard
    stubborn one
    guard=$(guard_of "$pid")
    kill -STOP "$guard"
    kill -KILL "$pid" "$(servers)"
    not_granted
    kill -CONT "$guard"
    run -0 "$RLOCK" -k "$KEY" -- sh -c '! kill -0 "$1"' sh "$(<"$DIR/one.runs")"
}

# ---- only the user reaches the server ----

@test "the private server has no descriptors and no variables of the rlock that started it" {
    export SOME_PASSWORD=geheim
    as_server "set >'$DIR/variables'; exec '$(redis_program)' \"\$@\""
    start reader bash -c '"$RLOCK" -k "$KEY:a" -- \
        sh -c "until [ -e \"\$DIR/one.runs\" ]; do sleep 0.02; done" 7>"$DIR/seven" 2>&1 | cat'
    eventually 5 test -S "$place/server.sock"
    hold one
    finish reader # the reader's `cat` has ended, so the server has no copy of the pipe
    assert_status 0
    runs one
    run find "/proc/$(servers)/fd" -lname "*seven*"
    assert_eq "$output" ''
    run ! grep geheim "$DIR/variables"
    # Every shell sets PWD, so the file has PWD if `set` has written it.
    grep -q PWD "$DIR/variables"
    let_go one
}

# ---- a server that doesn't start ----

@test "TERM while the private server starts ends rlock by TERM, and the server, too" {
    as_server 'exec /bin/sleep 60'
    start one "$RLOCK" -k "$KEY" -- touch "$DIR/ran"
    eventually 5 has_server
    kill -TERM "$pid"
    ended 143 one
    eventually 5 nothing_left
    [[ ! -e $DIR/ran ]]
}
has_server() { [[ $(servers) ]]; }
