#!/usr/bin/env bats
# history: what the server notes about each grant, end and break of a lock (--history).

load ../helpers/common
load ../helpers/server
load ../helpers/quorum

setup() {
    server_setup
    redis_cli config set maxmemory 0 >/dev/null
    HISTORY="{$KEY}:rlock:history"
}

# entries [KEY]: prints each entry of the lock's history as one line: its kind, then its words.
entries() { redis_cli lrange "{${1:-$KEY}}:rlock:history" 0 -1 | grep .; }
entry() { entries | sed -n "$1p"; }

@test "history: a run notes its grant and its end, in a list that expires after 30 days" {
    local id
    run -3 rlock -k "$KEY" --history 10 --label 'x y' -- sh -c 'exit 3'
    id=$(entry 1 | grep -oE 'token=[0-9a-f]{12} fence=[0-9]+')
    assert_match "$(entry 1)" "^grant v1 $id try=1 ttl=30000 waited=0 history=10 host="
    assert_match "$(entry 1)" ' label=x%20y since=[0-9]+$'
    assert_match "$(entry 2)" \
        "^end v1 $id history=10 status=3 reason=exited held=[0-9]+ renewals=0$"
    assert_eq "$(entries | wc -l)" 2 'entries'
    assert_between "$(ttl_ms "$HISTORY")" 2591990000 2592000000 'PTTL of the history'
}

@test "history: release by the token notes who did it, and break who broke the lock" {
    local token
    token=$(rlock acquire -k "$KEY" --history 10)
    RLOCK_TOKEN=$token run -0 rlock release -k "$KEY"
    assert_match "$(entry 2)" "^end v1 token=${token:0:12} fence=0 at=[0-9]+ by=1 host="
    token=$(rlock acquire -k "$KEY" --history 10)
    run -0 rlock break -k "$KEY" --yes --label 'web1 is down'
    assert_match "$(entry 4)" \
        "^break v1 token=${token:0:12} at=[0-9]+ host=.* label=web1%20is%20down$"
    refute_match "$(redis_cli lrange "$HISTORY" 0 -1)" "$token" 'the history'
    redis_cli del "$HISTORY" >/dev/null
    rlock acquire -k "$KEY" >"$DIR/token"
    run -0 rlock break -k "$KEY" --yes --history 10
    assert_match "$(entry 1)" \
        "^break v1 token=$(cut -c 1-12 "$DIR/token") at=[0-9]+ history=10 host="
}

# ---- rlock history ----

# shown [OPTION...]: prints how each hold of the lock has ended, one word a line.
shown() { rlock history -k "$KEY" --json "$@" | sed 's/.*"end":"\([a-z]*\)".*/\1/'; }
ends() { rlock history -k "$KEY" | awk 'NR > 1' | cut -c "$(column END)-" | sed 's/   *.*//'; }
column() { rlock history -k "$KEY" | sed -n 1p | awk -v name="$1" '{ print index($0, name) }'; }

@test "history: the verb shows status, signal, max-hold, --once and the end by a token" {
    local token options
    run -3 rlock -k "$KEY" --history 99 -- sh -c 'exit 3'
    run -137 rlock -k "$KEY" --history 99 -- sh -c 'kill -KILL $$'
    run -124 rlock -k "$KEY" --history 99 --max-hold 0.1 -- sleep 60
    run -0 rlock -k "$KEY" --history 99 --once 0.01 -- true
    eventually 5 gone "$KEY"
    token=$(rlock acquire -k "$KEY" --history 99)
    assert_eq "$(ends | sed -n 5p) $(shown | tail -n 1)" 'held now held'
    RLOCK_TOKEN=$token run -0 rlock release -k "$KEY"
    ends >"$DIR/ends"
    assert_eq "$(head -n 4 "$DIR/ends")" "$(printf '%s\n' 'status 3' 'status 137, signal 9' \
        'status 124, max-hold' 'status 0, marked as done')"
    assert_match "$(sed -n 5p "$DIR/ends")" '^released by .*@.*, pid [0-9]+$'
    assert_eq "$(shown | xargs)" 'ended ended ended ended released'
    token='token=000000000001 fence=1'
    redis_cli lpush "$HISTORY" "end v1 $token status=0 reason=exited held=1" \
        "grant v1 $token ttl=30000 since=1700000000000" >/dev/null
    assert_eq "$(shown | wc -l) $(shown --since 1d | wc -l)" '6 5' 'holds, and those of a day'
    redis_cli lpush "$HISTORY" "grant v1 token=000000000002 fence=2 ttl=30000 since=1600000000000"
    assert_match "$(rlock history -k "$KEY" --json)" \
        '"vanished","granted":[^,]*,"after":[^,]*,"before":.*"ended","granted":.*"fence":1,'
}

@test "history: in a quorum a hold says how many servers have it" {
    quorum_start 3
    eventually 10 each_is_old
    eventually 30 has_on_all # a busy machine may leave a member's answer out
    assert_match "$(rlock history -k "$KEY" --json)" '"members":3,"alike":3'
    on 2 redis_cli del "$HISTORY" >/dev/null
    assert_eq "$(ends)" 'status 5, on 2 of 3 servers'
    assert_match "$(rlock list --format prometheus)" \
        $'\n'"rlock_lock_last_end_status\{key=\"$KEY\"\} 5"$'\n'
    assert_eq "$(rlock history --json | sed 's/^{"key":"\([^"]*\)".*/\1/')" "$KEY"
}
has_on_all() {
    quorum_flush
    run -5 rlock -k "$KEY" -t 3 --history 9 -- sh -c 'exit 5'
    [[ $(ends) == 'status 5' ]]
}
each_is_old() { each_of '1 2 3' has_run_for 2; }
