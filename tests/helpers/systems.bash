# shellcheck shell=bash
# systems: runs a code block of a document as cron, systemd, GitHub's runner or a container runtime
# would run it. blocks.bash has written the block to the file `block`.
#
#     systems_setup              make $DIR/bin with rlock in it, and go to the folder $DIR/here; set
#                                the sed commands SERVER and COMMANDS for `here`: they replace the
#                                documents' server and folder of commands by those of the test
#     script NAME LINE...        make a shell script of these lines in the current folder
#     held_by_other KEY          let another program hold the lock for a minute
#     counts_signals NAME SIGNAL make a script that writes `ready`, writes a line to $DIR/signals
#                                for each SIGNAL, and ends half a second after the first one
#     config_words ARRAY WHAT... set the array to what read_config.py WHAT prints for the block
#     bare_env [NAME=VALUE...] COMMAND...   replace this process by the command, with these
#                                variables, those that the test itself needs, and no others
#     cron_run N                 run entry N of the crontab in `block`; sets what `run` sets
#     unit_start NAME            start the systemd service in `block`
#     github_step PATH           write the `run:` at this path of `block` to the file `step`
#     github_run [NAME=VALUE...] replace this process by the step
#     container_words ARRAY      set the array to ENTRYPOINT and CMD of `block`, as process 1 of a
#                                PID namespace if root runs the test
#     rlock_among PID            print the pid of the rlock that PID is or has started

systems_setup() {
    server_setup
    mkdir "$DIR/bin" "$DIR/here"
    ln -s "$RLOCK" "$DIR/bin/rlock"
    BASE=/usr/local/bin:/usr/bin:/bin
    export PATH=$DIR/bin:$PATH
    cd "$DIR/here" || return
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    SERVER="s,redis://locks.example.com,$RLOCK_URL,"
    COMMANDS="s,/usr/local/sbin/,$DIR/here/,"
}

held_by_other() { redis_cli set "$1" other PX 60000 >/dev/null; }

script() {
    local name=$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$name"
    chmod +x "$name"
}

counts_signals() {
    script "$1" "trap 'echo $2 >>$DIR/signals' $2; echo ready; n=0" \
        "while [ \$n -lt 5 ]; do sleep 0.1; [ ! -s $DIR/signals ] || n=\$((n + 1)); done"
}

config_words() {
    local -n config_words_array=$1
    mapfile -d '' config_words_array < <("$ROOT/tests/tools/read_config.py" "$2" block "${@:3}")
    ((${#config_words_array[@]})) || fail "read_config.py $2 ${*:3}: nothing in" "$(<block)"
}

# bare_env passes on the variables by which the test finds its processes and sanitizers' reports.
bare_env() {
    exec env -i RLOCK_TEST_MARK="$RLOCK_TEST_MARK" ASAN_OPTIONS="${ASAN_OPTIONS:-}" \
        UBSAN_OPTIONS="${UBSAN_OPTIONS:-}" TSAN_OPTIONS="${TSAN_OPTIONS:-}" "$@"
}

# cron_run does what cron does: it runs the entry by /bin/sh, with a few variables of its own and
# the variables that the crontab sets.
cron_run() {
    local entries variables
    config_words entries cron
    mapfile -t variables < <(grep -E '^[A-Z_]+=' block)
    assert_eq "${entries[$1 * 2 - 2]}" root user
    run --separate-stderr bare_env HOME="$DIR" LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin \
        "${variables[@]}" /bin/sh -c "${entries[$1 * 2 - 1]}" 3>&-
}

# unit_start does what systemd does: it starts the program and arguments in ExecStart, with the
# variables in Environment= and those that systemd itself sets.
unit_start() {
    local words settings=()
    export CREDENTIALS_DIRECTORY=$DIR/credentials
    config_words words unit ExecStart
    ! grep -q '^Environment=' block || config_words settings unit Environment
    start "$1" bare_env PATH=/usr/local/sbin:$BASE:/usr/sbin LANG=C.UTF-8 INVOCATION_ID=0123 \
        CREDENTIALS_DIRECTORY="$CREDENTIALS_DIRECTORY" "${settings[@]}" "${words[@]}"
}

# github_step and github_run do what GitHub's runner does: the first writes the step to a file, and
# the second lets bash run this file.
github_step() {
    local text
    config_words text yaml "$1"
    printf '%s\n' "${text[0]}" >step
}
github_env() {
    bare_env PATH="$DIR/bin:$BASE" CI=true GITHUB_ACTIONS=true GITHUB_RUN_ID=77 \
        GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=shop/site "$@"
}
github_run() { github_env "$@" bash --noprofile --norc -eo pipefail step; }

container_words() {
    local -n container_words_array=$1
    config_words container_words_array image
    if ((EUID == 0)) && command -v unshare >/dev/null; then
        container_words_array=("${AS_PROCESS_1[@]}" "${container_words_array[@]}")
    fi
}

rlock_among() {
    local its_pid name
    for its_pid in "$1" $(descendants "$1"); do
        read -r name <"/proc/$its_pid/comm"
        [[ $name != rlock ]] || { echo "$its_pid" && return; }
    done
    fail "no rlock among the descendants of $1"
}
