# shellcheck shell=bash
# redis: a real server for a test, on a port of its own and a Unix socket.
#
#     redis_start [NAME [SERVER OPTION...]]    sets REDIS_PORT REDIS_SOCKET REDIS_PID REDIS_DIR
#     redis_use NAME                           sets these variables to the server NAME
#     redis_stop / redis_crash                 end the server by TERM / by KILL
#     redis_restart                            start the server again, on the same port
#     redis_pause / redis_continue             send the server the signal STOP / CONT
#     redis_cli COMMAND...                     send the server a command, and print the reply as the
#                                              program redis-cli does
#     redis_user NAME [RIGHT...]               create a user with the rights that the manual says
#                                              rlock needs, and with RIGHTs; its password is SECRET
#     redis_allow_inspection NAME              add the manual's rights for status, list,
#                                              history and break
#     on_its_clock COMMAND...                  run the command with the clock of the server
#     redis_monitor FILE                       write all commands that the server gets to FILE
#     redis_script NAME                        set `text` to rlock's script NAME, as rlock sends it
#     redis_load_scripts                       make the server know rlock's scripts, as it does when
#                                              rlock has used it before
#
# A server that setup() starts ends with the test. A server that setup_file() starts serves all
# tests of the file. NAME is `redis` by default.
# RLOCK_TEST_SERVER may name the program of the server.

redis_program() {
    local program
    for program in ${RLOCK_TEST_SERVER:-redis-server valkey-server}; do
        ! command -v "$program" || return 0
    done
    fail "no redis-server and no valkey-server"
}

# redis_cli starts no program if it need not: on some machines that takes 20 ms. The program does
# what needs its options, commands on standard input, a password, or an address of its own.
redis_cli() {
    local cli=redis-cli socket
    if [[ ${1:--} != -* && $1 != monitor && ${REDIS_BY_TCP:-} == yes &&
        -z ${REDISCLI_AUTH:-}${VALKEYCLI_AUTH:-} ]] && redis_connect; then
        redis_talk "$@"
        return
    fi
    command -v "$cli" >/dev/null || cli=valkey-cli
    "$cli" -s "$REDIS_SOCKET" "$@"
}

# redis_connect: connect to the server, and set `socket` to the descriptor; false: it can't.
redis_connect() {
    [[ -S $REDIS_SOCKET ]] && { exec {socket}<>"/dev/tcp/127.0.0.1/$REDIS_PORT"; } 2>/dev/null
}

# redis_talk COMMAND...: send the command to `socket`, print the reply as redis-cli prints it to a
# pipe, and close the connection. bash can't store NULs, so the output has none. The command is one
# line, as in telnet: of several lines bash would send each in a packet of its own.
redis_talk() {
    local LC_ALL=C word request='' reply='' first # LC_ALL=C: read bytes
    local backslash='\\' quote='\"' newline='\n' return='\r'
    for word; do
        word=${word//\\/"$backslash"}
        word=${word//\"/"$quote"}
        word=${word//$'\n'/"$newline"}
        word=${word//$'\r'/"$return"}
        request+=" \"$word\""
    done
    trap '' PIPE # a server that has just ended must not end the test; no process is started here
    printf '%s\r\n' "$request" >&"$socket" || :
    trap - PIPE
    redis_read_reply || fail "no reply to: $*"
    exec {socket}>&-
    printf '%s' "$reply"
    # redis-cli adds no newline to the lines of INFO or CLIENT LIST.
    [[ $first == '$' && $reply == *$'\n' ]] || echo
    [[ -n $first ]]
}

# redis_read_reply: read a reply from `socket`. Sets `reply` to its text (an array has a line for
# each element, nil is empty), and `first` to the first character, which tells the kind of reply.
redis_read_reply() {
    local line n lines=()
    first=
    IFS= read -r -t 60 -u "$socket" line || return
    line=${line%$'\r'}
    reply=
    case $line in
    [+:]*) reply=${line:1} ;;
    -*) reply=${line:1}$'\n' ;;
    '$'[0-9]*)
        for ((n = ${line:1}; n > 0; n -= ${#REPLY})); do # each NUL ends a read, and is left out
            IFS= read -r -t 60 -d '' -n "$n" -u "$socket" || return
            reply+=$REPLY
            ((${#REPLY} == n)) || ((n--))
        done
        IFS= read -r -t 60 -u "$socket" || return
        ;;
    '*'[1-9]*)
        for ((n = ${line:1}; n > 0; n--)); do
            redis_read_reply || return
            lines+=("$reply")
        done
        printf -v reply '%s\n' "${lines[@]}"
        reply=${reply%$'\n'}
        ;;
    esac
    first=${line:0:1}
}

redis_start() {
    local - name=${1:-redis} tries
    set +T # as in common_setup, for setup_file
    shift || :
    REDIS_DIR=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/server-$name
    mkdir -p "$REDIS_DIR"
    printf '%s\n' "$@" >"$REDIS_DIR/options"
    booted_us >"$REDIS_DIR/booted"
    # A test can't reserve a port for the server. If another program uses the port, the server ends
    # at once: then try another random port. The kernel gives clients only ports above this range.
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
    read -r REDIS_PORT <"$REDIS_DIR/port"
    REDIS_BY_TCP=yes
    [[ " $(<"$REDIS_DIR/options") " != *--bind* ]] || REDIS_BY_TCP=
    REDIS_PID=
    [[ ! -e $REDIS_DIR/pid ]] || read -r REDIS_PID <"$REDIS_DIR/pid"
    export REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_BY_TCP REDIS_PID
}

# The runtime of a sanitizer must be the first library: then the command has this machine's clock.
on_its_clock() {
    is_sanitized || set -- env LD_PRELOAD="$TOOLS/clockshim.so" \
        CLOCKSHIM_BOOTED="$(<"$REDIS_DIR/booted")" "$@"
    "$@"
}

# Start the server of REDIS_DIR; fail if it ends before it replies. It stands for a server on
# another machine: when somebody sets this machine's clock, the server's clock isn't set.
redis_launch() {
    local options sentinel=()
    [[ ! -e $REDIS_DIR/sentinel.conf ]] || sentinel=("$REDIS_DIR/sentinel.conf" --sentinel)
    mapfile -t options <"$REDIS_DIR/options"
    [[ -n ${options[*]} ]] || options=()
    [[ ! -e $REDIS_SOCKET ]] || rm -f "$REDIS_SOCKET"
    LD_PRELOAD=$TOOLS/clockshim.so CLOCKSHIM_BOOTED=$(<"$REDIS_DIR/booted") \
        "$(redis_program)" "${sentinel[@]}" --bind 127.0.0.1 --port "$REDIS_PORT" \
        --unixsocket "$REDIS_SOCKET" \
        --dir "$REDIS_DIR" --save '' --appendonly no --daemonize no "${options[@]}" \
        >>"$REDIS_DIR/log" 2>&1 </dev/null 3>&- &
    REDIS_PID=$!
    echo "$REDIS_PID" >"$REDIS_DIR/pid"
    # The server overwrites its environment, so end_all finds it by its pid instead of its mark.
    [[ $REDIS_DIR != "${BATS_TEST_TMPDIR:-none}"/* ]] ||
        echo "$REDIS_PID" >"$DIR/pids/${REDIS_DIR##*/}"
    eventually 10 redis_settled && alive "$REDIS_PID"
}

# The server makes its Unix socket only when it has got its TCP port. So no other server answers.
redis_settled() {
    dead "$REDIS_PID" ||
        { [[ -S $REDIS_SOCKET ]] && [[ $(redis_cli ping 2>&1) == *@(PONG|NOAUTH)* ]]; }
}

redis_restart() { redis_launch; }

# A paused server can't handle TERM, so redis_stop continues it with CONT. CONT comes first: after
# TERM a running server may end before CONT is sent, and kill would fail.
redis_stop() {
    kill -CONT "$REDIS_PID" && kill -TERM "$REDIS_PID" && eventually 10 dead "$REDIS_PID"
}

redis_stop_all() { # the servers of setup_file()
    local dir
    for dir in "$BATS_FILE_TMPDIR"/server-*; do
        [[ -e $dir ]] || continue
        redis_use "${dir##*/server-}"
        dead "$REDIS_PID" || redis_stop
    done
}

redis_crash() {
    kill -KILL "$REDIS_PID" && eventually 10 dead "$REDIS_PID" && rm -f "$REDIS_SOCKET"
}
redis_pause() { kill -STOP "$REDIS_PID" && eventually 5 stopped "$REDIS_PID"; }
redis_continue() { kill -CONT "$REDIS_PID"; }

# redis_rule START NAME [RIGHT...]: find the command in the manual that begins with ACL SETUSER and
# START, a regular expression, and send it for the user NAME, with RIGHTs added.
redis_rule() {
    local rule
    rule=$(sed -n "/^ACL SETUSER $1\$/,/^\.Ed/{/^\.Ed/!p}" "$ROOT/man/rlock-locks.7" | tr '\n' ' ')
    # shellcheck disable=SC2086
    redis_cli ${rule/SETUSER rlock/SETUSER $2} "${@:3}" >/dev/null
}
redis_user() { redis_rule 'rlock on .*' "$@"; }
redis_allow_inspection() { redis_rule rlock "$@"; }

redis_load_scripts() {
    local file text
    for file in "$ROOT"/lib/lua/*.lua; do
        file=${file##*/}
        redis_script "${file%.lua}"
        redis_cli script load "$text" >/dev/null
    done
}

# The first call for a script keeps its text for the other tests of the file: starting awk for each
# test took most of the time of some files.
redis_script() {
    local kept=$BATS_FILE_TMPDIR/$1.lua lua=$ROOT/lib/lua new=$BATS_FILE_TMPDIR/$1.$BASHPID
    if [[ ! -e $kept ]]; then
        awk -v form=lua -f "$lua/embed.awk" "$lua/reply_codes.tsv" "$lua/$1.lua" >"$new"
        mv "$new" "$kept"
    fi
    IFS= read -r -d '' text <"$kept" || : # to the end of the file
}

redis_monitor() {
    redis_cli monitor >"$1" 3>&- &
    eventually 5 file_has "$1" '^OK'
}
