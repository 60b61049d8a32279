# shellcheck shell=bash
# fake: a scripted server, and a line to a server that can be spoilt.
#
#     fake_start [OPTION...] <<'END'    the script, see tests/tools/fakeredis.c; sets FAKE_PORT
#     fake_log                          what has happened there
#     fake_end [SECONDS]                waits for the end of the script; sets status
#
#     line_start PORT [NAME]            a line to PORT of this host; sets LINE_PORT, LINE_CONTROL
#     line COMMAND...                   spoils it, see tests/tools/cutline.c; returns when done;
#                                       of several the one of LINE_CONTROL

# Waits for READY in the file, and prints what follows it.
ready_words() {
    eventually 10 file_has "$1" '^READY '
    sed -n 's/^READY //p' "$1"
}

fake_start() {
    cat >"$DIR/fake.script"
    start fake "$TOOLS/fakeredis" "$@" "$DIR/fake.script"
    FAKE_PORT=$(ready_words "$DIR/fake.out")
}

fake_log() { cat "$DIR/fake.out" "$DIR/fake.err"; }

fake_end() { finish fake "${1:-10}"; }

line_start() {
    local name=${2:-line}
    start "$name" "$TOOLS/cutline" "$1"
    read -r LINE_PORT LINE_CONTROL <<<"$(ready_words "$DIR/$name.out")"
}

line() {
    local answer control
    exec {control}<>"/dev/tcp/127.0.0.1/$LINE_CONTROL"
    echo "$*" >&"$control"
    read -r answer <&"$control"
    exec {control}>&-
    assert_eq "$answer" OK "answer to '$*'"
}
