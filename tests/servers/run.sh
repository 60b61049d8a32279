#!/usr/bin/env bash
# run: tries rlock with each server of tests/tools/servers.sh: all scripts, by tests/unit/test_lua,
# and a battery through the program, battery.bats.
#
#     tests/servers/run.sh FOLDER [NAME...]     FOLDER has the program and its tools: build/plain
#
# Prints a result for each server, with its version, tests and seconds, at the end those of servers
# with failed tests. As many servers are tried at the same time as there are processors. Servers
# that this machine can't get are left out; with STRICT=1, they have failed. Sentinel and Cluster
# are tried on the newest server of each kind, which is the last one of its kind in servers.sh.

set -uo pipefail

servers=tests/tools/servers.sh
logs=build/servers

# try FOLDER NAME: tests one server.
try() {
    local name=$2 log=$logs/$2.log from=$SECONDS word=ok flags="--filter-tags '!topology'"
    [[ $name != "$("$servers" list | awk '{ print $1 }' | grep "^${name%%-*}" | tail -n 1)" ]] ||
        flags=
    RLOCK_TEST_SERVER=$("$servers" program "$name") BATSFLAGS=$flags JOBS=1 \
        tests/tools/run_tests.sh "$1/unit/test_lua" tests/servers/battery.bats >"$log" 2>&1 ||
        word='not ok' # also if no test ran
    printf '%s - %s, version %s: %d tests, %d failed, %d s\n' "$word" "$name" \
        "$("$servers" list "$name" | awk '{ print $2 }')" "$(grep -cE '^(not )?ok' "$log")" \
        "$(grep -c '^not ok' "$log")" $((SECONDS - from)) >"$log.result"
    [[ $word != ok ]] || cat "$log.result"
}

if [[ $1 == --try ]]; then # run by the xargs below
    try "$2" "$3"
    exit
fi

folder=$1
shift
rm -rf "$logs"
mkdir -p "$logs"
left_out=$("$servers" get "$@" | sed -n 's/^left out: //p')
left_names=$(awk '{ print $1 }' <<<"${left_out:-none}")
[[ -z $left_out ]] || echo "left out: ${left_out//$'\n'/; }"
"$servers" list "$@" | awk '{ print $1 }' | grep -vxF "$left_names" |
    xargs -r -P "$(nproc)" -n 1 "$0" --try "$folder"
status=0
for log in "$logs"/*.log; do
    grep -s '^not ok' "$log.result" || continue
    awk '/^(ok|1\.\.)/ { shown = 0 } /^not ok/ { shown = 10 } shown-- > 0 { print "# " $0 }' "$log"
    status=1
done
if [[ -n $left_out && ${STRICT:-} == 1 ]]; then
    awk '{ print "not ok - left out: " $0 }' <<<"$left_out"
    status=1
fi
exit "$status"
