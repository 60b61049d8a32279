#!/usr/bin/env bats
# systemd: what rlock tells the journal and the service manager. No systemd runs: the tests read
# what rlock sends.

load ../helpers/common
load ../helpers/server

# ---- the journal ----

# journal FILE ARG...: runs rlock with stderr in FILE, and with FILE's device and inode number in
# JOURNAL_STREAM, as systemd sets them for a stderr that is the journal.
journal() {
    local file=$1
    shift
    : >"$file"
    JOURNAL_STREAM=$(stat -c %d:%i "$file") rlock "$@" 2>>"$file"
}

@test "journal: each line begins with the priority of its message, as text and as JSON" {
    journal "$DIR/text" -v -k "$KEY" -- true
    assert_match "$(<"$DIR/text")" "^<6>rlock: $KEY: granted .*"$'\n'"<6>rlock: $KEY: released "
    refute_match "$(grep -v '^<6>rlock: ' "$DIR/text")" .
    redis_cli set "$KEY" other px 60000
    run -75 journal "$DIR/text" -n -k "$KEY" -- true
    assert_match "$(<"$DIR/text")" "^<5>rlock: $KEY: busy: "
    run -75 journal "$DIR/json" -n --json -k "$KEY" -- true
    assert_match "$(<"$DIR/json")" '^<5>\{"event":"busy",'
    cut -c4- "$DIR/json" >"$DIR/object"
    assert_valid "$DIR/object"
    run -64 journal "$DIR/text" -k "$KEY" --no-such-option
    assert_match "$(<"$DIR/text")" "^<3>rlock: $KEY: usage: "
}

@test "journal: if JOURNAL_STREAM doesn't name stderr, no line has a priority" {
    local stream
    for stream in "$(stat -c %d:%i "$DIR")" 1:2 '' 'x' "$(stat -c %d:%i "$DIR")0"; do
        JOURNAL_STREAM=$stream run -64 --separate-stderr rlock --no-such-option
        assert_line '^rlock: usage: '
    done
}

# ---- the service manager ----

@test "service manager: rlock tells a socket why it waits, and leaves READY to the command" {
    local told
    export NOTIFY_SOCKET=$DIR/notify
    hold holder -k "$KEY" -t 60 --label nightly
    # The manager writes each datagram as one line, with | for the ends of lines.
    start manager python3 -uc 'import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(os.environ["NOTIFY_SOCKET"])
print("ready")
while True:
    print(s.recv(65536).decode().replace("\n", "|"))'
    eventually 5 file_has "$DIR/manager.out" '^ready$'
    start waiter "$RLOCK" -k "$KEY" -- python3 -c 'import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1\nWATCHDOG=1", os.environ["NOTIFY_SOCKET"])'
    told="^STATUS=rlock: $KEY: waiting [0-9]+s, .*, for sh of .* \(nightly\)"
    eventually 10 file_has "$DIR/manager.out" "$told\|EXTEND_TIMEOUT_USEC=90000000\|$"
    let_go holder
    finish waiter
    assert_eq "$status$stderr" 0
    eventually 5 file_has "$DIR/manager.out" '^READY=1\|WATCHDOG=1$'
    assert_eq "$(tail -n 2 "$DIR/manager.out")" 'STATUS=|EXTEND_TIMEOUT_USEC=90000000|
READY=1|WATCHDOG=1'
}
