# shellcheck shell=sh disable=SC2154
# cost: the part of run.sh that measures what one uncontended run costs the server: processor time
# and bytes.
#
# The processor time is that of the server's main thread, which the kernel counts in nanoseconds. A
# single run is too short for it, so the programs take turns, and in its turn a program runs `true`
# several times. For redis-py and node-redlock one process makes all runs of a turn, with a
# connection for each, so that their start doesn't count. Each other program is started once for
# each run.
#
#   BENCH_COST_ROUNDS=N     how often each program has its turn; default: 15
#   BENCH_COST_RUNS=N       how often a program runs `true` in one turn; default: 40
#
# SPDX-License-Identifier: MIT

cost_rounds=${BENCH_COST_ROUNDS:-15}
cost_runs=${BENCH_COST_RUNS:-40}
costs=$scratch/costs    # lists the programs to measure, in the format of the file $programs

# server_cpu_ns: prints how much processor time the server's main thread has used, once it is idle:
# a server closes the connection of a program after the program has ended.
server_cpu_ns() {
    cpu_ns=
    until [ "$cpu_ns" = "${last_ns:-none}" ]; do
        last_ns=$cpu_ns
        sleep 0.005
        read -r cpu_ns rest <"/proc/$redis_pid/schedstat"
    done
    last_ns=
    echo "$cpu_ns"
}

# server_bytes: prints how many bytes the server has received, including this INFO command.
server_bytes() {
    redis-cli -p "$redis_port" INFO stats | tr -d '\r' | sed -n 's/^total_net_input_bytes://p'
}

# cost_runs_of WORDS: runs the program as often as it runs in one turn.
cost_runs_of() (
    words=$1
    IFS=$tab
    set -f
    # shellcheck disable=SC2086 # $words is several arguments
    case $words in
    *_runs.*) $words "$cost_runs" true ;;
    *)
        i=0
        while [ "$i" -lt "$cost_runs" ]; do
            i=$((i + 1))
            $words true || exit
        done
        ;;
    esac
) </dev/null 3<&-

cost_measure() {
    before=$(server_cpu_ns)
    cost_runs_of "$2" >/dev/null || die "$1: failed while its cost was measured"
    after=$(server_cpu_ns)
    printf '%s\t%s\t%s\n' "$1" "$round" $(((after - before) / cost_runs)) >>"$out/cost_samples.tsv"
}

# bytes_measure NAME WORDS: measures how many bytes the server receives for one run of the program.
# bytes_measure subtracts the bytes that server_bytes itself sends.
bytes_measure() {
    own=$(($(server_bytes) - $(server_bytes)))
    before=$(server_bytes)
    cost_runs_of "$2" >/dev/null || die "$1: failed while its bytes were counted"
    after=$(server_bytes)
    printf '%s\t%s\n' "$1" $(((after - before + own) / cost_runs)) >>"$scratch/bytes"
}

cost_program() {
    (IFS=$tab; printf '%s\n' "$*") >>"$costs"
}

cost_programs() {
    grep -E "^(rlock|$other|bare C, dynamic, fork|shell script, redis-cli)$tab" \
        "$programs" >"$costs"
    if /usr/bin/python3 -c 'import redis' 2>/dev/null; then
        cost_program "redis-py Lock" /usr/bin/python3 "$here/redis_py_runs.py" "$redis_port" bench
    fi
    if has node && [ -e build/node/node_modules/redlock ]; then
        cost_program node-redlock node "$here/node_redlock_runs.js" "$PWD/build/node" \
            "$redis_port" bench
    fi
}

# cost_measure_all: writes the medians of all programs to cost.tsv. Meanwhile it sets the server's
# timer from ten ticks a second to one (CONFIG SET hz), because a tick costs as much processor time
# as several runs.
cost_measure_all() {
    cost_programs
    say "cost for the server: $(wc -l <"$costs") programs, $cost_rounds times $cost_runs runs"
    redis-cli -p "$redis_port" CONFIG SET hz 1 >/dev/null
    printf 'name\tround\tcpu_ns\n' >"$out/cost_samples.tsv"
    : >"$scratch/bytes"
    each bytes_measure "$costs" # these runs fill the caches, so they come before the timed ones
    round=0
    while [ "$round" -lt "$cost_rounds" ]; do
        begin_with "$costs" $((round % $(wc -l <"$costs") + 1)) >"$scratch/turned"
        round=$((round + 1))
        each cost_measure "$scratch/turned"
    done
    redis-cli -p "$redis_port" CONFIG SET hz 10 >/dev/null
    printf 'name\tcpu_us\tbytes\n' >"$out/cost.tsv"
    while IFS=$tab read -r name bytes; do
        printf '%s\t%s\t%s\n' "$name" "$(cost_median "$name")" "$bytes" >>"$out/cost.tsv"
    done <"$scratch/bytes"
}

cost_median() {
    awk -F '\t' -v name="$1" '$1 == name { print $3 / 1000 }' "$out/cost_samples.tsv" | sort -n |
        awk '{ us[NR] = $1 } END { printf "%.1f", us[int((NR + 1) / 2)] }'
}
