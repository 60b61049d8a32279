#!/usr/bin/env bats
# acquire: take a lock without a command: the token, the renew daemon, and what ends the lease.

load ../helpers/common
load ../helpers/span

# ---- the token that acquire prints ----

@test "acquire prints the token, and without --bind-pid the lease ends after its TTL" {
    run -0 --separate-stderr rlock acquire -k "$KEY" -t 6
    assert_match "$output" '^[0-9a-f]{32}$'
    assert_eq "$stderr" ""
    assert_eq "$(value "$KEY" | cut -d' ' -f1)" "$output"
    assert_between "$(ttl_ms "$KEY")" 1 6000
    alone
    run -75 rlock -k "$KEY" -n -- true
    eventually 20 gone "$KEY"
}

@test "acquire --json prints the token, fence and left_ms, and with --slots the slot" {
    rlock acquire -k "$KEY" --json -t 20 >"$DIR/json"
    assert_match "$(<"$DIR/json")" \
        '^\{"token":"[0-9a-f]{32}","fence":[1-9][0-9]{15},"left_ms":1[0-9]{4}\}$'
    assert_match "$(<"$DIR/json")" "\"fence\":$(redis_cli get "{$KEY}:rlock:fence"),"
    rlock acquire -k "$KEY:2" --slots 3 >/dev/null
    assert_match "$(rlock acquire -k "$KEY:2" --slots 3 --json)" ',"slot":1\}$'
}

@test "the holder that others see is the caller of acquire, or the process of --bind-pid" {
    rlock acquire -k "$KEY" >"$DIR/token"
    assert_match "$(value "$KEY")" " pid=$BASHPID .*command=bash "
    start other sleep 20
    eventually 5 grep -qx sleep "/proc/$pid/comm"
    rlock acquire -k "$KEY:2" --label 'a b' --bind-pid "$pid" >"$DIR/token"
    assert_match "$(value "$KEY:2")" " pid=$pid .*command=sleep label=a%20b "
}

@test "if stdout can't be written, acquire releases the lock and exits with 71" {
    local bind
    mkfifo "$DIR/nobody"
    for bind in '' "--bind-pid $BASHPID"; do
        full_or_closed "$bind" '>&-' 'standard output: Bad file descriptor'
        full_or_closed "$bind" '>/dev/full' 'standard output: No space left'
        # shellcheck disable=SC2016
        full_or_closed "$bind" '7<>"$DIR/nobody" >"$DIR/nobody" 7>&-' 'standard output: Broken pipe'
    done
}
full_or_closed() {
    run -71 --separate-stderr bash -c "\"\$RLOCK\" acquire -k \"\$KEY\" $1 $2"
    assert_line "system: can't write to $3"
    gone "$KEY"
    eventually 5 alone
}

@test "acquire refuses a key that RLOCK_TOKEN holds already, and the lock stays held" {
    RLOCK_TOKEN=$(rlock acquire -k "$KEY")
    export RLOCK_TOKEN
    run -64 --separate-stderr rlock acquire -k "$KEY"
    assert_line 'usage: the token in RLOCK_TOKEN holds this key already'
    run -64 --separate-stderr rlock acquire -k "$KEY:2" -k "$KEY"
    gone "$KEY:2"
    rlock release -k "$KEY"
}

# ---- --bind-pid: the lock is held until a process ends ----

@test "a shell acquires, runs three commands, one of them in a nested rlock, and releases" {
    shell sh -t 6
    tell sh 'echo one'
    tell sh '"$RLOCK" -k "$KEY" -n -- sh -c "echo \$RLOCK_TOKEN"'
    assert_eq "$output" "$(<"$DIR/sh.token")"
    never 8 gone "$KEY" # the lock outlasts its TTL of 6 s because it is renewed
    tell sh 'echo three; "$RLOCK" release -k "$KEY"'
    assert_eq "$status $output" "0 three"
    gone "$KEY"
    tell sh '"$RLOCK" release -k "$KEY"'
    assert_eq "$status" 76
    eventually 5 alone
    assert_eq "$(redis_cli --scan)" "{$KEY}:rlock:fence"
    tell sh 'echo went on' # a release is no loss of the lock, so the shell runs on
    assert_eq "$output" 'went on'
}

@test "the renew daemon has no terminal and none of the caller's descriptors" {
    local its_pid fd
    mkfifo "$DIR/pipe"
    cat "$DIR/pipe" >"$DIR/read" &
    echo $! >"$DIR/pids/reader"
    start sh bash -c 'exec 8>"$DIR/pipe" 9<"$0"
        token=$("$RLOCK" acquire -k "$KEY" -t 30 --bind-pid $$ 2>&1)
        exec 8>&-; echo "$token" >"$DIR/got"; exec sleep 30' "$ROOT/README.md"
    eventually 10 test -s "$DIR/got"
    assert_match "$(<"$DIR/got")" '^[0-9a-f]{32}$'
    eventually 5 dead "$(<"$DIR/pids/reader")"
    eventually 5 test -n "$(renewd_guard)"
    for its_pid in $(renewd) $(renewd_guard); do
        # The last two of these fields of /proc/PID/stat are the session, which each process leads,
        # and the terminal; 0: none.
        assert_match "$(cut -d')' -f2- "/proc/$its_pid/stat")" "^ . [0-9]+ [0-9]+ $its_pid 0 "
        assert_eq "$(readlink "/proc/$its_pid/cwd")" /
        for fd in "/proc/$its_pid/fd"/*; do
            assert_match "${fd##*/} $(readlink "$fd")" \
                '^([0-2] /dev/null|[0-9]+ (anon_inode:.*|socket:.*|pipe:.*|.*/report\..*))$'
        done
        refute_match "$(ls -l "/proc/$its_pid/fd")" "$DIR/(pipe|sh|got)|README"
    done
    assert_eq "$(renewd | wc -w) $(renewd_guard | wc -w)" '1 1'
}

@test "if the lock is lost, the bound process and its children get TERM, then KILL; others don't" {
    local its_pid child
    start bystander sleep 30
    shell sh -t 4
    tell sh 'trap "echo >\"\$DIR/termed\"; exit 7" TERM'
    tell sh '(trap "" TERM; exec setsid sleep 30) & echo $!'
    child=$output
    redis_cli set "$KEY" other PX 60000
    ended 7 sh
    [[ -e $DIR/termed ]]
    eventually 5 dead "$child"
    eventually 5 alone
    alive "$(<"$DIR/pids/bystander")"
    assert_eq "$(value "$KEY")" other
}

@test "--on-lost ignore: after a loss the bound process runs on, and the renew daemon ends" {
    shell sh -t 4 --on-lost ignore
    assert_eq "$(renewd_guard)" ""
    redis_cli set "$KEY" other PX 60000
    eventually 5 alone
    tell sh 'echo went on'
    assert_eq "$output" 'went on'
    assert_eq "$(value "$KEY")" other
}

@test "when the renew daemon is killed, the bound process is ended" {
    shell sh -t 2
    kill -KILL "$(renewd)"
    eventually 10 dead "$(<"$DIR/pids/sh")"
    eventually 5 gone "$KEY"
    eventually 5 alone
}

@test "when the guard of the bound process is killed, the renew daemon ends the bound process" {
    local child
    shell sh -t 300 --log "$DIR/log"
    tell sh '(trap "" TERM; exec setsid sleep 300) & echo $!'
    child=$output
    kill -KILL "$(renewd_guard)"
    eventually 10 dead "$(<"$DIR/pids/sh")"
    eventually 10 dead "$child"
    eventually 10 alone
    gone "$KEY"
    assert_match "$(<"$DIR/log")" "rlock: $KEY: guard-lost: the process that guards the command \
was ended by signal 9 \(Killed\); the command "
}

@test "a signal to the renew daemon is passed on to the bound process" {
    start sh bash -c 'trap "echo >\"\$DIR/termed\"" TERM
        "$RLOCK" acquire -k "$KEY" --bind-pid $$ >"$DIR/got"
        while [[ ! -e $DIR/termed ]]; do sleep 0.05; done'
    eventually 10 test -s "$DIR/got"
    kill -TERM "$(renewd)"
    ended 0 sh
    eventually 5 alone
    gone "$KEY"
}

@test "--bind-pid refuses with 64 what it can't or mustn't end, before it asks the server" {
    local ended_pid
    sh -c 'exit 0' &
    ended_pid=$!
    wait "$ended_pid"
    redis_cli config resetstat
    refuses "process $ended_pid: No such process" --bind-pid "$ended_pid"
    # First with --on-lost ignore, so that rlock doesn't kill process 1 if it accepts it by mistake.
    refuses 'process 1: all processes of this machine or c' --bind-pid 1 --on-lost ignore
    RLOCK_BIND_PID=1 refuses 'process 1: all processes of this machine or container'
    # shellcheck disable=SC2016
    run -64 --separate-stderr bash -c 'exec "$RLOCK" acquire -k "$KEY" --bind-pid $$'
    assert_line 'usage: bind-pid: process [0-9]+: it is this rlock.*; start rlock without exec'
    if ((EUID == 0)); then
        ! is_kernels 2 || refuses 'process 2: it is a thread of the kernel' --bind-pid 2
        local as_other=(env HOME=/ setpriv --reuid 65534 --clear-groups)
        refuses "process $BASHPID: Operation not permitted" --bind-pid "$BASHPID"
    fi
    refute_match "$(redis_cli info commandstats)" cmdstat_eval
}
refuses() {
    run -64 --separate-stderr "${as_other[@]}" "$RLOCK" acquire -k "$KEY" "${@:2}"
    assert_line "usage: bind-pid: $1"
}
is_kernels() { (($(cut -d' ' -f9 "/proc/$1/stat" 2>/dev/null || echo 0) & 0x200000)); }

# bats test_tags=long
@test "acquire -u local: keeps the private server until the bound process ends" {
    unset RLOCK_URL
    start sh bash -c '"$RLOCK" acquire -u local: -k "$KEY" -t 2 --bind-pid $$ >"$DIR/got"
        exec sleep 30'
    eventually 10 test -s "$DIR/got"
    RLOCK_TOKEN='' run -75 rlock -u local: -k "$KEY" -w 3 -- true
    kill -KILL "$pid"
    eventually 5 rlock -u local: -k "$KEY" -n -- true
}

# ---- what the renew daemon reports ----

WHEN='20[0-9-]{8}T[0-9:]{8}[+-][0-9:]{5}'

# told FILE REGEX: waits for the end of the renew daemon, and checks its log FILE. The first line is
# the time of day, and then matches REGEX. If the first line says that the process is being ended, a
# second line says when the process had ended. Otherwise FILE has one line only.
told() {
    eventually 5 test -s "$1"
    eventually 5 alone
    assert_match "$(head -n 1 "$1")" "^$WHEN rlock: $KEY: $2$"
    if grep -q 'is being ended' "$1"; then
        assert_match "$(tail -n +2 "$1")" \
            "^$WHEN rlock: $KEY: ended: process [0-9]+ \(bash\): TERM at .*, ended at [0-9:]{8}$"
    else
        assert_eq "$(wc -l <"$1")" 1 "lines, $(<"$1")"
    fi
}

@test "--log has one line that says why rlock ended the process, with its time, lock and PID" {
    local why=$DIR/why.log its_pid
    shell sh -t 4 --log "$why"
    its_pid=$(<"$DIR/pids/sh")
    redis_cli set "$KEY" other PX 60000
    told "$why" \
        "lost: the lock is held by .*; process $its_pid \(bash\) is being ended: TERM at $WHEN, \
KILL at [0-9:]{8} unless it ends before"
    ended 143 sh
    assert_eq "$stderr" ''
    redis_cli del "$KEY"
    # rlock appends to the log. rlock reports neither a release nor the end of the bound process.
    shell sh2 -t 4 --log "$why"
    tell sh2 '"$RLOCK" release -k "$KEY"'
    eventually 5 alone
    shell sh3 -t 4 --log "$why"
    kill -KILL "$(<"$DIR/pids/sh3")"
    told "$why" lost.*
    shell sh4 -t 4 -v --log "$why"
    kill -KILL "$(<"$DIR/pids/sh4")"
    eventually 5 file_has "$why" "rlock: $KEY: ended: process [0-9]+ \\(bash\\) has ended"
}

@test "a log that can't be opened makes acquire fail before it asks for the lock" {
    redis_cli config resetstat
    run -78 --separate-stderr rlock acquire -k "$KEY" --bind-pid "$BASHPID" --log "$DIR/no/log"
    assert_line "misconfigured: log: $DIR/no/log: No such file or directory"
    unshare -rm mount -t tmpfs none /dev 2>/dev/null || skip 'no mount namespaces here'
    # shellcheck disable=SC2016
    run -78 --separate-stderr unshare -rm bash -c 'mount -t tmpfs none /dev
        "$RLOCK" acquire -k "$KEY" --log syslog --bind-pid $$; exit $?'
    assert_line 'misconfigured: log: syslog: /dev/log: No such file'
    refute_match "$(redis_cli info commandstats)" cmdstat_eval
}

@test "--log syslog reports to syslog(3)" {
    need python3
    unshare -rm mount -t tmpfs none /dev 2>/dev/null || skip 'no mount namespaces here'
    # shellcheck disable=SC2016
    start sh unshare -rm bash -c '
        touch "$DIR/null"; mount --bind /dev/null "$DIR/null"
        mount -t tmpfs none /dev; touch /dev/null; mount --bind "$DIR/null" /dev/null
        python3 -c "import socket
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind(\"/dev/log\")
print(log.recv(4096).decode(), flush=True)" &
        until [[ -e /dev/log ]]; do :; done
        sleep 60 & "$RLOCK" acquire -k "$KEY" -t 4 --bind-pid $! --log syslog; wait'
    eventually 10 exists "$KEY"
    redis_cli set "$KEY" other PX 60000
    eventually 10 file_has "$DIR/sh.out" "^<11>.* rlock\\[[0-9]+\\]: $KEY: lost: .* held by "
}

# ---- the manual's examples for CI, run as GitLab, GitHub and Jenkins would run them ----

# example AFTER BEFORE: prints the manual's lines between a line that matches the regex AFTER and
# the next line that matches BEFORE.
example() {
    sed -n '/^\.Ss Steps of a CI job/,/^\.Sh /p' "$ROOT/man/rlock-verbs.1" |
        awk -v after="$1" -v before="$2" '$0 ~ before && on { exit } on; $0 ~ after { on = 1 }' |
        grep -v '^\.'
}
# jobs: makes the scripts deploy.sh and migrate.sh, which the examples call. Each script appends its
# name to $DIR/ran, and to $DIR/held whether the lock was held (1: yes).
jobs() {
    local name
    mkdir -p "$DIR/job" && cd "$DIR/job" || return
    ln -sf "$RLOCK" rlock
    for name in migrate deploy; do
        printf '%s\n' '#!/bin/sh' "$(asking) exists deploy >>'$DIR/held'" \
            "echo $name >>'$DIR/ran'" "[ '$name' != \"\$FAILS\" ]" >"$name.sh"
        chmod +x "$name.sh"
    done
    export PATH=$PWD:$PATH
}
ran() {
    assert_eq "$(cat "$DIR/ran")" "$1" 'scripts that ran'
    assert_eq "$(sort -u "$DIR/held")" 1 'lock held during each script (1: yes)'
    rm "$DIR/ran" "$DIR/held"
}
after_ci() { eventually 5 gone deploy && eventually 5 alone; }

# gitlab: runs the manual's example for GitLab CI: before_script and script in one shell, as GitLab
# does. In the example the line that ends in "-t 1m" goes on in the next line.
gitlab() {
    {
        echo 'set -eo pipefail'
        example 'before_script and script|in one shell' '^\.Ed' |
            sed -n 's/^    - //p; s/^        //p' | awk '{ line = line $0 } !/ -t 1m$/ {
                print line; line = "" } / -t 1m$/ { line = line " " }'
    } >gitlab.sh
    run bash gitlab.sh
}
# bats test_tags=long
@test "the example for GitLab CI holds the lock in each step, and frees it also after a failure" {
    jobs
    gitlab
    assert_status 0
    ran $'migrate\ndeploy'
    after_ci
    FAILS=migrate gitlab
    assert_status 1
    ran migrate
    after_ci
    redis_cli set deploy other PX 60000
    sed -i 's/ -w 30m/ -w 2/' gitlab.sh
    run bash gitlab.sh
    assert_status 75
    [[ ! -e $DIR/ran ]]
}

# bats test_tags=long
@test "the steps of the examples for GitHub Actions and Jenkins run under one lock" {
    local ci
    jobs
    for ci in '^GitHub Actions:' 'is possible as above'; do
        example "$ci" '^\.Ed' | grep -E '[$]|rlock|migrate' | sed -E "/ if:/d; s/'\$//
            s/^ *(- run: exec|run:|sh ')//; /GITHUB_ENV/s,\$,; . ./env.file," >steps.sh
        GITHUB_ENV=env.file run -0 sh -ae steps.sh
        ran $'migrate\ndeploy'
        gone deploy
    done
}
