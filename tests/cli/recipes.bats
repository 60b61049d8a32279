#!/usr/bin/env bats
# recipes: each block of docs/recipes.md does what the page says. A test takes a block out of the
# page, replaces addresses and paths, and runs the block as cron, systemd or the like would run it.

load ../helpers/common
load ../helpers/server
load ../helpers/blocks
load ../helpers/systems

DOCUMENT=$ROOT/docs/recipes.md

# RLOCK_URL names the test's server. bare_env, cron_run and the like leave it out.
setup() { systems_setup; }
free() { redis_cli del "$1" >/dev/null; }

@test "recipes: a test runs each block of the page" {
    assert_eq "$(blocks_of_page | sort)" "$(tested_blocks)"
    (($(blocks_of_page | wc -l) >= 19))
}

@test "recipes: the list at the head of the page has a link to each recipe" {
    assert_eq "$(sed -n 's/^- \[\(.*\)\](#.*)$/\1/p' "$DOCUMENT")" \
        "$(sed -n 's/^## //p' "$DOCUMENT")"
}

@test "cron: one host runs the job each night; if it fails, the next host runs it" {
    script backup 'echo backed up; exit 1'
    here 'cron' "$SERVER" "$COMMANDS" "s,^PATH=,PATH=$DIR/bin:,"
    cron_run 1
    assert_eq "$status:$output" '1:backed up'
    script backup 'echo backed up'
    cron_run 1
    assert_eq "$status:$output:$stderr" '0:backed up:'
    cron_run 1
    assert_eq "$status:$output:$stderr" 0::
    sed -i 's/ -w 1h / -w 1 /' block
    free job:nightly
    held_by_other job:nightly
    cron_run 1
    assert_eq "$status:$output:$stderr" 0::
}

# bats test_tags=long
@test "cron: a short job is not run again within a minute, and its skip is silent" {
    script sync 'echo synced'
    here 'cron' "$SERVER" "$COMMANDS" "s,^PATH=,PATH=$DIR/bin:,"
    cron_run 2
    assert_eq "$status:$output:$stderr" 0:synced:
    cron_run 2
    assert_eq "$status:$output:$stderr" 0::
    assert_between "$(ttl_ms job:sync)" 30000 60000 'time left'
}

# verify_unit FILE: check the unit in `block`, under the name FILE, by systemd-analyze if this
# machine has it; systemd-analyze must report nothing.
verify_unit() {
    command -v systemd-analyze >/dev/null || return 0
    cp block "$DIR/$1"
    run systemd-analyze --man=no verify "$DIR/$1"
    refute_match "$output" "$1:" 'what systemd-analyze says'
}

@test "systemd: the service runs once, reads its credential, and stops with one TERM" {
    mkdir "$DIR/credentials"
    (umask 077 && echo secret >"$DIR/credentials/rlock")
    redis_user backup '>secret' '~*' >/dev/null
    counts_signals backup TERM
    here 'systemd service and timer' 1 "s,//locks.example.com,//backup@127.0.0.1:$REDIS_PORT," \
        "$COMMANDS" "s,/usr/bin/rlock,$RLOCK,"
    verify_unit nightly.service
    grep -qx KillMode=mixed block
    unit_start service
    eventually 10 file_has "$DIR/service.out" ready
    # KillMode=mixed: systemd sends TERM to the main process alone.
    kill -TERM "$pid"
    finish service
    assert_eq "$(<"$DIR/signals")" TERM 'signals of the command'
    assert_status 0
    unit_start again
    finish again
    assert_eq "$status:$output" 0:
    free job:nightly
    held_by_other job:nightly
    sed -i 's/ -w 1h / -w 1 /' block
    unit_start busy
    finish busy
    assert_match "$(sed -n 's/^SuccessExitStatus=//p' block)" "^$status\$"
}

# bats test_tags=long
@test "systemd: the timer of the service is valid" {
    local calendar
    here 'systemd service and timer' 2
    calendar=$(sed -n 's/^OnCalendar=//p' block)
    assert_match "$calendar" '^\*-\*-\* [0-9]{2}:[0-9]{2}$'
    ! command -v systemd-analyze >/dev/null || run -0 systemd-analyze calendar "$calendar"
}

# kubernetes_start NAME: start the container in `block` as Kubernetes does: command and args, with
# the references $(NAME) replaced by the container's variables.
kubernetes_start() {
    local at=spec.jobTemplate.spec.template.spec.containers.0 command arguments url
    config_words command yaml $at.command
    config_words arguments yaml $at.args
    config_words url yaml $at.env.1.value
    arguments=("${arguments[@]//'$(NODE)'/node-7}")
    start "$1" bare_env PATH="$DIR/bin:$BASE" HOSTNAME=nightly-x NODE=node-7 RLOCK_URL="${url[0]}" \
        "${command[@]}" "${arguments[@]}"
}

@test "Kubernetes: the node is the holder's label, TERM reaches the command, a taken lock gives 0" {
    counts_signals backup TERM
    here 'Kubernetes CronJob' "$SERVER" "$COMMANDS"
    kubernetes_start pod
    eventually 10 file_has "$DIR/pod.out" ready
    run -75 rlock status -k job:nightly
    assert_match "$output" '\(node-7\)'
    kill -TERM "$pid"
    finish pod
    assert_eq "$status:$(<"$DIR/signals")" 0:TERM
    gone job:nightly
    held_by_other job:nightly
    sed -i 's/"-w", "1h"/"-w", "0.1"/' block
    kubernetes_start pod
    finish pod
    assert_eq "$status:$output" 0:
}

# bats test_tags=long
@test "container: ENTRYPOINT and CMD run as process 1, which passes the TERM of a stop on" {
    local words
    counts_signals backup TERM
    here 'Container ENTRYPOINT' "$SERVER" "$COMMANDS"
    container_words words
    start container bare_env PATH="$DIR/bin:$BASE" \
        RLOCK_URL="$(sed -n 's/^ENV RLOCK_URL=//p' block)" "${words[@]}"
    eventually 10 file_has "$DIR/container.out" ready
    kill -TERM "$(rlock_among "$pid")"
    finish container
    assert_eq "$status:$(<"$DIR/signals")" 0:TERM
    gone job:nightly
}

@test "GitHub: the step takes the lock, and a cancelled run ends the command by INT" {
    counts_signals deploy.sh INT
    here 'GitHub Actions' 1 "$SERVER"
    config_words url yaml jobs.deploy.env.RLOCK_URL
    github_step jobs.deploy.steps.0.run
    start step github_run RLOCK_URL="${url[0]}"
    eventually 10 file_has "$DIR/step.out" ready
    # The runner sends INT to the process of the step alone.
    kill -INT "$pid"
    finish step
    assert_eq "$(<"$DIR/signals")" INT 'signals of the command'
    gone deploy
    held_by_other deploy
    sed -i 's/ 30m / 2 /' step
    run -75 github_run RLOCK_URL="${url[0]}"
}

# github_output FILE: print the first value in a file that a step wrote for the runner.
github_output() { sed -n 2p "$1"; }

# bats test_tags=long
@test "GitHub: the steps of a job run under the lock of the action, and post releases it" {
    need node
    local action=$ROOT/packaging/github-action text url variables with
    script migrate.sh 'echo "migrate $*"; rlock status -k deploy >&2; exit 0'
    script deploy.sh 'echo "deploy $RLOCK_FENCE"'
    here 'GitHub Actions' 2 "$SERVER"
    config_words url yaml jobs.deploy.env.RLOCK_URL
    config_words text yaml jobs.deploy.steps.1.uses
    assert_match "${text[0]}" '/rlock/packaging/github-action@v[0-9.]+$'
    : >"$DIR/output" && : >"$DIR/env" && : >"$DIR/state"
    # The runner gives an action its inputs as INPUT_*. node is a child of this shell, which stands
    # for the runner: rlock-renewd renews the lease until this shell ends.
    mapfile -t with < <(sed -nE '/with:/,/- run/s/^ +(key|wait): (.*)/INPUT_\U\1\E=\2/p' block)
    assert_eq "${#with[@]}" 2
    variables=(RLOCK_URL="${url[0]}" GITHUB_OUTPUT="$DIR/output" GITHUB_STATE="$DIR/state"
        GITHUB_ENV="$DIR/env" RUNNER_TEMP="$DIR" INPUT_PATH=rlock "${with[@]}")
    (github_env "${variables[@]}" "$(type -p node)" "$action/main.js") 3>&-
    variables+=(RLOCK_KEY=deploy RLOCK_TOKEN="$(github_output "$DIR/env")")
    github_step jobs.deploy.steps.2.run
    sed -i "s/\\\${{ steps.lock.outputs.fence }}/$(github_output "$DIR/output")/" step
    run -0 --separate-stderr github_run "${variables[@]}"
    assert_match "$output" '^migrate --fence [0-9]{16}$'
    assert_match "$stderr" '^deploy: held.*https://github.com/shop/site/actions/runs/77'
    github_step jobs.deploy.steps.3.run
    run -0 --separate-stderr github_run "${variables[@]}"
    assert_eq "$output" "deploy $(github_output "$DIR/output")"
    (github_env "${variables[@]}" STATE_token="$(github_output "$DIR/state")" \
        STATE_program=rlock \
        "$(type -p node)" "$action/post.js")
    gone deploy
    # When the job's lock is released, the step with --nested ends with 76 and runs nothing.
    run -76 --separate-stderr github_run "${variables[@]}"
    assert_eq "$output" ''
}

# gitlab_start NAME: start the script of the job `deploy` in `block` as GitLab's runner does: bash
# reads the whole script, with all lines in one eval, from its standard input. Without
# FF_USE_NEW_BASH_EVAL_STRATEGY this eval has no subshell of its own, and bash ends with 1 whatever
# the status of the failed line.
gitlab_start() {
    local lines url format=': | eval %q'
    ! grep -q '^ *FF_USE_NEW_BASH_EVAL_STRATEGY: "true"$' block || format=': | (eval %q)'
    config_words lines yaml deploy.script
    config_words url yaml deploy.variables.RLOCK_URL
    # shellcheck disable=SC2059
    printf "set -eo pipefail\nset +o noclobber\n$format\nexit 0\n" \
        "$(printf '%s\n' "${lines[@]}")" >gitlab
    start "$1" gitlab_shell "${url[0]}"
}
gitlab_shell() {
    bare_env PATH="$DIR/bin:$BASE" RLOCK_URL="$1" CI=true bash --noprofile --norc <gitlab
}

# bats test_tags=long
@test "GitLab: a cancelled job releases the lock; 75 is an allowed failure, 69 is tried again" {
    counts_signals deploy.sh TERM
    here 'GitLab CI' "$SERVER"
    gitlab_start job
    eventually 10 file_has "$DIR/job.out" ready
    kill -TERM -- "-$pid" # the process group
    finish job
    eventually 10 gone deploy
    file_has "$DIR/signals" TERM
    held_by_other deploy
    sed -i 's/ 30m / 2 /' block
    gitlab_start busy
    finish busy
    config_words allowed yaml deploy.allow_failure.exit_codes
    assert_eq "$status" "${allowed[0]}"
    sed -i "s,127.0.0.1:$REDIS_PORT,127.0.0.1:1," block
    gitlab_start away
    finish away
    config_words retried yaml deploy.retry.exit_codes
    assert_eq "$status" "${retried[0]}"
}

# jenkins_start NAME: start the `sh` step in `block` as Jenkins does: sh -xe SCRIPT.
jenkins_start() {
    sed -n "s/^ *sh '\(.*\)'$/\1/p" block >script.sh
    start "$1" bare_env PATH="$DIR/bin:$BASE" JENKINS_NODE_COOKIE=c0 \
        RLOCK_URL="$(sed -n "s/^ *environment { RLOCK_URL = '\(.*\)' }/\1/p" block)" \
        sh -xe script.sh
}
with_cookie() { grep -lsz "^JENKINS_NODE_COOKIE=c0$" /proc/[0-9]*/environ | cut -d/ -f3; }

# bats test_tags=long
@test "Jenkins: an aborted build, whose processes all get TERM, releases the lock" {
    local each
    counts_signals deploy.sh TERM
    here 'Jenkins' "$SERVER"
    jenkins_start build
    eventually 10 file_has "$DIR/build.out" ready
    for each in $(with_cookie); do
        ! is_marked "$each" || kill -TERM "$each" 2>/dev/null || :
    done
    finish build
    eventually 10 gone deploy
    file_has "$DIR/signals" TERM
    held_by_other deploy
    sed -i 's/ 30m / 2 /' block
    jenkins_start busy
    ended 75 busy
}

@test "deploy freeze: others see why they wait, until the freeze is ended" {
    here 'Deploy freeze' 1
    run -0 sh ./block 3>&-
    assert_between "$(ttl_ms deploy)" 7000000 7200000 'time left'
    run -75 rlock -n -k deploy -- echo deployed
    assert_match "$output" 'incident 42: ask ann'
    here 'Deploy freeze' 2
    run -0 sh ./block
    run -0 rlock -n -k deploy -- echo deployed
    assert_eq "$output" deployed
}

# bats test_tags=long
@test "daemon: of two hosts one runs it; the other follows when the first has crashed" {
    script mailer 'echo "mailer $*"; exec sleep 60'
    here 'Exactly one daemon of N hosts' "$SERVER" "$COMMANDS" "s,/usr/bin/rlock,$RLOCK," \
        's/-t 15s/-t 2s/'
    verify_unit mailer.service
    unit_start first
    local first=$pid
    eventually 10 file_has "$DIR/first.out" 'mailer --foreground'
    unit_start second
    eventually 10 in_line 1 daemon:mailer
    run -0 test ! -s "$DIR/second.out"
    kill -KILL "$first"
    eventually 10 file_has "$DIR/second.out" 'mailer --foreground'
    kill -TERM "$pid"
    ended 143 second
}

# bats test_tags=long
@test "slots: each of four servers gets a port of its own, and a fifth waits" {
    local each
    script server 'echo "$2"; exec sleep 60'
    here 'Slots as port numbers'
    for each in 1 2 3 4; do
        start "s$each" sh ./block
        eventually 10 test -s "$DIR/s$each.out"
    done
    assert_eq "$(sort "$DIR"/s[1-4].out | xargs)" '8080 8081 8082 8083'
    sed -i 's/ --slots/ -n --slots/' block
    run -75 sh ./block
}

# bats test_tags=long
@test "metrics: the timer writes the locks to a file that node_exporter can read" {
    here 'Metrics timer' 1 "$SERVER" "s,/usr/bin/rlock,$RLOCK," \
        "s,/var/lib/prometheus/node-exporter,$DIR,"
    verify_unit rlock-metrics.service
    held_by_other job:nightly
    hold a -k job:metrics
    unit_start metrics
    finish metrics
    assert_eq "$status:$output:$stderr" 0::
    file_has "$DIR/rlock.prom" '^rlock_lock_held\{key="job:metrics"\} 1$'
    let_go a
    here 'Metrics timer' 2
    ! command -v systemd-analyze >/dev/null ||
        run -0 systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' block)"
    grep -qx 'OnCalendar=minutely' block
}

# at_port FROM TO: replace the document's TLS server, with FROM before its name, by the test's.
at_port() { echo "s,rediss://$1locks.example.com[:0-9]*,redis://${2}127.0.0.1:$REDIS_PORT,"; }

@test "passwords that expire: each connection runs the cloud's command again" {
    script backup 'echo backed up'
    script "$DIR/bin/gcloud" '[ "$*" = "auth print-access-token" ] && echo SECRET'
    script "$DIR/bin/az" 'case "$*" in "account get-access-token "*tsv) echo SECRET ;; esac'
    unset RLOCK_URL # these recipes name their server
    redis_cli acl setuser azure on '>SECRET' '+@all' '~*' >/dev/null
    here 'Passwords that expire' 2 "$(at_port '[-0-9]*@' azure@)" "$COMMANDS"
    run -0 --separate-stderr sh ./block
    assert_eq "$output:$stderr" 'backed up:'
    redis_start secured --requirepass SECRET
    here 'Passwords that expire' 1 "$(at_port '' '')" "$COMMANDS"
    run -0 --separate-stderr sh ./block
    assert_eq "$output:$stderr" 'backed up:'
}

@test "a job that must run without Redis: it runs without the lock after 69 only, and says so" {
    script report 'echo reported; exit 3'
    script "$DIR/bin/logger" 'echo "$*" >>'"$DIR/logged"
    here 'A job that must run without Redis' "$COMMANDS"
    run sh ./block
    assert_eq "$status:$output" 3:reported
    held_by_other job:report
    run sh ./block
    assert_eq "$status" 75
    refute_match "$output" reported
    [[ ! -e $DIR/logged ]]
    RLOCK_URL=unix://$DIR/none RLOCK_CONNECT_TIMEOUT=0.2 run --separate-stderr sh ./block
    assert_eq "$status:$output" 3:reported
    assert_match "$(<"$DIR/logged")" 'without the lock'
}

@test "SQL: the database refuses a former holder's transaction after a newer one has written" {
    need sqlite3
    sqlite3 shop.db 'CREATE TABLE sales (day, amount); CREATE TABLE totals (day, total);
        INSERT INTO sales VALUES (1, 10), (1, 20)'
    here 'Fencing in SQL' 1
    sqlite3 -bail shop.db <block
    here 'Fencing in SQL' 2
    install -m 755 block totals
    local old
    # shellcheck disable=SC2016
    old=$(rlock -k job:totals -- sh -c 'echo "$RLOCK_FENCE"')
    run -0 rlock -k job:totals -- ./totals
    sqlite3 shop.db 'INSERT INTO sales VALUES (1, 30)'
    RLOCK_FENCE=$old run ./totals
    ((status != 0))
    assert_match "$output" 'a newer holder of the lock has written'
    assert_eq "$(sqlite3 shop.db 'SELECT total FROM totals')" 30
    run -0 rlock -k job:totals -- ./totals
    assert_eq "$(sqlite3 shop.db 'SELECT total FROM totals')" 60
}

@test "flock: a script that holds the lock for several commands goes on only if it got the lock" {
    script dump.sh 'RLOCK_TOKEN= rlock -n -k job:backup -- true; echo "dump $?"'
    script upload.sh 'RLOCK_TOKEN= rlock -n -k job:backup -- true; echo "upload $?"'
    here 'Moving from flock' 1
    run -0 --separate-stderr sh ./block 3>&-
    assert_eq "$output" $'dump 75\nupload 75'
    gone job:backup
    held_by_other job:backup
    RLOCK_WAIT=2 run -75 --separate-stderr sh ./block 3>&-
    assert_eq "$output" ''
}

# table_rows HEADING: print the two columns of the table below the heading, with a tab between them.
table_rows() {
    awk -v heading="## $1" '/^## / { below = $0 == heading }
        below && /^\| `/' "$DOCUMENT" |
        sed 's/\\|/\x01/g; s/^| `//; s/` | `/\t/; s/` |$//; s/\x01/|/g'
}

@test "flock: both columns of the table run the same commands" {
    local left right n=0 each
    need flock
    script COMMAND 'echo ran'
    script A 'echo ran'
    script B cat
    export PATH=$PWD:$PATH
    while IFS=$'\t' read -r left right; do
        for each in "$left" "$right"; do
            [[ $each != *exec* && $each != RLOCK_TOKEN* ]] || each="$each"$'\n'COMMAND
            run bash -c "$each" 3>&- </dev/null
            assert_eq "$status:$output" 0:ran "$each"
        done
        n=$((n + 1))
    done < <(table_rows 'Moving from flock')
    ((n >= 6))
}

# bats test_tags=long
@test "flock: while hosts change to rlock, a script takes both locks, or ends with 1 if it can't" {
    need flock
    script backup.sh 'echo ran'
    here 'Moving from flock' 2 "s,/var/lock/,./,"
    run sh ./block
    assert_eq "$status:$output" 0:ran
    held_by_other job:backup
    run -1 --separate-stderr sh ./block
    free job:backup
    flock -n backup.lock sh ./block >output || status=$?
    assert_eq "$status:$(<output)" 1:
}

@test "consul: the options in the table are options of rlock" {
    local left right option known n=0
    known=$("$RLOCK" --dump=options | awk -F '\t' '{ print "-" $1; print "--" $2 }')
    while IFS=$'\t' read -r left right; do
        for option in $(grep -oE -- '(^| )--?[a-z-]+' <<<"$right"); do
            [[ $option == -- ]] || grep -qxe "$option" <<<"$known" ||
                fail "rlock has no option $option"
            n=$((n + 1))
        done
    done < <(table_rows 'Moving from consul lock')
    ((n >= 4))
}

# bats test_tags=long
@test "consul: while hosts change to rlock, the command runs under both locks" {
    # This script stands for consul: it accepts only the recipe's options, and locks a file.
    script consul 'o="lock -child-exit-code -shell=false locks/backup"' \
        '[ "$1 $2 $3 $4" = "$o" ] || exit 2; shift 4; exec flock -n consul.lock "$@"'
    # shellcheck disable=SC2016
    script backup.sh 'flock -n consul.lock true && echo free' 'rlock status -k job:backup; exit 3'
    need flock
    export PATH=$PWD:$PATH
    here 'Moving from consul lock'
    run -3 sh ./block
    assert_match "$output" '^job:backup: held'
}

# bats test_tags=long
@test "cronlock: an rlock on one host and a cronlock on another one exclude each other" {
    here 'Moving from cronlock' 1
    local prefix=cronlock. key now
    key=$prefix$(sed -n 's/.*CRONLOCK_KEY=\([a-z]*\).*/\1/p' block)
    here 'Moving from cronlock' 2 "$SERVER" "$COMMANDS"
    sed -i "1i PATH=$DIR/bin:$BASE" block
    script report 'echo reported'
    cron_run 1
    assert_eq "$status:$output:$stderr" 0:reported:
    # cronlock first asks by SETNX, and finds the lock taken until the time of --min-hold is over.
    now=$(redis_cli time | head -n 1)
    assert_eq "$(redis_cli setnx "$key" "$((now + 86401))")" 0
    assert_between "$(value "$key")" "$((now + 30))" "$((now + 42))" 'end of the lock'
    # While cronlock runs its command, the key has the time at which cronlock gives up the lock.
    redis_cli set "$key" "$((now + 86401))" >/dev/null
    cron_run 1
    assert_eq "$status:$output:$stderr" 0::
    # cronlock never deletes the key: after the end of its lock, the key has a time in the past.
    redis_cli set "$key" "$((now - 1))" >/dev/null
    cron_run 1
    assert_eq "$status:$output:$stderr" 0:reported:
}
