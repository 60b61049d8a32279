#!/usr/bin/env bats
# timestamp: --protocol timestamp, for locks that are shared with older programs: the key's value is
# the time at which the lock expires.

load ../helpers/common
load ../helpers/server

setup() {
    common_setup
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT RLOCK_PROTOCOL=timestamp
    # The older program: a shell script with only the commands of SETNX's manual page.
    cat >"$DIR/older" <<'END'
# older PORT KEY TURNS COMMAND: takes the lock for 5 s and runs COMMAND, TURNS times.
exec {redis}<>"/dev/tcp/127.0.0.1/$1" || exit
ask() { # ask WORD...: sends a command and sets `answer`
    local word
    printf '*%d\r\n' $# >&$redis
    for word; do printf '$%d\r\n%s\r\n' ${#word} "$word" >&$redis; done
    IFS= read -r answer <&$redis
    case $answer in
        '$-1'*) answer='' ;;
        '$'*) IFS= read -r answer <&$redis ;;
    esac
    answer=${answer%$'\r'}
}
take() {
    local now mine
    while
        now=${EPOCHSECONDS} mine=$((EPOCHSECONDS + 5 + 1))
        ask SETNX "$1" $mine
        [[ $answer != :1 ]]
    do
        ask GET "$1"
        if [[ $answer && $answer -lt $now ]]; then
            ask GETSET "$1" $mine
            [[ $answer && $answer -ge $now ]] || break
        fi
        rest "0.0$((RANDOM % 4 + 1))"
    done
    until=$mine
}
for ((turn = 0; turn < $3; turn++)); do
    take "$2"
    eval "$4"
    ((EPOCHSECONDS >= until)) || ask DEL "$2"
done
END
    # The command under the lock: it counts itself, and notes if another one runs at the same time.
    cat >"$DIR/critical" <<'END'
exec 9>>"$DIR/alone"
flock -n 9 || echo overlap >>"$DIR/overlaps"
read -r n <"$DIR/count"
echo $((n + 1)) >"$DIR/count"
exec 9>&-
END
    echo 0 >"$DIR/count"
    export DIR KEY
    export -f rest # for the older program
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

@test "timestamp: nested runs, --min-hold and a killed holder work as with other locks" {
    run -0 --separate-stderr rlock -k "$KEY" -- "$RLOCK" -n -k "$KEY" -- echo inner
    assert_eq "$output" inner
    run -0 --separate-stderr rlock --min-hold 9 -k "$KEY" -- true
    assert_between "$(redis_cli pttl "$KEY")" 5000 12000
    run -75 --separate-stderr rlock -n -k "$KEY" -- true
    redis_cli del "$KEY"
    start killed "$RLOCK" -t 1 -k "$KEY" -- sleep 20
    eventually 5 exists "$KEY"
    kill -KILL "$(<"$DIR/pids/killed")"
    run -0 --separate-stderr rlock -w 10 -k "$KEY" -- true
}

# RLOCK_TEST_TURNS=100 makes the test longer.
# bats test_tags=long
@test "timestamp: 10 rlocks and 10 older programs take many turns, and never two at once" {
    local i turns=${RLOCK_TEST_TURNS:-25}
    ! is_sanitized || turns=10
    for i in {1..10}; do
        start "older-$i" bash "$DIR/older" "$REDIS_PORT" "$KEY" $turns '. "$DIR/critical"'
        start "rlock-$i" bash -c 'for ((i = 0; i < $1; i++)); do
            "$RLOCK" -k "$KEY" -- bash "$DIR/critical" || echo "$?" >>"$DIR/overlaps"
        done' - $turns
    done
    for i in {1..10}; do
        finish "older-$i" 150
        finish "rlock-$i" 150
    done
    assert_eq "$(cat "$DIR/overlaps" 2>/dev/null)" ''
    assert_eq "$(<"$DIR/count")" $((20 * turns))
    gone "$KEY"
}
