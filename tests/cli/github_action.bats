#!/usr/bin/env bats
# github_action: packaging/github-action takes a lock in one step of a job, and releases it at the
# job's end. The test does what GitHub's runner does: it starts main.js and post.js with node, gives
# them the inputs as INPUT_*, and reads the files by which a step tells the runner something.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    need node
    ACTION=$ROOT/packaging/github-action
    mkdir "$DIR/bin" "$DIR/temp"
    ln -s "$RLOCK" "$DIR/bin/rlock"
    export PATH=$DIR/bin:$PATH ACTION
    export GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=shop/site GITHUB_RUN_ID=77
    export RUNNER_TEMP=$DIR/temp GITHUB_OUTPUT=$DIR/output GITHUB_STATE=$DIR/state
    export GITHUB_ENV=$DIR/env
    : >"$GITHUB_OUTPUT" && : >"$GITHUB_STATE" && : >"$GITHUB_ENV"
    export INPUT_KEY=$KEY INPUT_PATH=rlock
    # The runner is a shell that runs each line of the named pipe `steps`, until the test closes it.
    cat >"$DIR/runner" <<'RUNNER'
while read -r line; do eval "$line"; echo "$?" >>"$DIR/statuses"; done <"$DIR/steps"
RUNNER
    mkfifo "$DIR/steps"
    start runner bash "$DIR/runner"
    exec {STEPS}>"$DIR/steps"
}

# step COMMAND: let the runner run the command, and set `status` to the status of the command.
step() {
    local before
    before=$(statuses)
    echo "$1" >&"$STEPS"
    eventually 20 statuses_are "$((before + 1))"
    status=$(tail -n 1 "$DIR/statuses")
}
statuses() { wc -l <"$DIR/statuses" 2>/dev/null || echo 0; }
statuses_are() { (($(statuses) == $1)); }

# told FILE NAME: print the value of NAME in a file that a step wrote for the runner.
told() {
    awk -v name="$2" '!end && index($0, name "<<") == 1 { end = substr($0, length(name) + 3); next }
        end && $0 == end { end = ""; next }
        end' "$1"
}
main() { step 'node "$ACTION/main.js"'; }
post() {
    # The runner gives post.js each value that main.js stored, as STATE_*.
    step "STATE_token='$(told "$GITHUB_STATE" token)' STATE_log='$(told "$GITHUB_STATE" log)' \
        STATE_program='$(told "$GITHUB_STATE" program)' \
        STATE_sleeper='$(told "$GITHUB_STATE" sleeper)' node \"\$ACTION/post.js\""
}
renewer_is_gone() { [[ -z $(renewer) ]]; }
renewer() { named rlock-renewd; }

@test "action: main takes the lock and tells its fence, steps run under it, post releases it" {
    main
    assert_status 0
    run -75 rlock status -k "$KEY"
    assert_match "$output" '\(https://github.com/shop/site/actions/runs/77\)'
    assert_match "$(told "$GITHUB_OUTPUT" fence)" '^[0-9]{16}$'
    file_has "$DIR/runner.out" "^::add-mask::$(told "$GITHUB_ENV" RLOCK_TOKEN)\$"
    assert_eq "$(told "$GITHUB_ENV" RLOCK_KEY)" "$KEY"
    assert_eq "$(told "$GITHUB_ENV" RLOCK_FENCE)" "$(told "$GITHUB_OUTPUT" fence)"
    RLOCK_TOKEN=$(told "$GITHUB_ENV" RLOCK_TOKEN) run -0 rlock --nested -k "$KEY" -- echo deployed
    assert_eq "$output" deployed
    run -75 rlock -n -k "$KEY" -- true
    post
    assert_status 0
    gone "$KEY"
    eventually 15 renewer_is_gone
}

@test "action: post fails the job if the lock was lost, and says so" {
    main
    held_by_other
    post
    assert_status 1
    file_has "$DIR/runner.out" '^::error title=rlock::the lock was lost while the job ran'
}
held_by_other() { redis_cli set "$KEY" other PX 60000 >/dev/null; }

@test "action: main fails if the lock is taken for longer than the wait, and post does nothing" {
    step 'export INPUT_WAIT=2'
    held_by_other
    main
    assert_status 1
    file_has "$DIR/runner.err" 'timeout: .*held by another program'
    file_has "$DIR/runner.out" '^::error title=rlock::the lock was not taken: rlock ended with 75'
    post
    assert_status 0
    assert_eq "$(value "$KEY")" other
}

@test "action: main leaves the queue when somebody cancels the run" {
    held_by_other
    echo 'node "$ACTION/main.js" & echo $! >"$DIR/main.pid"; wait $!' >&"$STEPS"
    eventually 10 in_line 1
    kill -INT "$(<"$DIR/main.pid")"
    eventually 10 statuses_are 1
    assert_eq "$(<"$DIR/statuses")" 1
    in_line 0
}

@test "action: when the runner is killed, the lock is free before its lease ends" {
    step 'export INPUT_TTL=10m'
    main
    exists "$KEY"
    kill -KILL "$(<"$DIR/pids/runner")"
    eventually 10 gone "$KEY"
}

# bats test_tags=long
@test "action: in a container, where no runner can be seen, the lock is held until post" {
    ((EUID == 0)) || skip 'only root can make a PID namespace'
    need unshare
    local sleeper
    # The shell is process 1 of the namespace, so the parent of main.js is process 1.
    # shellcheck disable=SC2016
    start container "${AS_PROCESS_1[@]}" sh -c '
        node "$ACTION/main.js" || exit; echo taken; read -r token <"$DIR/go"
        STATE_token=$token STATE_program=rlock STATE_sleeper=$(cat "$DIR/sleeper") \
            node "$ACTION/post.js" || exit
        echo released; exec cat "$DIR/end"'
    mkfifo "$DIR/go" "$DIR/end"
    eventually 20 file_has "$DIR/container.out" taken
    never 1 gone "$KEY"
    told "$GITHUB_STATE" sleeper >"$DIR/sleeper"
    assert_match "$(<"$DIR/sleeper")" '^[0-9]+$'
    timeout 10 tee "$DIR/go" <<<"$(told "$GITHUB_STATE" token)" >/dev/null
    eventually 20 file_has "$DIR/container.out" released
    gone "$KEY"
    timeout 10 tee "$DIR/end" </dev/null >/dev/null
    ended 0 container
}

@test "action: a label may begin with -" {
    step 'export INPUT_LABEL="--- night ---"'
    main
    assert_status 0
    run -75 rlock status -k "$KEY"
    assert_match "$output" '\(--- night ---\)'
    post
    assert_status 0
}

@test "action: several keys are locked together, and the password stays out of the arguments" {
    redis_user ci '>secret' '~*' >/dev/null
    step "unset RLOCK_URL; export INPUT_PASSWORD=secret INPUT_URL=redis://ci@127.0.0.1:$REDIS_PORT"
    step "export INPUT_KEY=\$'$KEY:1\\n $KEY:2 \\n'"
    main
    assert_status 0
    exists "$KEY:1" && exists "$KEY:2"
    assert_eq "$(told "$GITHUB_ENV" RLOCK_KEY)" "$KEY:1"$'\n'"$KEY:2"
    run -1 grep -lasz secret /proc/"$(renewer)"/cmdline
    post
    assert_status 0
    gone "$KEY:1" && gone "$KEY:2"
}

@test "action: without a key, and without an rlock, the step fails and says what to do" {
    step 'unset INPUT_KEY'
    main
    assert_status 1
    file_has "$DIR/runner.out" '^::error title=rlock::no key: set the input'
    step "export INPUT_KEY=$KEY INPUT_PATH=no-such-rlock"
    main
    assert_status 1
    file_has "$DIR/runner.out" '^::error title=rlock::.*no-such-rlock.*: name the program'
}

@test "action: action.yml names each input that the scripts read, and no others, and each output" {
    local inputs
    grep -qx '  post-if: always()' "$ACTION/action.yml"
    inputs=$(sed -n '/^inputs:/,/^outputs:/s/^  \([a-z]*\):$/\1/p' "$ACTION/action.yml" | sort)
    assert_eq "$inputs" "$(grep -ohE "input\('[a-z]+'\)" "$ACTION"/*.js | cut -d"'" -f2 | sort -u)"
    assert_eq "$(sed -n '/^outputs:/,/^runs:/s/^  \([a-z]*\):$/\1/p' "$ACTION/action.yml")" \
        "$(grep -ohE "'GITHUB_OUTPUT', '[a-z]+'" "$ACTION/main.js" | cut -d"'" -f4)"
    [[ -s $ACTION/$(sed -n 's/^  main: //p' "$ACTION/action.yml") ]]
    [[ -s $ACTION/$(sed -n 's/^  post: //p' "$ACTION/action.yml") ]]
}
