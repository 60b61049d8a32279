#!/usr/bin/env bats
# local: a private server for one machine, which rlock starts when needed, and which ends after its
# last user.

load ../helpers/common

setup() {
    common_setup
    export DIR TOOLS RLOCK KEY RLOCK_URL=local:
    place=$RLOCK_LOCAL_DIR
}

# named NAME: prints the PIDs of this test's processes that have the name.
named() {
    local each name
    for each in $(marked); do
        read -r name <"/proc/$each/comm" && [[ $name != "$1" ]] || echo "$each"
    done 2>/dev/null
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

@test "local: a held lock is busy for others, as on any server" {
    hold one
    eventually 5 runs one
    run -75 "$RLOCK" -k "$KEY:one" -n -- true
    let_go one
    assert_status 0
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
        let_go "$n"
        assert_status 0
    done
    assert_eq "$(starts)" 1 starts
    eventually 5 no_server
}

# bats test_tags=long
@test "rlocks that start while the last private server is ending are served" {
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
    holds_server "$(named rlock-guard)"
    run ! holds_server "$(named sh)"
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
        finish one
        assert_status 76
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
        finish one 30
        assert_status 76
        assert_match "$stderr" 'lost: the private server has ended, and with it the lock'
        refute_match "$stderr" 'not-released|free when its ttl ends'
    done
}

# bats test_tags=long
@test "if the private server dies as the command ends, rlock doesn't say that the lock remains" {
    for _ in 1 2 3 4 5; do
        rm -f "$DIR"/one.*
        hold one
        eventually 5 runs one
        run --separate-stderr "$RLOCK" -k "$KEY" -- sh -c 'kill -KILL "$1"' sh "$(servers)"
        [[ $status == @(0|76) ]] || fail "rlock ended with $status: $stderr"
        refute_match "$stderr" 'not-released|free when its ttl ends'
        finish one
        assert_status 76
        eventually 5 no_server
    done
}

# bats test_tags=long
@test "when the private server's parent is killed, the command ends before others get locks" {
    stubborn one
    kill -KILL "$(keepers)"
    run -0 "$RLOCK" -k "$KEY" -- sh -c '! kill -0 "$1"' sh "$(<"$DIR/one.runs")"
    finish one 30
    assert_status 76
}

# bats test_tags=long
@test "--on-lost ignore: others wait for the command's end even if the private server is killed" {
    stubborn one --on-lost ignore
    kill_server
    not_granted
    run -69 "$RLOCK" status -k "$KEY" --connect-timeout 0.5
    start two "$RLOCK" -k "$KEY" --connect-timeout 0.5 -w 60 -- sh -c 'echo >"$DIR/two.runs"'
    eventually 5 file_has "$DIR/two.err" 'warning: local: the private server has ended'
    run ! runs two
    touch "$DIR/one.stop"
    finish two
    assert_status 0
    runs two
    finish one
    assert_status 76
}

# bats test_tags=long
@test "if private server and rlock are killed, the guard ends the command; then others get locks" {
    local guard
    stubborn one
    guard=$(named rlock-guard) # look now: later the waiters have guards, too
    kill -STOP "$guard"
    kill -KILL "$pid" "$(servers)"
    not_granted
    kill -CONT "$guard"
    run -0 "$RLOCK" -k "$KEY" -- sh -c '! kill -0 "$1"' sh "$(<"$DIR/one.runs")"
}

# bats test_tags=long
@test "when the private server is killed, the next one serves the waiters in the same order" {
    local n
    stubborn one
    for n in 1 2 3; do
        start "w$n" "$RLOCK" -v -k "$KEY" -- sh -c 'echo "$1" >>"$DIR/order"' sh "$n"
        eventually 5 is_in_line "$n"
    done
    kill_server
    for n in 1 2 3; do
        finish "w$n" 30
        assert_status 0
    done
    finish one
    assert_status 76
    assert_eq "$(<"$DIR/order")" $'1\n2\n3'
    eventually 5 no_server
}
is_in_line() { (($("$RLOCK" status -k "$KEY" --json | grep -o waited_ms | wc -l) == $1)); }

# bats test_tags=long
@test "when the private server is killed, the process of acquire --bind-pid is ended at once" {
    start sh bash -c '"$RLOCK" acquire -k "$KEY" -t 600 --bind-pid $$ >"$DIR/got"; exec sleep 60'
    eventually 10 test -s "$DIR/got"
    kill_server
    finish sh 30
    assert_status 143
    run -0 "$RLOCK" -k "$KEY" -- true
}

@test "when only the connection to the private server breaks, the command runs on" {
    hold one -t 600
    eventually 5 runs one
    local_cli client kill type normal >/dev/null || :
    never 1 dead "$pid"
    let_go one
    assert_status 0
}

# ---- files of the private server are removed ----

# bats test_tags=long
@test "when the private server's socket is removed, others get locks only after its users' end" {
    stubborn one
    rm "$place/server.sock"
    not_granted
    touch "$DIR/one.stop"
    run -0 "$RLOCK" -k "$KEY" -- sh -c '! kill -0 "$1"' sh "$(<"$DIR/one.runs")"
    finish one
    assert_status 0
    eventually 5 no_server
}

# bats test_tags=long
@test "-u local: rlock keeps its server's files young, so cleaners of old files don't remove them" {
    ! is_sanitized || skip 'a sanitizer must be the first library that is loaded'
    LD_PRELOAD=$TOOLS/hurryshim.so hold one
    eventually 5 runs one
    touch -d '40 days ago' "$place"/* "$place"
    eventually 5 all_fresh
    let_go one
}
all_fresh() { [[ -z $(find "$place" ! -type s -mmin +60) ]]; }

# ---- only the user reaches the server ----

@test "the private server has no TCP port, and a socket of mode 0600 in a folder of mode 0700" {
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

# sockets_of PID: prints the inodes of the process's sockets, by which /proc/net lists them.
sockets_of() { find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n'; }

@test "on disk the private server has only the socket and an empty lock file" {
    hold one
    eventually 5 runs one
    local_cli set some value >/dev/null
    assert_eq "$(find "$place" -mindepth 1 -printf '%f %s\n' | sort)" \
        $'server.sock 0\nusers 0'
    let_go one
    eventually 5 no_server
    assert_eq "$(find "$place" -mindepth 1 -printf '%f %s\n' | sort)" 'users 0'
}

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

# ---- the server can't be started ----

# refused STATUS MESSAGE [COMMAND...]: rlock, started by COMMAND, ends with STATUS and MESSAGE, and
# no server or command runs.
refused() {
    run --separate-stderr "${@:3}" "$RLOCK" -k "$KEY" --connect-timeout 1 -- /bin/touch "$DIR/ran"
    assert_status "$1"
    assert_match "$stderr" "$2"
    [[ ! -e $DIR/ran ]]
    eventually 5 nothing_left
}

@test "status 69: neither server program is installed, and the message names both" {
    mkdir "$DIR/empty"
    # 20 times, as the process that starts the private server may notice its failure early or late.
    for _ in {1..20}; do
        refused 69 'neither valkey-server nor redis-server can be run; install one' \
            env PATH="$DIR/empty"
    done
}

@test "status 69: the private server ends at once, or never answers, and the message says which" {
    as_server 'echo "# Fatal error: no luck"; exit 1'
    refused 69 "the private server didn't start: # Fatal error: no luck"
    as_server 'exec /bin/sleep 60'
    refused 69 "the private server doesn't accept connections"
}

@test "TERM while the private server starts ends rlock by TERM, and the server, too" {
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

@test "status 78: other users could write to the private server's folder" {
    local mode
    for mode in 770 707 750 701; do
        mkdir -m "$mode" "$place"
        refused 78 "rlock: must be a directory that only this user can access"
        rmdir "$place"
    done
    mkdir -m 700 "$DIR/elsewhere"
    ln -s "$DIR/elsewhere" "$place"
    refused 78 'Not a directory'
    rm "$place"
    touch "$place"
    refused 78 'Not a directory'
    rm "$place"
    refused 78 'No such file or directory' env RLOCK_LOCAL_DIR="$DIR/not/there"
    refused 78 'not the absolute path' env RLOCK_LOCAL_DIR=relative/path
    mkdir -m 777 "$DIR/open"
    refused 78 'others can change the directory above it' env RLOCK_LOCAL_DIR="$DIR/open/rlock"
    chmod 1777 "$DIR/open"
    run -0 env RLOCK_LOCAL_DIR="$DIR/open/rlock" "$RLOCK" -k "$KEY" -- true
    ((UID == 0)) || skip 'only root can give a folder to another user'
    mkdir -m 700 "$place"
    chown 54321 "$place"
    refused 78 "must be a directory that only this user can access, but user 54321 owns it"
    rmdir "$place"
    mkdir -m 700 "$DIR/theirs"
    chown 54321 "$DIR/theirs"
    refused 78 'others can change the directory above it' env RLOCK_LOCAL_DIR="$DIR/theirs/rlock"
    assert_eq "$(ls "$DIR/theirs")" '' "new files in another user's folder"
}

@test "status 78: another user runs the private server" {
    ((UID == 0)) || skip 'only root can become other users'
    need perl
    mkdir -m 700 "$place"
    start theirs perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0);
        bind(S, sockaddr_un("$ENV{RLOCK_LOCAL_DIR}/server.sock")) or die; $> = 54321;
        listen(S, 5); open(F, ">", "/dev/null"); print "ready\n"; $| = 1; print ""; sleep 60'
    eventually 5 file_has "$DIR/theirs.out" ready
    refused_by_peer
}
refused_by_peer() {
    run -78 --separate-stderr "$RLOCK" -k "$KEY" -- touch "$DIR/ran"
    assert_match "$stderr" "another user's process listens on the socket"
    [[ ! -e $DIR/ran ]]
}

@test "the private server's folder has mode 700 whatever the umask of rlock is" {
    local mask
    for mask in 777 0 277; do
        (umask "$mask" && "$RLOCK" -k "$KEY" -- sh -c 'umask >"$DIR/umask"')
        assert_eq "$(<"$DIR/umask")" "$(printf '%04d' "$mask")" "the command's umask"
        assert_eq "$(stat -c %a "$place")" 700
        eventually 5 no_server
    done
}

# ---- what the server inherits from the rlock that starts it ----

@test "a private server's keeper doesn't keep rlock's environment or arguments" {
    local each
    export SOME_PASSWORD=geheim
    hold one --label geheim
    eventually 5 runs one
    for each in $(keepers); do
        run ! grep -a geheim "/proc/$each/environ" "/proc/$each/cmdline"
    done
    assert_match "$(tr -d '\0' <"/proc/$(keepers)/cmdline")" '^rlock-local'
    let_go one
}

# bats test_tags=long
@test "the private server doesn't have the resource limits of rlock" {
    local hard
    hard=$(ulimit -Hn)
    ulimit -Sn 40
    hold one
    eventually 5 runs one
    assert_eq "$(limit_of 'open files' soft)" "$(limit_of 'open files' hard)"
    let_go one
    (ulimit -Sn 30 && ulimit -Hn 40 && ulimit -Hn 10064) 2>/dev/null ||
        skip 'this user may not raise a hard limit'
    eventually 5 no_server
    rm "$DIR"/one.*
    (
        ulimit -n 40 -f 0
        umask 0277
        exec nice -n 5 "$RLOCK" -k "$KEY:one" -- \
            sh -c 'until [ -e "$DIR/one.stop" ]; do sleep 0.02; done'
    ) 3>&- &
    eventually 5 has_server
    eventually 5 local_cli ping >/dev/null
    assert_between "$(limit_of 'open files' soft)" 10064 1000000000
    assert_eq "$(limit_of 'file size' soft)" unlimited
    assert_eq "$(ps -o ni= -p "$(servers)" | tr -d ' ')" 0
    for _ in {1..25}; do run -0 "$RLOCK" -k "$KEY:two" -- true; done
    touch "$DIR/one.stop"
    wait $!
}
# limit_of NAME soft|hard: prints the private server's limit of this name in /proc/PID/limits.
limit_of() {
    awk -v name="Max $1" -v at="$([[ $2 == soft ]] && echo 1 || echo 2)" '
        index($0, name) == 1 { split(substr($0, 27), value, " "); print value[at] }' \
        "/proc/$(servers)/limits"
}

# bats test_tags=long
@test "a private server's folder may have a longer path than a socket may have" {
    local name
    name=$(printf '%200s' '' | tr ' ' x)
    mkdir -p "$DIR/$name/$name"
    run -0 env RLOCK_LOCAL_DIR="$DIR/$name/$name/rlock" "$RLOCK" -k "$KEY" -- \
        test -S "$DIR/$name/$name/rlock/server.sock"
}

# bats test_tags=long
@test "the path of a private server's folder may have characters that are special in a URL" {
    export RLOCK_LOCAL_DIR="$DIR/%41?db=1 #@:é"
    run -0 "$RLOCK" -k "$KEY" -- test -S "$RLOCK_LOCAL_DIR/server.sock"
}

# ---- the default folder ----

# in_ns SCRIPT: runs SCRIPT in a mount namespace with /run, /tmp and /var/tmp of its own, and with
# two users: `user` has a home, `daemon` has none. In SCRIPT, `as UID COMMAND...` runs a command as
# that user.
in_ns() {
    ((UID == 0)) || skip 'only root can mount'
    unshare -m true 2>/dev/null || skip_or_fail 'a mount namespace'
    mkdir -p "$DIR/home"
    chmod 755 "$DIR"
    printf '%s\n' root:x:0:0::/root:/bin/sh daemon:x:321:321::/usr/sbin:/bin/sh \
        user:x:54321:54321::/mnt/home:/bin/sh >"$DIR/passwd"
    cp "$RLOCK" "$DIR/rlock-copy"
    # shellcheck disable=SC2016
    unshare -m --propagation private bash -euc '
        mount --bind "$DIR" /mnt
        for each in /run /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$each"; done
        chmod 755 /run
        mount --bind /mnt/passwd /etc/passwd
        chown 54321:54321 /mnt/home
        unset RLOCK_LOCAL_DIR XDG_RUNTIME_DIR
        R=/mnt/rlock-copy D=/mnt
        export R D
        as() {
            local uid=$1
            shift
            setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
        }
        # holds UID [NAME=VALUE...]: the user holds a lock until let_go; returns when it is granted.
        holds() {
            rm -rf "/tmp/hold-$1"
            mkdir -m 777 "/tmp/hold-$1"
            as "$1" env "${@:2}" "$R" -k key -- sh -c "echo >/tmp/hold-$1/runs
                until [ -e /tmp/hold-$1/stop ]; do sleep 0.02; done" &
            until [ -e "/tmp/hold-$1/runs" ]; do kill -0 $!; sleep 0.02; done
        }
        let_go() { touch "/tmp/hold-$1/stop"; wait; }
        # busy UID [NAME=VALUE...]: another rlock of the user must find the lock held.
        busy() {
            local status=0
            as "$1" env "${@:2}" "$R" -k key -n -- true || status=$?
            [ "$status" = 75 ] || { echo "not busy, but $status: $*"; exit 1; }
        }
        '"$1" 3>&-
}

@test "root has one private server, with and without a login session" {
    run in_ns 'mkdir -p -m 700 /run/user/0
        holds 0; busy 0 XDG_RUNTIME_DIR=/run/user/0; let_go 0
        holds 0 XDG_RUNTIME_DIR=/run/user/0; busy 0; busy 0 HOME=/nowhere; let_go 0
        [ "$(stat -c %a /run/rlock)" = 700 ]; [ ! -e /run/user/0/rlock ]'
    assert_status 0
}

# bats test_tags=long
@test "each other user has one private server, with and without a login session or a home" {
    run in_ns 'for uid in 54321 321 65000; do
            mkdir -p -m 700 /run/user/$uid; chown $uid:$uid /run/user/$uid
            holds $uid; busy $uid XDG_RUNTIME_DIR=/run/user/$uid HOME=/; let_go $uid
            holds $uid XDG_RUNTIME_DIR=/run/user/$uid; busy $uid HOME=/nowhere
            rm -r /run/user/$uid; busy $uid; let_go $uid
        done
        [ -d "/mnt/home/.local/state/rlock/$(cat /proc/sys/kernel/random/boot_id)" ]
        [ ! -e /var/tmp/rlock-54321 ]; [ -d /var/tmp/rlock-321 ]; [ -d /var/tmp/rlock-65000 ]'
    assert_status 0
}

# bats test_tags=long
@test "folders rlock-UID in /tmp and /var/tmp that another user made do no harm" {
    run in_ns 'for each in /tmp /var/tmp; do
            mkdir -m 777 "$each/rlock-54321"; chown 321 "$each/rlock-54321"
        done
        holds 54321; busy 54321; let_go 54321
        ! find /tmp/rlock-54321 /var/tmp/rlock-54321 -mindepth 1 | grep .
        mkdir -m 700 /var/tmp/rlock-65000; chown 321 /var/tmp/rlock-65000
        as 65000 "$R" -k key -- true 2>&1 | grep "rlock-65000: Permission denied; set RLOCK_"'
    assert_status 0
}

# bats test_tags=long
@test "root doesn't use another user's XDG_RUNTIME_DIR" {
    run in_ns 'mkdir -p -m 700 /run/user/54321; chown 54321 /run/user/54321
        as 0 env XDG_RUNTIME_DIR=/run/user/54321 "$R" -k key -- test -S /run/rlock/server.sock
        ! ls /run/user/54321 | grep .
        mkdir -m 700 /run/user/54321/rlock; ln -s /mnt/passwd /run/user/54321/rlock/server.sock
        as 0 env XDG_RUNTIME_DIR=/run/user/54321 "$R" -k key -- true
        [ -L /run/user/54321/rlock/server.sock ]; [ ! -e /run/user/54321/rlock/users ]'
    assert_status 0
}

# bats test_tags=long
@test "status 78: the home can't be written now, and no other folder is used instead" {
    run in_ns 'mount -o remount,bind,ro /mnt
        status=0; as 54321 "$R" -k key -- true || status=$?
        [ "$status" = 78 ]; [ ! -e /var/tmp/rlock-54321 ]'
    assert_status 0
    assert_match "$output" '/mnt/home/.local/state/rlock/[-0-9a-f]*: .*; set RLOCK_LOCAL_DIR'
}

# bats test_tags=long
@test "folders in a home that earlier boots or other machines left are removed after a month" {
    run in_ns 'state=/mnt/home/.local/state/rlock; long_ago=00000000-0000-0000-0000-000000000000
        as 54321 mkdir -p -m 700 $state/$long_ago $state/${long_ago/0/1}
        as 54321 chmod 700 $state
        as 54321 touch $state/$long_ago/users
        touch -d "31 days ago" $state/$long_ago
        as 54321 "$R" -k key -- true
        [ ! -e $state/$long_ago ]; [ -d $state/${long_ago/0/1} ]'
    assert_status 0
}
