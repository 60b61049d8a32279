#!/usr/bin/env bats
# first_contact: mistakes of a new user, and the message or suggestion that rlock answers.

load ../helpers/common

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET
}

# refused STATUS REGEX ARG...: rlock with exactly these arguments must end with STATUS, and write
# one line that matches and nothing to stdout.
refused() {
    local wanted=$1 says=$2
    shift 2
    run "-$wanted" --separate-stderr rlock "$@"
    assert_line "$says"
    assert_eq "$output" ""
}

# ---- mistakes with verbs ----

@test "a verb is found behind options, if no -k stands before it" {
    local words
    hold job -k "$KEY"
    while read -ra words; do
        RLOCK_URL='' run --separate-stderr rlock "${words[@]}"
        assert_status "$([[ " ${words[*]} " == *' list '* ]] && echo 0 || echo 75)" # held
        assert_match "$output" "$KEY" "${words[*]}"
        assert_eq "$stderr" "" "${words[*]}"
    done <<END
-u $RLOCK_URL status -k $KEY
-u$RLOCK_URL status -k$KEY
--url=$RLOCK_URL status --key $KEY
--url $RLOCK_URL -qv status -k $KEY
-u $RLOCK_URL --json status -k $KEY
-u $RLOCK_URL list
--json -u $RLOCK_URL list
-qu $RLOCK_URL --connect-timeout 3 list $KEY
END
    refused 64 'usage: unknown option of list: -t; see rlock help list$' -t 3 list
    refused 64 'usage: unknown option of list: --ttl; ' --ttl=3 -q list
    let_go job
}

@test "a word behind -k or -- is a command, even if a verb has its name" {
    printf '#!/bin/sh\necho "the program $RLOCK_KEY"\n' >"$DIR/status"
    chmod +x "$DIR/status"
    PATH=$DIR:$PATH run -0 --separate-stderr rlock -k "$KEY" status
    assert_eq "$output|$stderr" "the program $KEY|"
    PATH=$DIR:$PATH run -0 --separate-stderr rlock --key="$KEY" -n -- status
    assert_eq "$output|$stderr" "the program $KEY|"
    refused 64 'usage: no key: name the lock with -k KEY; ' -- status
}

@test "a mistyped verb, or another program's name for it, is answered with the verb that is meant" {
    local typed meant
    while read -r typed meant; do
        refused 64 "^rlock: usage: no such verb: $typed; did you mean $meant\\?$" "$typed" -k "$KEY"
        refused 64 "usage: no such verb: $typed; did you mean $meant\\?$" -q "$typed" "$KEY"
        refused 64 "usage: no such verb: $typed; did you mean $meant\\?$" help "$typed"
    done <<END
relase release
unlock release
lock acquire
Status status
stat status
lits list
ls list
doctr doctor
hlep help
END
    refused 64 '^rlock: usage: no such verb: frobnicate; see rlock --help$' frobnicate -k "$KEY"
    refused 64 '^rlock: usage: no such verb: frobnicate; see rlock help help$' help frobnicate
    refused 64 'no such verb: run; a command needs no verb: rlock -k KEY -- COMMAND$' \
        run -k "$KEY" -- touch "$DIR/ran"
    [[ ! -e $DIR/ran ]]
}

@test "an unknown option of a verb points to the help of that verb" {
    refused 64 'usage: unknown option of status: --frobnicate; see rlock help status$' \
        status --frobnicate
    refused 64 'usage: unknown option of release: -t; see rlock help release$' release -t 5
    refused 64 'usage: no key: name the lock with -k KEY; see rlock help release$' release
    refused 64 'usage: unknown option: --frobnicate; see rlock --help$' -k "$KEY" --frobnicate
}

# ---- mistakes with the key ----

@test "status, release, renew, acquire and break take the key as a word, too" {
    local token
    run -0 --separate-stderr rlock acquire "$KEY" -t 9
    token=$output
    assert_match "$(value "$KEY")" "^$token "
    run -75 --separate-stderr rlock status "$KEY"
    assert_match "$output" "$KEY"
    run -75 --separate-stderr rlock --json status "$KEY" --connect-timeout 3
    assert_match "$output" '"key":"'
    RLOCK_TOKEN=$token run -0 --separate-stderr rlock renew -t 40 "$KEY"
    assert_between "$(ttl_ms "$KEY")" 10000 40000
    RLOCK_TOKEN=$token run -0 --separate-stderr rlock release "$KEY"
    gone "$KEY"
    rlock acquire -t 20 -- "$KEY"
    run -0 --separate-stderr rlock break --yes "$KEY"
    gone "$KEY"
}

@test "a verb's key that is given by -k and as a word, or as two words, is refused" {
    local verb
    for verb in acquire renew release status break; do
        refused 64 "usage: key: given twice, by -k and behind the verb: \"$KEY:2\"; see " \
            "$verb" -k "$KEY" "$KEY:2"
        refused 64 "usage: key: given twice, by -k and behind the verb: \"$KEY\"; see " \
            "$verb" "$KEY" -k "$KEY"
        refused 64 'usage: only one key may be given as a word; for several locks: -k KEY -k KEY' \
            "$verb" "$KEY" "$KEY:2"
    done
    refused 64 'usage: key: must not be empty' release ''
    refused 64 'usage: the verb takes no arguments but options; see rlock help doctor' \
        doctor "$KEY"
    gone "$KEY"
}

@test "a command without -k is never run; a word that may be the key is suggested as -k" {
    cd "$DIR"
    refused 64 '^rlock: usage: no key: name the lock with -k KEY; ' job true
    assert_match "$stderr" '; did you mean: rlock -k job -- true\?$'
    refused 64 'did you mean: rlock -k job:nightly -- touch \.\.\.\?$' job:nightly touch ran
    refused 64 'did you mean: rlock -k job -- touch \.\.\.\?$' -n job -t 5 -- touch ran
    refused 64 'did you mean: rlock -k job -c \.\.\.\?$' job -c 'touch ran'
    # rlock suggests no key if the first word is a program, stands alone, or has a blank.
    refused 64 'no key: name the lock with -k KEY; see rlock --help$' touch ran
    refused 64 'no key: name the lock with -k KEY; see rlock --help$' job
    refused 64 'no key: name the lock with -k KEY; see rlock --help$' 'a b' touch ran
    refused 64 'no key: name the lock with -k KEY; see rlock --help$'
    # If -k stands behind the command, rlock says that the options belong in front.
    refused 64 'usage: no key: the options of rlock end where the command begins, at touch; ' \
        touch -k "$KEY" ran
    assert_match "$stderr" '; did you mean: rlock -k KEY -- touch \.\.\.\?$'
    # a URL in the place of the key is shown without its password
    refused 64 'no key: ' redis://user:hunter2@h touch ran
    refute_match "$stderr" hunter2
    [[ ! -e ran ]]
}

# ---- mistakes with the command ----

@test "status 127 for a verb's name behind -k: the message says that a verb comes first" {
    local verb
    for verb in status release list doctor; do # no program has these names
        refused 127 ": not-found: $verb: [^;]*; $verb is a verb when it comes first: rlock $verb " \
            -k "$KEY" "$verb"
    done
    refused 127 ': not-found: nothing: No such file or directory$' -k "$KEY" -- nothing
}

@test "status 127 or 126 for a line or a command of the shell: the message points to -c" {
    refused 127 ": not-found: echo a \| cat: [^;]*; .* with -c: -c 'echo a \| cat'$" \
        -k "$KEY" -- 'echo a | cat'
    refused 127 ": not-found: cd: [^;]*; cd is a command of the shell: .* with -c: -c 'cd ...'$" \
        -k "$KEY" -- cd /tmp
    printf 'no program\n' >"$DIR/a;b"
    refused 126 ": not-executable: .*/a;b: Permission denied; .* with -c: " -k "$KEY" -- "$DIR/a;b"
    # A line for the shell may have a password: the message must not show it, not even in part.
    refused 127 ': not-found: .* with -c: ' -k "$KEY" -- 'get redis://user:hunter2@h'
    refute_match "$stderr" hunter2
    run -127 --separate-stderr rlock --json -k "$KEY" -- cd /tmp
    assert_match "$stderr" '"hint":"cd is a command of the shell'
}

# ---- mistakes with options ----

@test "-e, --nb, --nonblocking and --timeout have the same meaning as in flock" {
    local option
    redis_cli set "$KEY" other PX 60000
    for option in -n --nb --nonblocking --nonblock '-w 0' '--timeout 0' --timeout=0; do
        # shellcheck disable=SC2086 # several words
        run -75 --separate-stderr rlock -k "$KEY" $option -- true
        assert_line ': busy: '
    done
    for option in '-w 0.1' --wait=0.1 '--timeout 0.1' --timeout=0.1s; do
        # shellcheck disable=SC2086
        run -9 --separate-stderr rlock -k "$KEY" $option --conflict-exit-code 9 -- true
        assert_line ': timeout: '
    done
    for option in -e -x --exclusive; do
        run -0 --separate-stderr rlock -k "$KEY:2" -s "$option" -c "$(asking) get '$KEY:2'"
        refute_match "$output" 'mode=shared'
    done
    run -0 --separate-stderr rlock -k "$KEY:2" --shared --verbose --command \
        "$(asking) get '$KEY:2'"
    assert_match "$output" 'mode=shared'
}

@test "flock's --close, --no-fork and --unlock are refused, and the message says why" {
    local option
    for option in -o --close -F --no-fork; do
        refused 64 "usage: unknown option: $option; leave it out: " -k "$KEY" "$option" true
    done
    refused 64 'usage: unknown option: --unlock; .* is released by rlock release$' \
        -k "$KEY" --unlock
}

@test "a mistyped option is answered with the option of this verb that is meant" {
    local typed meant
    while read -r typed meant; do
        refused 64 "usage: unknown option: $typed; did you mean $meant\\?$" \
            -k "$KEY" "$typed" 3 -- touch "$DIR/ran"
    done <<END
--tll --ttl
--TTL --ttl
--nonblok --nonblock
--on-lots --on-lost
--conflict --conflict-exit-code
--killafter --kill-after
END
    refused 64 'unknown option of status: --wach; did you mean --watch\?$' status --wach
    refused 64 'unknown option of status: --tll; see rlock help status$' status --tll
    refused 64 'unknown option: --frobnicate; see rlock --help$' -k "$KEY" --frobnicate
    echo 'nonblok = yes' >"$DIR/config"
    RLOCK_CONFIG=$DIR/config refused 78 ':1: unknown name "nonblok"; did you mean nonblock\?$' \
        -k "$KEY" -- true
    [[ ! -e $DIR/ran ]]
}

# ---- mistakes in the environment ----

@test "rlock warns of a variable that begins with RLOCK_ and that it doesn't read" {
    local row
    for row in 'RLOCK_TTTL RLOCK_TTL' 'RLOCK_TIMEOUT RLOCK_WAIT' 'RLOCK_PASWORD RLOCK_PASSWORD'; do
        run -0 --separate-stderr env "${row% *}=3" "$RLOCK" -k "$KEY" -- printenv "${row% *}"
        assert_line ": warning: ${row% *} is set, but rlock knows no such variable; "
        assert_match "$stderr" "; did you mean ${row#* }\\?$"
        assert_eq "$output" 3
    done
    RLOCK_HOST=h run -0 --separate-stderr rlock list
    assert_line '^rlock: warning: RLOCK_HOST is set, but rlock knows no such variable$'
    RLOCK_LABEL=x run -0 --separate-stderr rlock -k "$KEY" -- true
    assert_line ': warning: RLOCK_LABEL has no effect: --label can be given on the command line '
    RLOCK_TTTL=3 run -0 --separate-stderr rlock -q -k "$KEY" -- true
    assert_eq "$stderr" ""
    RLOCK_TTTL=3 run -0 --separate-stderr rlock help
    assert_eq "$stderr" ""
    RLOCK_TTTL='' RLOCK_VERSION=1.0 run -0 --separate-stderr rlock -k "$KEY" -- true
    assert_eq "$stderr" ""
    RLOCK_TTTL=3 run -0 --separate-stderr rlock --json -k "$KEY" -- true
    assert_match "$stderr" '"event":"warning".*"hint":"did you mean RLOCK_TTL\?"'
}

@test "an rlock inside another doesn't warn of the variables that rlock sets for its command" {
    run -0 --separate-stderr rlock -k "$KEY" --slots 2 -- \
        "$RLOCK" -k "$KEY:2" -- "$RLOCK" -k "$KEY:3" -- env
    assert_match "$output" 'RLOCK_PARENT_TOKENS='
    assert_eq "$stderr" ""
    REDIS_URL=redis://:pw@h run -0 --separate-stderr rlock -k "$KEY" -- \
        "$RLOCK" -k "$KEY:2" -- printenv RLOCK_STRIPPED
    assert_eq "$output|$stderr" 'REDIS_URL|'
}

@test "VALKEYCLI_AUTH is the password, as REDISCLI_AUTH is; of the two VALKEYCLI_AUTH counts" {
    redis_start protected --requirepass right
    RLOCK_URL=unix://$REDIS_SOCKET
    VALKEYCLI_AUTH=right run -0 --separate-stderr rlock -k "$KEY" -- \
        sh -c 'echo "${VALKEYCLI_AUTH-gone}"'
    assert_eq "$output|$stderr" 'gone|'
    VALKEYCLI_AUTH=right REDISCLI_AUTH=wrong run -0 rlock -k "$KEY" -- true
    VALKEYCLI_AUTH='' REDISCLI_AUTH=right run -0 rlock -k "$KEY" -- true
    VALKEYCLI_AUTH=wrong REDISCLI_AUTH=right run -77 rlock -k "$KEY" -- true
    VALKEYCLI_AUTH=wrong RLOCK_PASSWORD=right run -0 rlock -k "$KEY" -- true
}

# ---- mistakes in URLs ----

@test "valkey://, schemes in any case of letters, and ?db=N are URLs" {
    local url db
    while read -r url db; do
        RLOCK_URL='' run -0 --separate-stderr rlock -u "$url" -k "$KEY" -- sh -c \
            "$(asking) -n $db exists '$KEY'"
        assert_eq "$output|$stderr" '1|' "$url"
    done <<END
valkey://127.0.0.1:$REDIS_PORT 0
Valkey://127.0.0.1:$REDIS_PORT/2 2
redis://127.0.0.1:$REDIS_PORT?db=2 2
REDIS://127.0.0.1:$REDIS_PORT/?db=2 2
UNIX://$REDIS_SOCKET?db=3 3
END
    run -0 --separate-stderr rlock -u LOCAL: -k "$KEY" -- true
    refused 69 'unreachable: 127\.0\.0\.1:1: connect: ' -n -u VALKEYS://127.0.0.1:1 -k "$KEY" true
}

@test "a text that is nearly a URL is answered with the URL that is meant" {
    local given meant
    while read -r given meant; do
        refused 78 "misconfigured: --url: bad URL: \"$given\": .*; did you mean $meant\\?$" \
            -u "$given" -k "$KEY" -- true
    done <<END
localhost:6379 redis://localhost:6379
redis.example.com redis://redis.example.com
redis:/h redis://h
tcp://h:6379 redis://h:6379
https://h.example.com rediss://h.example.com
unix:/x unix:///x
/run/redis.sock unix:///run/redis.sock
local local:
END
    refused 78 'bad URL: "ftp://h": it starts with none of [^;]*$' -u ftp://h -k "$KEY" -- true
}

@test "a bad URL is named without its password, and with the place that it comes from" {
    local says='bad URL: "redis://user:\*+@h:\*+": the port isn.t a number from 1 to 65535$'
    local url=redis://user:hunter2@h:x1 file=$DIR/config
    refused 78 "misconfigured: --url: $says" -k "$KEY" -u $url -- true
    RLOCK_URL=$url refused 78 "misconfigured: RLOCK_URL: $says" -k "$KEY" -- true
    RLOCK_URL="redis://h $url" refused 78 "misconfigured: RLOCK_URL: $says" -k "$KEY" -- true
    RLOCK_URL='' REDIS_URL=$url refused 78 "misconfigured: REDIS_URL: $says" -k "$KEY" -- true
    printf '# servers\n\nurl = %s\n' "$url" >"$file"
    RLOCK_URL='' RLOCK_CONFIG=$file refused 78 "misconfigured: $file:3: $says" -k "$KEY" -- true
    # The same of a server that can't be reached, unless the command line names it.
    url=redis://user:hunter2@h.invalid says='unreachable: h.invalid:6379: resolve: [^;]*'
    RLOCK_URL=$url refused 69 "$says; RLOCK_URL names this server$" -n -k "$KEY" -- true
    RLOCK_URL='' VALKEY_URL=$url refused 69 "$says; VALKEY_URL names this server$" -n -k "$KEY" true
    RLOCK_URL='' REDIS_URL=$url refused 69 "$says; REDIS_URL names this server$" -n -k "$KEY" true
    echo "url = $url" >"$file"
    RLOCK_URL='' RLOCK_CONFIG=$file refused 69 "$says; $file:1 names this server$" -n -k "$KEY" true
    refused 69 "$says$" -u "$url" -n -k "$KEY" -- true
    # URLs in which the user forgot the @ or the host, or did not write a special character of the
    # password as %XX.
    for url in redis://user:hunter2 redis://user:hun/ter2@h redis://user:hun?ter2@h \
        user:hunter2@h:6379 redis://h?password=hunter2 redis://user:hunter2/1; do
        refused 78 'bad URL: ' -k "$KEY" -u "$url" -- true
        refute_match "$stderr" 'hun|ter2'
    done
}

# ---- where configuration files are ----

@test "the user's configuration is in XDG_CONFIG_HOME, if that is an absolute path" {
    mkdir -p "$DIR/xdg/rlock" "$DIR/.config/rlock"
    echo 'ttl = 3' >"$DIR/xdg/rlock/config"
    echo 'ttl = 4' >"$DIR/.config/rlock/config"
    cd "$DIR"
    XDG_CONFIG_HOME=$DIR/xdg run -0 rlock -k "$KEY" -- printenv RLOCK_TTL_MS
    assert_eq "$output" 3000
    XDG_CONFIG_HOME=xdg run -0 rlock -k "$KEY" -- printenv RLOCK_TTL_MS
    assert_eq "$output" 4000
    XDG_CONFIG_HOME='' run -0 rlock -k "$KEY" -- printenv RLOCK_TTL_MS
    assert_eq "$output" 4000
    XDG_CONFIG_HOME=$DIR/none run -0 rlock -k "$KEY" -- printenv RLOCK_TTL_MS
    [[ $output != 4000 ]] # ~/.config is not read, although the directory that was named is missing
}
