#!/usr/bin/env bats
# refusing: servers that refuse what rented ones refuse (tests/tools/refusing.py). One table says
# what each operation of rlock does there; each test is one row of it.
#
# A cell is
#   same       the operation ends as on any server, without a message
#   N:WORD     it ends with the status N, and what it says matches the row WORD of `messages`
#   WORD       it ends as on any server; doctor's report, or a message, matches the row WORD
#   any        it ends as on any server, or with 69 and one line that says why

load ../helpers/common
load ../helpers/fake

table='
rule           run      wait     renew    loss     release  list     status   history  doctor
none           same     same     same     same     same     same     same     same     same
no-keyless     same     same     same     same     same     same     same     same     same
literal-keys   commands commands same     same     same     same     same     78:past  weakly
declared-keys  same     same     same     same     same     same     same     same     same
no-eval        commands commands same     same     same     same     same     78:past  weakly
no-blocking    same     same     same     same     same     same     same     same     asks
no-info        same     same     same     same     same     same     same     same     untold
no-script-load same     same     same     same     same     same     same     same     same
no-config      same     same     same     same     same     same     same     same     unsynced
no-client      same     same     same     same     same     same     same     same     same
acl-denied     77:user  77:user  77:user  77:user  77:user  same     same     78:past  78:no
idle-cut=1     same     same     same     same     same     same     same     same     same
reset=3        same     same     same     same     same     any      any      any      any
'

declare -gA messages=(
    [commands]="warning: .* refuses rlock's scripts .*, so the lock was taken with plain commands"
    [past]='a history needs scripts: .*(refuses scripts .*use another|deny this user|refuses rl)'
    [user]="refused: .*the server's rules \\(ACL\\) deny"
    [weakly]='user: default
weak +scripts: refused, so rlock takes locks with plain commands .* .the server says: [^:]*
good +rights: all that a lock with plain commands needs for '
    [no]='user: default
unsafe +rights: denied: EVAL MULTI .the server says: NOPERM [^:]*
good +clock: .*rights$'
    [asks]='weak +rights: unknown to the server: BLPOP, so waiters ask .* says.*nothing to allow'
    [untold]='unknown +info: no answer .*the server says: .*, so version, .*documentation'
    [unsynced]='unknown +persistence: appendonly yes: no restart loses a lock; '
)

setup_file() { redis_start redis --appendonly yes; }

setup() {
    common_setup
    redis_use redis
    redis_cli flushall >/dev/null
    redis_cli script flush >/dev/null
    DIRECT=redis://127.0.0.1:$REDIS_PORT
}

direct() { RLOCK_URL=$DIRECT rlock "$@"; }

# Where the lock is taken by commands, waiters stand in no queue.
is_waiting() {
    [[ ${row[2]} == commands ]] || dead "$(<"$DIR/pids/wait")" ||
        exists "{$KEY:wait}:rlock:queue"
}
is_holding() { dead "$(<"$DIR/pids/loss")" || [[ -e $DIR/loss.runs ]]; }

# cell OPERATION STATUS REGEX: check how the operation ended ($status, $output, $stderr) by the cell
# of the table. On any server it ends with STATUS, $output matches REGEX, and $stderr is empty; of a
# lost lock, $stderr matches REGEX.
cell() {
    local i word wanted=("$@")
    for i in "${!columns[@]}"; do
        [[ ${columns[i]} != "$1" ]] || word=${row[i]}
    done
    case $word in
    any)
        assert_match "$status" "^(${wanted[1]}|69)$" "status of $1"
        [[ $status != 69 ]] ||
            assert_line 'unreachable: .* Connection reset by peer; the connection was lost: try '
        ;;
    [0-9]*:*)
        assert_eq "$status" "${word%%:*}" "status of $1 ($stderr)"
        assert_match "$output$stderr" "${messages[${word#*:}]}" "what $1 says"
        ;;
    *)
        assert_eq "$status" "${wanted[1]}" "status of $1 ($stderr)"
        if [[ $1 == loss ]]; then
            assert_match "$stderr" "${wanted[2]}" "stderr of $1"
        else
            assert_match "$output" "${wanted[2]}" "output of $1"
            [[ $word == commands ]] || assert_eq "$stderr" '' "stderr of $1"
        fi
        [[ $word == same ]] || assert_match "$output$stderr" "${messages[$word]}" "what $1 says"
        [[ $word != same || $1 != doctor ]] || refute_match "$output" '(weak|unsafe|unknown) '
        ;;
    esac
}

# each RULE: do all operations through a server with this rule, and check the cells of its row.
each() {
    local columns row token
    read -ra columns < <(grep '^rule ' <<<"$table")
    read -ra row < <(grep "^$1 " <<<"$table")
    assert_eq "${#row[@]}" "${#columns[@]}" 'cells of the row'
    start proxy "$ROOT/tests/tools/refusing.py" "$REDIS_PORT" "$1"
    RLOCK_URL=redis://127.0.0.1:$(ready_words "$DIR/proxy.out")
    export RLOCK_URL

    RLOCK_URL=$DIRECT hold holder -k "$KEY:wait"
    start wait "$RLOCK" -k "$KEY:wait" -w 60 -- true
    start loss "$RLOCK" -k "$KEY:loss" -t 3 -- \
        sh -c 'echo >"$0" && exec sleep 60' "$DIR/loss.runs"
    eventually 20 is_holding
    redis_cli set "$KEY:loss" other px 60000 >/dev/null

    run --separate-stderr rlock -k "$KEY:run" -- true
    cell run 0 ''
    token=$(direct acquire -k "$KEY:token" -t 60)
    RLOCK_TOKEN=$token run --separate-stderr rlock renew -k "$KEY:token" -t 60
    cell renew 0 ''
    run --separate-stderr timeout 60 "$RLOCK" list
    cell list 0 "$KEY:token +exclusive"
    run --separate-stderr timeout 60 "$RLOCK" status -k "$KEY:token"
    cell status 75 ': held'
    RLOCK_TOKEN=$token run --separate-stderr rlock release -k "$KEY:token"
    cell release 0 ''
    direct --history 5 -k "$KEY:past" -- true
    run --separate-stderr timeout 60 "$RLOCK" history -k "$KEY:past"
    cell history 0 "$KEY:past .* status 0"
    run --separate-stderr on_its_clock timeout 60 "$RLOCK" doctor -k "$KEY"
    cell doctor 0 'round trip'

    eventually 20 is_waiting
    let_go holder
    finish wait 60
    # On a busy machine the wait lasts 10 s and more, and rlock says so.
    stderr=$(grep -vE ': (waiting: for|granted: after) ' <<<"$stderr") || :
    cell wait 0 ''
    finish loss 60
    cell loss 76 'lost: the lock is held by another program'
}

@test "none: the proxy alone changes nothing" { each none; }
@test "no-keyless: scripts without keys are refused" { each no-keyless; }
@test "literal-keys: scripts whose keys aren't written as KEYS[n]" { each literal-keys; }
@test "declared-keys: scripts that touch other keys than KEYS" { each declared-keys; }
@test "no-eval: all scripts are refused" {
    local option
    each no-eval
    for option in -s '--slots 2' '--history 9'; do
        # shellcheck disable=SC2086
        run -78 --separate-stderr rlock $option -k "$KEY" -- true
        assert_line "\\(RLOCK_URL names this one\\), or lock without ${option% *}; "
    done
}
@test "no-blocking: BLPOP is refused; waiters ask instead" { each no-blocking; }
@test "no-info: INFO is refused" { each no-info; }
@test "no-script-load: SCRIPT is refused" { each no-script-load; }
@test "no-config: CONFIG is refused" { each no-config; }
@test "no-client: CLIENT is refused" { each no-client; }
@test "acl-denied: the user may only read" { each acl-denied; }
@test "idle-cut: a connection that is silent for a second is closed" { each idle-cut=1; }
@test "reset: each third reply breaks off" { each reset=3; }

@test "docs/servers.md names each rule, and each command that rlock or a script sends" {
    local word words
    words=$(awk 'NR > 3 && NF == 10 { sub(/=.*/, "", $1); print $1 }' <<<"$table"
        grep -o "ask('[A-Z]*" "$ROOT/lib/lua/shared/commands.lua" | cut -d"'" -f2
        grep -rhoE '(request_(begin|add_command)\([^"]*|STEP_[A-Z]+, [A-Z0-9_]+, )"[A-Z]+"' \
            "$ROOT/lib" | cut -d'"' -f2)
    for word in $words; do
        grep -q "^|.*\`${word}[ \`]" "$ROOT/docs/servers.md" || fail "missing: $word"
    done
}
