#!/usr/bin/env bats
# options: rlock reads them from the command line, the environment and files, and refuses bad input.

load ../helpers/common
load ../helpers/server

# refused STATUS REGEX ARG...: rlock with exactly these arguments ends with STATUS and one line that
# matches.
refused() {
    local wanted=$1 says=$2
    shift 2
    run "-$wanted" --separate-stderr rlock "$@"
    assert_line "$says"
    assert_eq "$output" ""
}

# ---- configuration files ----

# One shell runs rlock once for each place of a configuration file. Each file has another TTL, so
# the TTL that rlock passes to its command tells which file rlock has read.
@test "rlock reads one configuration file: RLOCK_CONFIG's, else the user's, else the system's" {
    unshare -rm mount -t tmpfs none /etc 2>/dev/null || skip 'no mount namespaces here'
    run -0 --separate-stderr unshare -rm bash -c '
        mount -t tmpfs none /etc
        ttl() { "$1" -k "$2" -- printenv RLOCK_TTL_MS; }
        ttl "$@"
        echo "ttl = 4" >/etc/rlock.conf; ttl "$@"
        mkdir -p "$HOME/.config/rlock"; : >"$HOME/.config/rlock/config"; ttl "$@"
        echo "ttl = 3" >"$HOME/.config/rlock/config"; ttl "$@"
        echo "ttl = 2" >"$DIR/config"; RLOCK_CONFIG=$DIR/config; export RLOCK_CONFIG; ttl "$@"
        unset RLOCK_CONFIG HOME XDG_CONFIG_HOME; ttl "$@"' - "$RLOCK" "$KEY"
    assert_eq "${output//$'\n'/ }" '30000 4000 30000 3000 2000 4000'
}

@test "verbs that take no lock ignore a configuration's options for new locks" {
    local verb
    printf '%s\n' 'slots = 4' 'protocol = timestamp' 'kill-after = 29' >"$DIR/config"
    export RLOCK_CONFIG=$DIR/config RLOCK_TOKEN=0123456789abcdef0123456789abcdef
    for verb in status "status -k $KEY" list history "break --yes -k $KEY" doctor \
        "renew -k $KEY -k $KEY:2 -t 10 --connect-timeout 1" \
        "release -k $KEY -k $KEY:2 --connect-timeout 1"; do
        # shellcheck disable=SC2086
        run -69 rlock $verb -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 -u redis://127.0.0.1:3
    done
}

@test "a bad configuration file is refused with its name, the line and the reason" {
    export RLOCK_CONFIG=$DIR/config
    printf '# first\n\n\377\376\1\n' >"$DIR/config"
    refused 78 "misconfigured: $DIR/config:3: not of the form name = value" -k "$KEY" -- true
    head -c 65537 /dev/zero | tr '\0' '#' >"$DIR/config"
    refused 78 "misconfigured: $DIR/config: larger than 64 KiB" -k "$KEY" -- true
    printf 'ttl = 5\0\n' >"$DIR/config"
    refused 78 "misconfigured: $DIR/config: not a text" -k "$KEY" -- true
}

@test "the configuration may come by a pipe on a descriptor; a signal ends rlock while it reads" {
    local variable
    RLOCK_CONFIG=/dev/stdin run -0 rlock -k "$KEY" -c 'echo "$RLOCK_TTL_MS"' < <(echo 'ttl = 7')
    assert_eq "$output" 7000
    mkfifo "$DIR/open"
    for variable in RLOCK_CONFIG RLOCK_PASSWORD_FILE; do
        # shellcheck disable=SC2016 # the inner shell expands $0 and $@
        start waiting env "$variable=/dev/fd/8" RLOCK_CONNECT_TIMEOUT=100s \
            bash -c 'exec 8<>"$0"; exec "$@"' "$DIR/open" "$RLOCK" -k "$KEY" -- true
        eventually 5 file_has "/proc/$pid/comm" '^rlock$'
        kill "$pid"
        ended 143 waiting 5
    done
}

@test "a configuration file is refused if another user owns it or may write it" {
    local path
    mkdir -p "$DIR/.config/rlock"
    for path in "$DIR/.config/rlock/config" "$DIR/config"; do
        echo 'ttl = 7' >"$path"
        [[ $path != "$DIR/config" ]] || export RLOCK_CONFIG=$path
        run -0 rlock -k "$KEY" -c 'echo "$RLOCK_TTL_MS"'
        assert_eq "$output" 7000
        chmod g+w "$path"
        refused 78 "misconfigured: $path: others than its owner may write" -k "$KEY" -- true
        chmod g-w,o+w "$path"
        refused 78 "misconfigured: $path: others than its owner may write" -k "$KEY" -- true
        chmod o-w "$path"
        ((EUID == 0)) || continue
        chown 4711 "$path"
        refused 78 "misconfigured: $path: the file belongs to another user" -k "$KEY" -- true
        chown 0 "$path"
    done
    rm "$DIR/.config/rlock/config"
}

# unprivileged COMMAND...: runs the command, for at most 10 s, as a user for whom the mode of a file
# counts, also if root runs the tests.
unprivileged() {
    local drop=()
    ((EUID != 0)) || drop=(setpriv '--bounding-set=-dac_override,-dac_read_search')
    "${drop[@]}" timeout 10 "$@"
}

@test "a configuration, password or token file that can't be read is refused, without a wait" {
    local path why='([Nn]o such|Is a dir|Permission|Input/output|not a regular file)'
    mkdir -p "$DIR/.config/rlock"
    mkfifo "$DIR/fifo"
    touch "$DIR/closed" "$DIR/.config/rlock/config"
    chmod 0 "$DIR/closed" "$DIR/.config/rlock/config"
    for path in "$DIR"/{none,closed,fifo} "$DIR" /proc/self/mem /dev/zero /dev/tty; do
        RLOCK_CONFIG=$path run -78 --separate-stderr unprivileged "$RLOCK" -k "$KEY" -- true
        assert_line "misconfigured: $path: $why"
        export RLOCK_CONFIG=/dev/null
        run -78 --separate-stderr unprivileged "$RLOCK" -k "$KEY" --password-file "$path" -- true
        assert_line "misconfigured: password file $path: $why"
        run -78 --separate-stderr unprivileged "$RLOCK" release -k "$KEY" --token-file "$path"
        assert_line "misconfigured: token file $path: $why"
        unset RLOCK_CONFIG
    done
    run -78 --separate-stderr unprivileged "$RLOCK" -k "$KEY" -- true
    assert_line "misconfigured: $DIR/.config/rlock/config: Permission"
}

# ---- bad input ----

@test "an empty key, and a key of more than 64 KiB, are usage errors" {
    local long
    long=$(printf '%65537s' '' | tr ' ' k)
    refused 64 'usage: key: must not be empty' -k '' -- true
    refused 64 'usage: key: must not be empty' --key= -- true
    refused 64 'usage: a key has 1 to 65536 bytes' -k "$long" -- true
    for long in rlock:a rlock: a:rlock:b '{a}:rlock:fence'; do
        refused 64 'usage: a key that starts with rlock: or contains :rlock: ' -k "$long" -- true
    done
    for long in 'a}b' 'a{}b' 'a}b{c' '}'; do
        refused 64 'usage: a key with } can.t be a lock unless it has a hash tag' -k "$long" -- true
    done
    assert_between "${#stderr}" 1 2000 'length of the line'
}

# ---- flock(1)'s options ----

@test "-e, --nb, --nonblocking and --timeout have the same meaning as in flock" {
    local option
    redis_cli set "$KEY" other PX 60000
    for option in --nb --nonblocking '--timeout 0' --timeout=0.5s; do
        # shellcheck disable=SC2086 # several words
        run -9 --separate-stderr rlock -k "$KEY" $option -E 9 -- true
        assert_line ": $([[ $option == *5s ]] && echo timeout || echo busy): "
    done
    run -0 rlock -k "$KEY:2" -s -e -c "$(asking) get '$KEY:2'"
    refute_match "$output" 'mode=shared'
}

@test "flock's --close, --no-fork and --unlock are refused, and the message says why" {
    local option
    for option in -o --close -F --no-fork; do
        refused 64 "usage: unknown option: $option; leave it out: " -k "$KEY" "$option" true
    done
    refused 64 'usage: unknown option: --unlock; .* is released by rlock release$' \
        -k "$KEY" --unlock
}
