#!/usr/bin/env bats
# timestamp: --protocol timestamp, for locks that are shared with older programs: the key's value is
# the time at which the lock expires.

load ../helpers/common
load ../helpers/server

setup() {
    common_setup
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT RLOCK_PROTOCOL=timestamp
}

holder() { redis_cli get "$KEY"; }

@test "timestamp: the key holds the time of its expiry in s or ms, and expires then" {
    local now unit digits
    while read -r unit digits; do
        now=$(date +%s)
        hold "job-$unit" -k "$KEY" -t 20 --timestamp-unit "$unit"
        assert_match "$(holder)" "^[0-9]{$digits}$"
        assert_between "$(holder | cut -c 1-10)" $((now + 19)) $((now + 25))
        assert_between "$(redis_cli pttl "$KEY")" 10000 25000
        assert_match "$(env_of "job-$unit" RLOCK_FENCE)" '^[0-9]{16}$'
        let_pass "job-$unit"
        gone "$KEY"
    done <<<$'s 10\nms 13'
    assert_eq "$(redis_cli --scan | grep -v ':rlock:fence$')" '' 'keys beside the last fence'
}

@test "timestamp: rlock's renewals move the time; another owner's time makes it end the command" {
    local first other
    start job "$RLOCK" -t 2 -k "$KEY" --timestamp-unit ms -- sleep 20
    eventually 5 exists "$KEY"
    first=$(holder)
    moved() { (($(holder) > first)); }
    eventually 5 moved
    other=$(($(date +%s%3N) + 60000))
    redis_cli set "$KEY" "$other"
    ended 76 job
    assert_eq "$(holder)" "$other"
}
