#!/usr/bin/env bats
# manual: the examples of rlock(1) do what the page says. Each test runs the lines of one example as
# they stand in the page; only addresses, and times that a test can't wait for, are replaced.

load ../helpers/common
load ../helpers/server
load ../helpers/systems
load ../helpers/quorum

setup() {
    systems_setup
    script job.sh 'echo ran'
    cp job.sh backup.sh
    cp job.sh deploy.sh
}

# example HEADING [SED_COMMAND...]: write the literal lines below this heading of rlock(1) to the
# file `example`, as a reader would copy them, changed by the sed commands.
example() {
    awk -v heading=".Ss $1" '
        /^\.S[hs] / { sub(/\\&/, ""); inside = $0 == heading }
        /^\.Ed/ { literal = 0 }
        inside && literal
        /^\.Bd -literal/ { literal = 1 }
        inside && sub(/^\.Dl /, "")' "$ROOT/man/rlock.1" | sed 's/^\\&//' >example
    [[ -s example ]] || fail "rlock(1) has no example under $1" || return 1
    shift
    for each; do
        cp example before
        sed -i "$each" example
        ! cmp -s example before ||
            fail "the sed command $each changes nothing in:" "$(<example)" || return 1
    done
}
run_example() { run --separate-stderr sh ./example 3>&-; }

answered() { sed -nE '/^\.Sh EXAMPLES/,/^\.Sh OPTIONS/s/^\.Ss (\\&)?//p' "$ROOT/man/rlock.1"; }
tested() {
    sed -nE "s/^ +example '([^']*)'.*/\1/p; s/^ +example \"([^\"]*)\".*/\1/p" "$BATS_TEST_FILENAME"
}

@test "each example of rlock(1) is run by a test" {
    assert_eq "$(answered | sort)" "$(tested | sort -u)"
    (($(answered | wc -l) >= 12))
}

@test "example: with local: a first try needs no server" {
    unset RLOCK_URL
    example 'See it work without Redis'
    run_example
    assert_status 0
    assert_eq "$output" hello
    assert_match "$stderr" 'rlock: demo: granted.*rlock: demo: released'
}

@test "example: while a person holds the lock, jobs say who, until when and why; release ends it" {
    example 'Nobody may deploy'
    sed 1q example | sh
    run --separate-stderr rlock -k deploy -n -- true
    assert_status 75
    assert_match "$stderr" 'incident 42: ask ann\), until ([0-9-]+ )?[0-9]+:'
    sed 1d example | sh
    run -0 rlock -k deploy -n -- true
}

@test "example: a job that is running is skipped with status 75, or 0 by -E 0" {
    example 'Skip the job if it is running'
    run_example
    assert_eq "$status:$output" 0:ran
    hold other -k job:nightly
    run_example
    assert_eq "$status:$output" 75:
    example 'Skip the job if it is running' 's/ -n/ -n -E 0/'
    run_example
    assert_eq "$status:$output" 0:
    let_go other
}

@test "example: a script tells by 75 and 76 what has happened to the lock" {
    example 'What is 76?' 's/ 10m / 2 /'
    run_example
    assert_eq "$output" $'ran\ndone'
    script backup.sh 'exit 3'
    run_example
    assert_eq "$output" failed
    script backup.sh "$(asking) set job:nightly other PX 60000 >/dev/null; exec sleep 60"
    sed -i 's/ -k / -t 4 -k /' example
    run_example
    assert_match "$output" '^the lock was lost: '
    run_example
    assert_match "$output" '^another machine runs it'
}

# bats test_tags=long
@test "example: only --max-hold limits the time of the job, which ends with 124" {
    script deploy.sh 'echo began; exec sleep 60'
    example "Which options limit the job's time?" 's/ 20m / 2 /' 's/ -w 30m / -w 1 -t 1 /'
    run_example
    assert_eq "$status:$output" 124:began
    # The TTL and the wait, 1 s each, have not ended the job.
    assert_match "$stderr" 'max-hold'
}

# bats test_tags=long
@test "example: a job that seems to hang in CI says for whom it waits, and gives up" {
    example 'It hangs in CI' 's/ 30m / 2 /'
    hold other -k deploy
    run_example
    assert_eq "$status:$output" 75:
    assert_match "$stderr" 'rlock: deploy: waiting: .*pid [0-9]+'
    let_go other
}

@test "example: status and list name the holder" {
    example 'Who has it?'
    hold other -k job:nightly
    run_example
    assert_status 0
    assert_match "$output" 'job:nightly: held.*holder +sh of .*, pid [0-9]+'
    assert_match "$output" 'HOLDER'$'\n''job:nightly +exclusive'
    let_go other
}

@test "example: break frees a lock" {
    example 'Free it' 's/$/ --yes/'
    redis_cli set job:nightly other PX 60000 >/dev/null
    run_example
    assert_status 0
    gone job:nightly
}

@test "example: cron runs the job with the password of a file, and skips it silently" {
    example 'Password in cron' "s,@locks.example.com,@127.0.0.1:$REDIS_PORT," \
        's,=/etc/rlock/,=./,' 's/^15 2 [*] [*] [*] *//' 's/^\(RLOCK_[A-Z_]*\)=/export \1=/'
    unset RLOCK_URL
    redis_user backup '>secret' '~*' >/dev/null
    (umask 077 && echo secret >password)
    run_example
    assert_eq "$status:$output:$stderr" 0:ran:
    redis_cli set job:nightly other PX 60000 >/dev/null
    run_example
    assert_eq "$status:$output:$stderr" 0::
    echo wrong >password
    run_example
    assert_status 77
}

@test "example: two steps of a pipeline run under one lock, which a third process can't get" {
    script migrate.sh 'RLOCK_TOKEN= rlock -n -k deploy -- true; echo "migrate $?"'
    script deploy.sh 'RLOCK_TOKEN= rlock -n -k deploy -- true; echo "deploy $?"'
    example 'Two steps of a pipeline'
    run_example
    assert_eq "$status:$output" $'0:migrate 75\ndeploy 75'
    gone deploy
    redis_cli set deploy other PX 60000 >/dev/null
    RLOCK_WAIT=2 run_example
    assert_eq "$status:$output" 75:
}

# bats test_tags=long
@test "example: a job is started although the server comes back late" {
    redis_start own
    export RLOCK_URL=unix://$REDIS_SOCKET
    redis_crash
    example 'Redis is down' 's/ 1h / 60 /'
    start late sh ./example
    never 1 dead "$pid"
    redis_restart
    finish late 20
    assert_eq "$status:$output" 0:ran
    redis_crash
    example 'Redis is down' 's/ 1h / 0.3 /'
    run_example
    assert_eq "$status:$output" 69:
}

# bats test_tags=long
@test "example: of three servers any one may fail; two servers are refused" {
    quorum_start 3
    local a b c
    read -r a b c <<<"$RLOCK_URL"
    each_of '1 2 3' quorum_is_old 2
    example 'Two servers' "s, redis://a , $a ," "s, redis://b , $b ," "s, redis://c , $c ,"
    sed -i 's/ -k / -t 1 -k /' example
    run_example
    assert_eq "$status:$output" 0:ran
    on 2 redis_crash
    run_example
    assert_eq "$status:$output" 0:ran
    sed -i "s, -u $c , ," example
    run_example
    assert_status 78
}
