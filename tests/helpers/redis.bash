# shellcheck shell=bash
# redis: a real server for a test, on a port of its own and a Unix socket.
#
#     redis_start [NAME [SERVER OPTION...]]    sets REDIS_PORT REDIS_SOCKET REDIS_PID REDIS_DIR
#     redis_use NAME                           sets them again, where there are several
#     redis_stop / redis_crash / redis_restart of the one in use: orderly, by KILL, on its old port
#     redis_pause / redis_continue             by STOP and CONT
#     redis_cli COMMAND...                     the reply, as people see it
#     redis_user NAME [RIGHT...]               somebody with the least that the manual prints, and
#                                              these; the password is SECRET
#     redis_looker NAME                        the same user may also look at locks
#     redis_monitor FILE                       what the server is asked from now on, into FILE
#
# Started in setup(), a server ends with its test. Started in setup_file(), it serves the whole
# file; then teardown_file() calls redis_stop, and setup() needs nothing: the names are exported.
# NAME is `redis` if not said. RLOCK_TEST_SERVER may name the program to test against.

redis_program() {
    local program
    for program in ${RLOCK_TEST_SERVER:-redis-server valkey-server}; do
        ! command -v "$program" || return 0
    done
    fail "no redis-server and no valkey-server"
}

redis_cli() {
    local cli=redis-cli
    command -v "$cli" >/dev/null || cli=valkey-cli
    "$cli" -s "$REDIS_SOCKET" "$@"
}

redis_start() {
    local name=${1:-redis} tries
    shift || :
    REDIS_DIR=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/server-$name
    mkdir -p "$REDIS_DIR"
    printf '%s\n' "$@" >"$REDIS_DIR/options"
    # No port can be reserved for another program, so the server itself tries ports below those
    # that the kernel hands out; a port that somebody has makes it end.
    for tries in {1..20}; do
        echo "$((RANDOM % 10000 + 20000))" >"$REDIS_DIR/port"
        redis_use "$name"
        ! redis_launch || return 0
    done
    cat "$REDIS_DIR/log" >&2
    fail "no server after $tries tries"
}

redis_use() {
    local base
    for base in "${BATS_TEST_TMPDIR:-}" "$BATS_FILE_TMPDIR"; do
        REDIS_DIR=$base/server-$1
        [[ ! -d $REDIS_DIR ]] || break
    done
    REDIS_SOCKET=$REDIS_DIR/socket
    REDIS_PORT=$(<"$REDIS_DIR/port")
    REDIS_PID=$(cat "$REDIS_DIR/pid" 2>/dev/null || :)
    export REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_PID
}

# Starts the server of REDIS_DIR; fails if it ended before it answered.
redis_launch() {
    local options sentinel=()
    [[ ! -e $REDIS_DIR/sentinel.conf ]] || sentinel=("$REDIS_DIR/sentinel.conf" --sentinel)
    mapfile -t options < <(grep -v '^$' "$REDIS_DIR/options")
    rm -f "$REDIS_SOCKET"
    "$(redis_program)" "${sentinel[@]}" --bind 127.0.0.1 --port "$REDIS_PORT" \
        --unixsocket "$REDIS_SOCKET" \
        --dir "$REDIS_DIR" --save '' --appendonly no --daemonize no "${options[@]}" \
        >>"$REDIS_DIR/log" 2>&1 </dev/null 3>&- &
    REDIS_PID=$!
    echo "$REDIS_PID" >"$REDIS_DIR/pid"
    # It overwrites its environment, so end_all can't find it by its mark.
    [[ $REDIS_DIR != "${BATS_TEST_TMPDIR:-none}"/* ]] ||
        echo "$REDIS_PID" >"$DIR/pids/${REDIS_DIR##*/}"
    eventually 10 redis_settled
    redis_answers
}

redis_answers() { [[ $(redis_cli ping 2>&1) == *@(PONG|NOAUTH)* ]]; }
redis_settled() { dead "$REDIS_PID" || redis_answers; }

redis_restart() { redis_launch; }

# CONT first: after TERM it may be gone already.
redis_stop() {
    kill -CONT "$REDIS_PID" && kill -TERM "$REDIS_PID" && eventually 10 dead "$REDIS_PID"
}

redis_crash() { kill -KILL "$REDIS_PID" && eventually 10 dead "$REDIS_PID"; }
redis_pause() { kill -STOP "$REDIS_PID" && eventually 5 stopped "$REDIS_PID"; }
redis_continue() { kill -CONT "$REDIS_PID"; }

# redis_rule FIRST-LINE NAME: one that the manual prints, for somebody.
redis_rule() {
    local rule
    rule=$(sed -n "/^ACL SETUSER $1\$/,/^\.Ed/{/^\.Ed/!p}" "$ROOT/man/rlock.1" | tr '\n' ' ')
    # shellcheck disable=SC2086
    redis_cli ${rule/SETUSER rlock/SETUSER $2} "${@:3}" >/dev/null
}
redis_user() { redis_rule 'rlock on .*' "$@"; }
redis_looker() { redis_rule rlock "$@"; }

redis_monitor() {
    redis_cli monitor >"$1" 3>&- &
    eventually 5 file_has "$1" '^OK'
}
