# shellcheck shell=sh disable=SC2154
# cost: the part of run.sh that measures what one uncontended run costs the server: processor time
# and bytes.
#
# The processor time is that of the server's main thread, which the kernel counts in nanoseconds.
# The programs take turns in a random order, and in its turn a program runs `true` once: a server
# that has served the same program a moment ago finds its data in the processor's caches, and takes
# half as long. Meanwhile no program runs on the server's processor, as on a host of its own: a
# program that starts there evicts the server's data from the caches.
#
# redis-py and node-redlock run as one process each, which runs `true` whenever it reads a line. So
# their interpreters, whose start evicts much from the caches, start only once.
#
#   BENCH_COST_ROUNDS=N     how often each program has its turn; default: 200
#
# SPDX-License-Identifier: MIT

cost_rounds=${BENCH_COST_ROUNDS:-200}
bytes_runs=20           # how often a program runs while its bytes are counted
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

# cpus_of PID: prints the numbers of the processors on which the process may run, one a line.
cpus_of() {
    taskset -cp "$1" | sed 's/.*: //' | tr , '\n' |
        awk -F - '{ for (cpu = $1; cpu <= $NF; cpu++) print cpu }'
}

# part_processors: lets the server run on the first processor only, and this script and all that it
# starts from now on, on the others only. unite_processors lets both run on all processors again.
part_processors() {
    cpus=$(cpus_of $$ 2>/dev/null | paste -sd ,)
    use_processors "${cpus%%,*}" "${cpus#*,}" ||
        say "the server shares its processor with the programs: their costs can't be compared"
}
unite_processors() {
    use_processors "$cpus" "$cpus" || :
}

# use_processors SERVER OTHERS: lists of processors for the server, and for this script.
use_processors() {
    case $cpus in
    *,*) taskset -acp "$1" "$redis_pid" && taskset -cp "$2" $$ ;;
    *) return 1 ;;
    esac >/dev/null
}

# standing_start NAME WORDS: starts a program that makes a run for each line it reads, and prints a
# line after the run. The program reads from one named pipe and writes to another. It opens each for
# reading and writing: such an open doesn't wait for the other side, and the pipe never ends. Adds
# the program to the list as `standing FILE`.
standing_start() {
    pipes=$scratch/standing.$(wc -l <"$costs")
    name=$1
    shift
    mkfifo "$pipes.in" "$pipes.out"
    timeout -k 5 1800 "$@" <>"$pipes.in" 1<>"$pipes.out" 2>"$pipes.log" &
    started="$started $!"
    cost_program "$name" standing "$pipes"
}

# cost_run WORDS: runs `true` once under a lock of the program.
cost_run() {
    case $1 in
    standing$tab*)
        echo run 1<>"${1#*"$tab"}.in"
        timeout 30 head -n 1 "${1#*"$tab"}.out" | grep -q .
        ;;
    *) (run "$1" true) >/dev/null ;;
    esac
}

cost_measure() {
    before=$(server_cpu_ns)
    cost_run "$2" || die "$1: failed while its cost was measured"
    after=$(server_cpu_ns)
    printf '%s\t%s\t%s\n' "$1" "$round" $((after - before)) >>"$out/cost_samples.tsv"
}

# bytes_measure NAME WORDS: measures how many bytes the server receives for one run of the program.
# bytes_measure subtracts the bytes that server_bytes itself sends.
bytes_measure() {
    own=$(($(server_bytes) - $(server_bytes)))
    before=$(server_bytes)
    i=0
    while [ "$i" -lt "$bytes_runs" ]; do
        i=$((i + 1))
        cost_run "$2" || die "$1: failed while its bytes were counted"
    done
    after=$(server_bytes)
    printf '%s\t%s\n' "$1" $(((after - before + own) / bytes_runs)) >>"$scratch/bytes"
}

cost_program() {
    (IFS=$tab; printf '%s\n' "$*") >>"$costs"
}

cost_programs() {
    grep -E "^(rlock|$other|bare C, dynamic, fork|shell script, redis-cli)$tab" \
        "$programs" >"$costs"
    if /usr/bin/python3 -c 'import redis' 2>/dev/null; then
        standing_start "redis-py Lock" \
            /usr/bin/python3 "$here/redis_py_runs.py" "$redis_port" bench true
    fi
    if has node && [ -e build/node/node_modules/redlock ]; then
        standing_start node-redlock \
            node "$here/node_redlock_runs.js" "$PWD/build/node" "$redis_port" bench true
    fi
}

# cost_measure_all: writes the medians of all programs to cost.tsv. Meanwhile it sets the server's
# timer from ten ticks a second to one (CONFIG SET hz), because a tick costs as much processor time
# as several requests.
cost_measure_all() {
    part_processors
    cost_programs
    say "cost for the server: $(wc -l <"$costs") programs, $cost_rounds rounds"
    redis-cli -p "$redis_port" CONFIG SET hz 1 >/dev/null
    printf 'name\tround\tcpu_ns\n' >"$out/cost_samples.tsv"
    : >"$scratch/bytes"
    each bytes_measure "$costs" # these runs fill the caches, so they come before the timed ones
    round=0
    while [ "$round" -lt "$cost_rounds" ]; do
        shuf "$costs" >"$scratch/turned"
        round=$((round + 1))
        each cost_measure "$scratch/turned"
    done
    redis-cli -p "$redis_port" CONFIG SET hz 10 >/dev/null
    unite_processors
    printf 'name\tcpu_us\tbytes\n' >"$out/cost.tsv"
    while IFS=$tab read -r name bytes; do
        printf '%s\t%s\t%s\n' "$name" "$(cost_median "$name")" "$bytes" >>"$out/cost.tsv"
    done <"$scratch/bytes"
}

cost_median() {
    awk -F '\t' -v name="$1" '$1 == name { print $3 / 1000 }' "$out/cost_samples.tsv" | sort -n |
        awk '{ us[NR] = $1 } END { printf "%.1f", us[int((NR + 1) / 2)] }'
}
