#!/usr/bin/env bats
# local: a private server for one machine: started when it is needed, gone when it is not.

load ../helpers/common
load ../helpers/redis

setup() {
    common_setup
    export DIR TOOLS RLOCK RLOCK_URL=local:
    place=$XDG_RUNTIME_DIR/rlock
}
teardown() { common_teardown; }

# named NAME: pids of this test's processes of that name.
named() {
    local each name
    for each in $(marked); do
        read -r name <"/proc/$each/comm" && [[ $name != "$1" ]] || echo "$each"
    done 2>/dev/null
}

# Its environment is empty, so it has no mark; its parent has one.
servers() {
    local keeper each name
    for keeper in $(named rlock-local); do
        for each in $(children "$keeper"); do
            read -r name <"/proc/$each/comm" && [[ $name == rlock-local ]] || echo "$each"
        done
    done 2>/dev/null
}

no_server() { [[ -z "$(named rlock-local)" && ! -e $place/server.sock ]]; }
local_cli() { REDIS_SOCKET=$place/server.sock redis_cli "$@"; }

# hold NAME [OPTION...]: a lock of that name, held for as long as $DIR/NAME.stop isn't there.
hold() {
    start "$1" "$RLOCK" -k "$KEY:$1" "${@:2}" -- \
        sh -c 'echo >"$DIR/$1.runs"; until [ -e "$DIR/$1.stop" ]; do sleep 0.02; done' sh "$1"
}
let_go() { touch "$DIR/$1.stop" && finish "$1"; }
runs() { [[ -e $DIR/$1.runs ]]; }

# as_server SCRIPT: is what rlock finds under the name that it looks for first. Its environment
# is empty, so all names in it are to be absolute.
as_server() {
    mkdir -p "$DIR/bin"
    printf '#!/bin/sh\n%s\n' "$1" >"$DIR/bin/valkey-server"
    chmod +x "$DIR/bin/valkey-server"
    PATH=$DIR/bin:$PATH
}

# counting_server: writes a line to $DIR/starts each time one is started.
counting_server() { as_server "echo >>'$DIR/starts'; exec '$(redis_program)' \"\$@\""; }
starts() { wc -l <"$DIR/starts"; }

# ---- its life ----

@test "local: needs nothing that runs, and leaves nothing that runs" {
    run -7 "$RLOCK" -k "$KEY" -- sh -c 'exit 7'
    eventually 5 no_server
}

@test "local: excludes as any server does" {
    hold one
    eventually 5 runs one
    run -75 "$RLOCK" -k "$KEY:one" -n -- true
    let_go one
    assert_status 0
}

@test "ten rlocks that start at the same moment have one server between them" {
    local n
    counting_server
    for n in {1..10}; do hold "$n"; done
    for n in {1..10}; do eventually 10 runs "$n"; done
    assert_eq "$(servers | wc -l)" 1 servers
    assert_eq "$(local_cli dbsize)" 20 'keys, and last fences, of the one server'
    for n in {1..10}; do
        let_go "$n"
        assert_status 0
    done
    assert_eq "$(starts)" 1 starts
    eventually 5 no_server
}

@test "rlocks that come while the server of others is ending are served" {
    local loop
    for loop in 1 2 3; do
        start "$loop" bash -ec 'for n in {1..15}; do "$RLOCK" -k "$1" -- true; done' \
            bash "$KEY:$loop"
    done
    for loop in 1 2 3; do
        finish "$loop" 30
        assert_status 0
    done
    eventually 5 no_server
}

@test "KILL of the last rlock ends the server as well" {
    hold one
    eventually 5 runs one
    kill -KILL "$pid"
    eventually 5 no_server
    nothing_left
}
nothing_left() { [[ -z $(marked) ]]; }

# A guard that outlives the program has the tree to end, under a lock that is still there.
@test "the guard holds the server as the program does, and the command doesn't" {
    hold one
    eventually 5 runs one
    holds_server "$pid"
    holds_server "$(named rlock-guard)"
    run ! holds_server "$(named sh)"
    let_go one
}
holds_server() { find "/proc/$1/fd" -lname "$place/users" | grep -q .; }

# Besides the server there are its parent, and that one's other child, which waits for the users.
@test "KILL of the server, or of who looks after it: the command is ended, 76; the next run works" {
    local victim
    for victim in servers 'named rlock-local' 'watchers'; do
        rm -f "$DIR/one.runs"
        hold one -t 1
        eventually 5 runs one
        kill -KILL "$($victim | head -n 1)"
        finish one
        assert_status 76
        run -0 "$RLOCK" -k "$KEY:one" -- true
        eventually 5 no_server
    done
}
watchers() { children "$(named rlock-local | head -n 1)" | grep -xvf <(servers); }

# ---- it is private ----

@test "only its user can reach it: a socket of mode 0600 in a folder of mode 0700, and no TCP" {
    local inode
    umask 0
    hold one
    eventually 5 runs one
    assert_eq "$(stat -c '%a %u' "$place")" "700 $(id -u)"
    assert_eq "$(stat -c '%a %F' "$place/server.sock")" '600 socket'
    while read -r inode; do
        run -1 grep -hE "^ *[0-9]+: ([^ ]+ +){8}$inode " /proc/net/tcp /proc/net/tcp6
    done < <(sockets_of "$(servers)")
    let_go one
}

# By their inodes, as /proc/net has them.
sockets_of() { find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n'; }

@test "it writes nothing to the disk: there are its socket and two empty lock files" {
    hold one
    eventually 5 runs one
    local_cli set some value >/dev/null
    assert_eq "$(find "$place" -mindepth 1 -printf '%f %s\n' | sort)" \
        $'server.sock 0\nstart 0\nusers 0'
    let_go one
    eventually 5 no_server
    assert_eq "$(find "$place" -mindepth 1 -printf '%f %s\n' | sort)" $'start 0\nusers 0'
}

@test "it has none of the descriptors and variables of who started it" {
    export SOME_PASSWORD=geheim
    as_server "set >'$DIR/variables'; exec '$(redis_program)' \"\$@\""
    start reader bash -c '"$RLOCK" -k "$KEY:a" -- \
        sh -c "until [ -e \"\$DIR/one.runs\" ]; do sleep 0.02; done" 7>"$DIR/seven" 2>&1 | cat'
    eventually 5 test -S "$place/server.sock"
    hold one
    finish reader # so its cat saw the end of the pipe
    assert_status 0
    runs one
    run find "/proc/$(servers)/fd" -lname "*seven*"
    assert_eq "$output" ''
    run ! grep geheim "$DIR/variables"
    grep -q PWD "$DIR/variables" # as a shell has it by itself
    let_go one
}

# ---- where it can't be ----

# refused STATUS MESSAGE [COMMAND...]: so ends rlock, started by COMMAND, and nothing runs.
refused() {
    run --separate-stderr "${@:3}" "$RLOCK" -k "$KEY" --connect-timeout 1 -- /bin/touch "$DIR/ran"
    assert_status "$1"
    assert_match "$stderr" "$2"
    [[ ! -e $DIR/ran ]]
    eventually 5 nothing_left
}

@test "no server is installed: 69, and what could be" {
    mkdir "$DIR/empty"
    for _ in {1..20}; do # who looks after the server sees that none is there sooner or later
        refused 69 'neither valkey-server nor redis-server can be run; install one' \
            env PATH="$DIR/empty"
    done
}

@test "a server that ends at once, or never answers: 69, and why" {
    as_server 'echo "# Fatal error: no luck"; exit 1'
    refused 69 'its server ended: # Fatal error: no luck'
    as_server 'exec /bin/sleep 60'
    refused 69 "its server doesn't answer"
}

@test "TERM while the server starts ends rlock by TERM, and the server" {
    as_server 'exec /bin/sleep 60'
    start one "$RLOCK" -k "$KEY" -- touch "$DIR/ran"
    eventually 5 has_server
    kill -TERM "$pid"
    finish one
    assert_status 143
    eventually 5 nothing_left
    [[ ! -e $DIR/ran ]]
}
has_server() { [[ $(servers) ]]; }

@test "a place that others could get at is refused: 78" {
    local mode
    for mode in 770 707 750 701; do
        mkdir -m "$mode" "$place"
        refused 78 "rlock: not a directory of this user's alone"
        rmdir "$place"
    done
    mkdir -m 700 "$DIR/elsewhere"
    ln -s "$DIR/elsewhere" "$place"
    refused 78 "not a directory of this user's alone"
    rm "$place"
    touch "$place"
    refused 78 "not a directory of this user's alone"
    rm "$place"
    refused 78 'No such file or directory' env XDG_RUNTIME_DIR="$DIR/not/there"
    ((UID == 0)) || skip 'only root can give a folder to another user'
    mkdir -m 700 "$place"
    chown 54321 "$place"
    refused 78 "not a directory of this user's alone"
}

@test "the longest path that a socket can have works, and a longer one is refused: 78" {
    local longest=$((107 - ${#DIR} - 1 - $(printf /rlock/server.sock | wc -c))) name
    name=$(printf '%*s' "$longest" '' | tr ' ' x)
    mkdir "$DIR/$name" "$DIR/${name}x"
    run -0 env XDG_RUNTIME_DIR="$DIR/$name" "$RLOCK" -k "$KEY" -- true
    refused 78 'the path is too long for a socket' env XDG_RUNTIME_DIR="$DIR/${name}x"
}

@test "a path with characters that mean something in a URL works" {
    export XDG_RUNTIME_DIR="$DIR/%41?db=1 #@:é"
    mkdir "$XDG_RUNTIME_DIR"
    run -0 "$RLOCK" -k "$KEY" -- test -S "$XDG_RUNTIME_DIR/rlock/server.sock"
}

# ---- where it is by default ----

default_place() {
    if [[ -d /run/user/$1 && $(stat -c %u "/run/user/$1") == "$1" ]]; then
        echo "/run/user/$1/rlock"
    elif (($1 == 0)); then
        echo /run/rlock
    else
        echo "/tmp/rlock-$1"
    fi
}

# works_at USER COMMAND...: COMMAND makes rlock one of that user, who has no XDG_RUNTIME_DIR. From
# its own folder, as not every user can get there.
works_at() {
    local was_there=1
    place=$(default_place "$1")
    [[ -d $place ]] || was_there=
    run "${@:2}" env -u XDG_RUNTIME_DIR HOME=/ \
        "./${RLOCK##*/}" -k "$KEY" -- test -S "$place/server.sock"
    assert_eq "$(stat -c '%a %u' "$place")" "700 $1"
    eventually 5 nothing_left
    [[ $was_there ]] || rm -r "$place"
    assert_status 0
}

@test "without XDG_RUNTIME_DIR each user has a place of his own" {
    cd "${RLOCK%/*}"
    works_at "$UID"
    ((UID == 0)) || skip 'only root can be several users'
    works_at 54321 setpriv --reuid 54321 --regid 54321 --clear-groups
}
