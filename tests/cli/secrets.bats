#!/usr/bin/env bats
# secrets: where passwords come from, which one counts if several are given, and who can see them.

load ../helpers/common

# The commands that set the server's passwords have the passwords in their arguments. So setup_file
# runs these commands: they have ended before a test looks for the passwords in the command lines of
# all processes.
setup_file() {
    redis_start
    install -m 600 /dev/null "$BATS_FILE_TMPDIR/password"
    printf '%s\n' "right-$RANDOM$RANDOM$RANDOM" >"$BATS_FILE_TMPDIR/password"
    redis_cli acl setuser job on ">job-$(<"$BATS_FILE_TMPDIR/password")" '~*' +@all
    redis_cli config set requirepass "$(<"$BATS_FILE_TMPDIR/password")"
}
setup() {
    common_setup
    mkdir "$DIR/in" # input of rlock; the rest of $DIR is its output
    SECRET=$(<"$BATS_FILE_TMPDIR/password")
    AT=127.0.0.1:$REDIS_PORT
    unset REDISCLI_AUTH "${!RLOCK_PASSWORD@}"
    # a URL without a password, for the tests that give only the password
    export REDIS_URL=redis://$AT
}

admin() { REDISCLI_AUTH=$SECRET redis_cli "$@"; }

config() {
    echo "$1" >>"$DIR/in/config"
    export RLOCK_CONFIG=$DIR/in/config
}

WAYS='url url_attached url_equals file RLOCK_URL RLOCK_PASSWORD_FILE RLOCK_PASSWORD REDIS_URL
    REDISCLI_AUTH url_config file_config'

# given WAY PASSWORD COMMAND...: runs COMMAND so that rlock gets PASSWORD by WAY: an option, a
# variable or the configuration file. COMMAND may be another `given`, to give a second password.
given() {
    local way=$1 password=$2 file=$DIR/in/$1 url=redis://:$2@$AT
    shift 2
    printf '%s\n' "$password" >"$file"
    case $way in
        url) "$@" -u "$url" ;;
        url_attached) "$@" "-u$url" ;;
        url_equals) "$@" "--url=$url" ;;
        url_config) config "url = $url" && "$@" ;;
        file) "$@" --password-file "$file" ;;
        RLOCK_PASSWORD_FILE) RLOCK_PASSWORD_FILE=$file "$@" ;;
        file_config) config "password-file = $file" && "$@" ;;
        RLOCK_URL) RLOCK_URL=$url "$@" ;;
        REDIS_URL) REDIS_URL=$url "$@" ;;
        RLOCK_PASSWORD) RLOCK_PASSWORD=$password "$@" ;;
        REDISCLI_AUTH) REDISCLI_AUTH=$password "$@" ;;
    esac
    rm -f "$DIR/in/config"
    unset RLOCK_CONFIG
}

accepted() { run -0 --separate-stderr rlock -n -k "$KEY" "$@" -- true; }
refused() {
    run -77 --separate-stderr rlock -n -k "$KEY" "$@" -- touch "$DIR/ran"
    assert_line "^rlock: $KEY: refused: "
    [[ ! -e $DIR/ran ]]
}

# assert_unseen SECRET...: no output of this test, and no command line of any process, has the
# secret.
assert_unseen() {
    local secret
    cat /proc/[0-9]*/cmdline >"$DIR/cmdlines" 2>/dev/null || :
    printf '%s\n' "${output:-}" "${stderr:-}" >"$DIR/said"
    for secret; do
        ! grep -rlFe "$secret" --exclude-dir=in --exclude=job.env "$DIR" ||
            fail "a password is in these files"
        ! grep -qFe "$secret" "$DIR/job.env" || fail "a password is in the command's environment"
    done
}

# ---- right and wrong passwords ----

@test "a password from each place is used and shown nowhere; a wrong one is refused with 77" {
    local way stripped
    for way in $WAYS; do
        given "$way" "$SECRET" hold job -v --report "$DIR/report" -k "$KEY" -t 20
        admin get "$KEY" >"$DIR/value"
        assert_match "$(<"$DIR/value")" '^[0-9a-f]{32} '
        assert_unseen "$SECRET"
        stripped=$way
        [[ $way == R* ]] || stripped=''
        assert_eq "$(env_of job RLOCK_STRIPPED)" "$stripped" 'RLOCK_STRIPPED'
        assert_eq "$([[ -z $stripped ]] || env_of job "$stripped")" ""
        let_pass job
        assert_match "$stderr" ': granted '
        given "$way" "$SECRET" accepted -v --json
        assert_unseen "$SECRET"
        given "$way" wrong-secret refused -v --report "$DIR/report"
        assert_unseen wrong-secret
        given "$way" wrong-secret run -77 --separate-stderr rlock --json -v -k "$KEY" true
        assert_unseen wrong-secret
    done
}

# ---- the environment of the command, and a nested rlock ----

@test "the command gets no variable that may have a password, except with --pass-credentials" {
    local name url=redis://u:$SECRET@h
    export RLOCK_PASSWORD_OLD=$SECRET
    given RLOCK_PASSWORD "$SECRET" given REDISCLI_AUTH x given REDIS_URL y hold job -k "$KEY" \
        -u "redis://$AT"
    assert_unseen "$SECRET"
    # shellcheck disable=SC2046 # several words
    assert_eq "$(printf '%s\n' $(env_of job RLOCK_STRIPPED) | sort | tr '\n' ' ')" \
        'REDISCLI_AUTH REDIS_URL RLOCK_PASSWORD RLOCK_PASSWORD_OLD '
    let_go job
    given RLOCK_PASSWORD "$SECRET" given REDISCLI_AUTH x given REDIS_URL y hold kept -k "$KEY" \
        -u "redis://$AT" --pass-credentials
    for name in RLOCK_PASSWORD:$SECRET RLOCK_PASSWORD_OLD:$SECRET REDISCLI_AUTH:x RLOCK_STRIPPED: \
        "REDIS_URL:redis://:y@$AT"; do
        assert_eq "$(env_of kept "${name%%:*}")" "${name#*:}" "${name%%:*}"
    done
    let_pass kept
}

@test "after its start, the environment of rlock in /proc has no password" {
    local variable its_pid
    export SECRET_URL=redis://:$SECRET@$AT
    for variable in "RLOCK_PASSWORD=$SECRET" "REDISCLI_AUTH=$SECRET" "RLOCK_URL=$SECRET_URL" \
        "REDIS_URL=$SECRET_URL"; do
        unset SECRET_URL
        for its_pid in '' --pass-credentials; do
            rm -f "$DIR"/go "$DIR"/job.*
            mkfifo "$DIR/go"
            # shellcheck disable=SC2086 # nothing, or an option
            start job env "$variable" "$RLOCK" $its_pid -k "$KEY" -- sh -c \
                'echo running; read -r _ <"$0"' "$DIR/go"
            eventually 10 file_has "$DIR/job.out" running
            ! grep -qaFe "$SECRET" "/proc/$pid/environ" ||
                fail "rlock's environment has the password: $variable"
            ! grep -qaFe "$SECRET" "/proc/$(guard_of "$pid")/environ" ||
                fail "the guard's environment has the password: $variable"
            grep -qa "${variable%%=*}" "/proc/$pid/environ" || fail "the test can't see $variable"
            echo >"$DIR/go"
            ended 0 job
        done
    done
}

# memory_has PID TEXT: is the text in memory that the process can write?
memory_has() {
    python3 - "$1" "$2" <<'END'
import sys
pid, text = sys.argv[1], sys.argv[2].encode()
found = False
memory = open(f"/proc/{pid}/mem", "rb", 0)
for line in open(f"/proc/{pid}/maps"):
    words = line.split()
    if "w" not in words[1] or line.rstrip().endswith(("[vvar]", "[vsyscall]")):
        continue
    start, end = (int(at, 16) for at in words[0].split("-"))
    try:
        memory.seek(start)
        found = found or text in memory.read(end - start)
    except OSError:
        pass
sys.exit(not found)
END
}

# bats test_tags=long
@test "the guard's memory has no password, and rlock's has none that is in a password file" {
    local way
    ((EUID == 0)) || skip 'only root may read the memory of rlock'
    ! is_sanitized || skip 'a sanitizer keeps freed memory, and maps terabytes'
    need python3
    for way in url RLOCK_PASSWORD RLOCK_URL REDIS_URL REDISCLI_AUTH url_config file \
        RLOCK_PASSWORD_FILE; do
        given "$way" "$SECRET" hold job -k "$KEY"
        ! memory_has "$(guard_of "$pid")" "$SECRET" ||
            fail "the guard's memory has the password: $way"
        case $way in
            *file | *FILE) ! memory_has "$pid" "$SECRET" ||
                fail "rlock's memory has the password: $way" ;;
            *) memory_has "$pid" "$SECRET" || fail "the test does not find the password: $way" ;;
        esac
        let_pass job
    done
    # the password of a URL that rlock doesn't use
    REDIS_URL=redis://:unused-word@$AT hold job -k "$KEY" -u "redis://:$SECRET@$AT"
    ! memory_has "$pid" unused-word || fail "rlock's memory has a password that it doesn't need"
    let_pass job
}

# its_owner PID: prints who owns the files in /proc/PID: root, if the process isn't dumpable.
its_owner() { stat -c %u "/proc/$1/environ"; }

@test "for an ordinary user rlock isn't dumpable if it has a password; guard and command are" {
    local way user=(setpriv --reuid=4711 --clear-groups)
    ((EUID == 0)) || skip 'only root can become another user'
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$DIR/.." "$DIR" 2>/dev/null || :
    chmod 777 "$DIR"
    mkfifo -m 666 "$DIR/go"
    echo "$SECRET" >"$DIR/in/file"
    chmod -R a+rX "$DIR/in"
    "${user[@]}" test -x "$RLOCK" || skip 'another user may not run this rlock'
    for way in "--url=redis://:$SECRET@$AT" "--password-file=$DIR/in/file"; do
        rm -f "$DIR/job.out"
        start job "${user[@]}" "$RLOCK" "$way" -t 3 -k "$KEY" -- sh -c \
            'ulimit -c; stat -c %u /proc/self/environ; echo running; read -r _ <"$0"' "$DIR/go"
        eventually 10 file_has "$DIR/job.out" running
        assert_eq "$(sed -n 2p "$DIR/job.out")" 4711 "owner of the command's files in /proc"
        assert_eq "$(its_owner "$(guard_of "$pid")")" 4711 "owner of the guard's files in /proc"
        assert_eq "$(its_owner "$pid")" 0 'rlock, which has the password or looks it up'
        echo >"$DIR/go"
        ended 0 job
    done
}

# nested ARG...: runs rlock in the command of an rlock, with another key.
nested() {
    run --separate-stderr rlock -k "$KEY" "$@" -- "$RLOCK" -n -k "$KEY:inner" -- echo inner
}

@test "a nested rlock that lacks the password names the variable that was removed" {
    given RLOCK_PASSWORD "$SECRET" nested
    assert_status 77
    assert_line "^rlock: $KEY:inner: refused: .*; a parent rlock removed passwords.*config.*NOAUTH"
    RLOCK_PASSWORD=$SECRET run -77 --separate-stderr rlock -k "$KEY" -- \
        env RLOCK_PASSWORD_FILE="$BATS_FILE_TMPDIR/password" "$RLOCK" -k "$KEY:1" -- \
        "$RLOCK" -k "$KEY:2" -- true
    assert_line "^rlock: $KEY:2: refused: .*parent rlock"
}

@test "a nested rlock gets the password from the configuration file or by --pass-credentials" {
    local way
    for way in url_config file_config; do
        given "$way" "$SECRET" nested
        assert_eq "$status $output" '0 inner' "$way"
    done
    for way in RLOCK_PASSWORD REDISCLI_AUTH RLOCK_URL REDIS_URL RLOCK_PASSWORD_FILE; do
        given "$way" "$SECRET" nested --pass-credentials
        assert_eq "$status $output" '0 inner' "$way"
    done
}
