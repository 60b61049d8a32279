#!/usr/bin/env bats
# contention: many processes ask for a lock at the same moment, and one at a time holds it.

load ../helpers/common
load ../helpers/server

setup() {
    common_setup
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT DIR
    many=200
    ! is_sanitized || many=40
}

# crowd COMMAND...: starts the command $many times at once; counts[STATUS] is how many ended with
# that status.
crowd() {
    local pids=() each its_status
    counts=()
    for ((each = 0; each < many; each++)); do
        "$@" >>"$DIR/crowd.out" 2>&1 </dev/null 3>&- &
        pids+=($!)
    done
    for each in "${pids[@]}"; do
        its_status=0
        wait "$each" || its_status=$?
        counts[its_status]=$((${counts[its_status]:-0} + 1))
    done
}

key_is_free() { [[ $(redis_cli exists "$KEY") == 0 ]]; }

# bats test_tags=long
@test "200 waiters add 1 to a number, one at a time, and leave only the key of the fence" {
    redis_cli flushall >/dev/null
    echo 0 >"$DIR/sum"
    # shellcheck disable=SC2016
    crowd "$RLOCK" -k "$KEY" -w 60 -- sh -c 'read -r n <"$DIR/sum"; echo $((n + 1)) >"$DIR/sum"'
    assert_eq "${counts[*]@K}" "0 \"$many\"" 'each status, and how many ended with it'
    assert_eq "$(<"$DIR/sum")" "$many" sum
    run redis_cli --scan
    assert_eq "${#lines[@]}" 1 'keys left'
    assert_match "$output" fence
    assert_between "$(redis_cli pttl "$output")" 1 $((8 * 86400 * 1000)) 'PTTL of the fence'
}

# bats test_tags=long
@test "of 200 rlocks with -n, those that ran their command exit with 0, all others with 75" {
    # shellcheck disable=SC2016
    crowd "$RLOCK" -k "$KEY" -n -- sh -c 'echo >>"$DIR/ran"; sleep 0.05'
    assert_eq "${counts[0]}" "$(wc -l <"$DIR/ran")" \
        'processes that ended with 0, and commands that ran'
    assert_eq "$((counts[0] + counts[75]))" "$many" 'processes that ended with 0 or 75'
    key_is_free
}
