# shellcheck shell=bash
# fake: a server that follows a script, and a proxy that disturbs connections to a server.
#
#     fake_start [NAME] <<'END'         start the server with a script, see tests/tools/fake.py;
#                                       sets FAKE_PORT
#
#     line_start PORT [NAME]            start a proxy to PORT of this host; sets LINE_PORT and
#                                       LINE_CONTROL
#     line COMMAND...                   send a command to the proxy at LINE_CONTROL, see
#                                       tests/tools/fake.py; returns when the command is done

# Wait for the line READY in the file, and print the words that follow READY.
ready_words() {
    eventually 10 file_has "$1" '^READY '
    sed -n 's/^READY //p' "$1"
}

fake_start() {
    local name=${1:-fake}
    cat >"$DIR/$name.script"
    start "$name" "$ROOT/tests/tools/fake.py" "$DIR/$name.script"
    FAKE_PORT=$(ready_words "$DIR/$name.out")
}

line_start() {
    local name=${2:-line}
    start "$name" "$ROOT/tests/tools/fake.py" --line "$1"
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
