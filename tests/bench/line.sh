# shellcheck shell=sh disable=SC2154
# line: the part of run.sh that measures what many waiters cost, and how they get the lock.
#
# It measures each program in the same way (crowd.c): how long it takes from the end of one command
# to the start of the next, whether waiters are served in the order they came, what memory and
# processor time a waiter takes, how many requests the server handles for a grant, and what
# processor time and bytes a grant costs the server. Then it measures how long the hand-over takes
# when the server is far away (distance.c).
#
# Each waiter is a process of its own, like waiters on different machines. The programs for redis-py
# and node-redlock start no command: they do the work of turn.c themselves.
#
#   BENCH_LINES=N       how often the waiters are served; default: 3
#   BENCH_WAITERS=N     the number of waiters; default: 100
#   BENCH_REST=N        for how many seconds ten waiters are measured while they wait; default: 10
#
# SPDX-License-Identifier: MIT

lines=${BENCH_LINES:-3}
waiters=${BENCH_WAITERS:-100}
rest_s=${BENCH_REST:-10}
waiting=$scratch/waiting    # lists the programs that can wait, in the format of the file $programs
few=10
many=300
most=1000
round_trips_ms='0 1 20'

# waits NAME WORD...: adds a program that can wait for the lock to the file $waiting: its name, and
# the first words of its command line.
waits() {
    (IFS=$tab; printf '%s\n' "$*") >>"$waiting"
}

line_programs() {
    turn=$out/turn
    compile turn -static -nostartfiles -fno-builtin -fno-stack-protector "$here/turn.c" ||
        die "$(cat "$scratch/compile.log")"
    ! has flock || waits flock flock "$scratch/flock" "$turn"
    waits rlock "$rlock" -u "redis://127.0.0.1:$redis_port" -k line -- "$turn"
    [ -z "$rlock_other" ] ||
        waits "$other" "$rlock_other" -u "redis://127.0.0.1:$redis_port" -k line -- "$turn"
    if compile bare_line -static "$here/bare_line.c" -lhiredis ||
        compile bare_line "$here/bare_line.c" -lhiredis; then
        waits "bare C, in line" "$out/bare_line" "$redis_port" line "$turn"
    else
        left_out "bare C, in line: needs hiredis"
    fi
    waits "shell script, redis-cli" "$here/shell_lock.sh" "$redis_port" line 0.5 "$turn"
    while IFS=$tab read -r name client; do
        waits "$name" etcdctl --endpoints "$client" lock line "$turn"
    done <"$scratch/etcds"
    if /usr/bin/python3 -c 'import redis' 2>/dev/null; then
        waits "redis-py Lock" /usr/bin/python3 "$here/redis_py_lock.py" "$redis_port" line
    else
        left_out "redis-py Lock: needs python3-redis"
    fi
    if has node && [ -e build/node/node_modules/redlock ]; then
        waits node-redlock node "$here/node_redlock.js" "$PWD/build/node" "$redis_port" line
    else
        left_out "node-redlock: needs node, and npm to have it by deps.sh bench"
    fi
}

# crowd NAME WORDS WAITERS MS REST: runs crowd.c with the program NAME, whose command line begins
# with WORDS. WAITERS, MS and REST are the first arguments of crowd.c. The output goes to the file
# $scratch/crowd.
crowd() {
    (
        words=$2
        shift 2
        IFS=$tab
        set -f
        # shellcheck disable=SC2086 # $words is several arguments
        exec timeout -k 5 300 "$out/crowd" "$1" "$2" "$3" \
            "cat /proc/$redis_pid/schedstat >$scratch/schedstat
            redis-cli -p $redis_port CONFIG RESETSTAT >$scratch/reset" "$scratch" $words 3<&-
    ) >"$scratch/crowd" 2>"$scratch/crowd.log" &
    current=$!
    if wait "$current"; then
        current=
        return
    fi
    current=
    why="$1, $3 waiters: $(tail -n 1 "$scratch/crowd.log")"
    [ "$1" != rlock ] || die "$why"
    left_out "$why"
    redis-cli -p "$redis_port" FLUSHALL >/dev/null
    return 1
}

# server_count NAME WAITERS: prints how many commands Redis executed for the last crowd after the
# first turn, and how many of them were requests of clients. INFO commandstats also counts the
# commands that scripts call. server_count tells them from requests by their names: the only command
# that a client sends and a script calls is SET, which the shell script and redis-py send.
server_count() {
    waiter_s=$(crowd_number waiter_s)
    redis-cli -p "$redis_port" INFO commandstats | tr -d '\r' >"$scratch/commandstats"
    awk -v name="$1" -v n="$2" -v waiter_s="$waiter_s" '
        BEGIN { own = "^(eval|evalsha|blpop|auth|hello|select|ping|client|command|script)$" }
        !/^cmdstat_/ || /^cmdstat_(config|info)/ { next }
        {
            split($0, part, /[_:|]/)
            match($0, /calls=[0-9]+/)
            count = substr($0, RSTART + 6, RLENGTH - 6)
            calls += count
            if (part[2] ~ own || part[2] == "set" && name ~ /^(shell|redis-py)/)
                requests += count
        }
        END {
            if (requests)
                printf "%s\t%d\t%d\t%d\t%s\n", name, n, requests, calls, waiter_s
        }' "$scratch/commandstats" >>"$scratch/server"
}

# crowd_number NAME: prints what the last run of crowd.c measured as NAME, such as waiter_s: one
# number, or for handover_us a line for each waiter.
crowd_number() {
    awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$scratch/crowd"
}

rest_measure() {
    crowd "$1" "$2" "$few" 5 "$rest_s" || return 0
    printf '%s\t%s\t%s\n' "$1" "$(crowd_number cpu_us_s)" "$(crowd_number cpu_max_us_s)" \
        >>"$scratch/rest"
}

# rest_summary: prints the numbers of rest_measure, and in front of them the memory of a waiter: the
# median of the crowds of line_measure. PSS divides a page of the program or of the C library by the
# number of processes that use it. In a crowd of ten, these pages would be two fifths of a waiter's
# PSS, and their share would depend on how many other programs the machine happens to run.
rest_summary() {
    printf 'name\tpss_kB\tcpu_us_s\tcpu_max_us_s\n'
    while IFS=$tab read -r name cpu most_cpu; do
        printf '%s\t%s\t%s\t%s\n' "$name" "$(rest_pss "$name")" "$cpu" "$most_cpu"
    done <"$scratch/rest"
}

rest_pss() {
    awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$scratch/pss" | sort -n |
        awk '{ kB[NR] = $1 } END { print kB[int((NR + 1) / 2)] }'
}

# grant_count NAME WAITERS: computes what processor time and how many bytes one grant cost the
# server in the last crowd, and adds a line to the file $scratch/grants. Time and bytes count from
# the end of the first turn: then crowd() has noted the processor time, and reset the server's byte
# count.
grant_count() {
    read -r used_ns rest <"$scratch/schedstat"
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" $((($(server_cpu_ns) - used_ns) / 1000 / $2)) \
        $(($(server_bytes) / $2)) >>"$scratch/grants"
}

# grants_measure WORDS: measures the smallest and the largest crowd of rlock; the small one several
# times, because a single small crowd has too few grants for a precise number.
grants_measure() {
    for n in "$few" "$few" "$few" "$few" "$few" "$most"; do
        crowd rlock "$1" "$n" 5 0
        grant_count rlock "$n"
    done
}

# grants_summary: prints the medians of each program, for each number of waiters.
grants_summary() {
    printf 'name\twaiters\tcpu_us\tbytes\n'
    cut -f 1,2 "$scratch/grants" | sort -u -t "$tab" -k 1,1 -k 2,2n |
        while IFS=$tab read -r name n; do
            printf '%s\t%s\t%s\t%s\n' "$name" "$n" "$(grants_median "$name" "$n" 3)" \
                "$(grants_median "$name" "$n" 4)"
        done
}

grants_median() {
    awk -F '\t' -v name="$1" -v n="$2" -v column="$3" '
        $1 == name && $2 == n { print $column }' "$scratch/grants" | sort -n |
        awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

line_measure() {
    crowd "$1" "$2" "$waiters" 5 0 || return 0
    case $1 in etcdctl* | flock) ;; *) grant_count "$1" "$waiters" ;; esac
    crowd_number handover_us | sed "s/^/$1$tab$round$tab/" >>"$out/line_samples.tsv"
    printf '%s\t%s\n' "$1" "$(crowd_number pss_kB)" >>"$scratch/pss"
    printf '%s\t%s\t%s\n' "$1" "$(crowd_number inversions)" "$(crowd_number overtaken)" \
        >>"$scratch/order"
}

# server_crowd NAME WORDS WAITERS MS: runs crowd with these arguments and a REST of 0 s, then
# server_count NAME WAITERS.
server_crowd() {
    crowd "$1" "$2" "$3" "$4" 0 && server_count "$1" "$3"
}

# server_measure NAME WORDS: runs the crowds from which server_summary computes its numbers.
server_measure() {
    case $1 in etcdctl* | flock) return ;; esac
    server_crowd "$1" "$2" $((few / 2)) 0 && server_crowd "$1" "$2" "$few" 0 || return 0
    [ "$1" = rlock ] || return 0
    for ms in 0 150 200; do
        server_crowd "$1" "$2" "$many" "$ms"
    done
}

# server_summary: computes the number of requests for one grant, in one of two ways:
# - From a small crowd and one of half its size: server_summary divides the difference in requests
#   by the difference in waiters. The last waiters of a crowd, for which the server has less to do,
#   are in both crowds, so they don't count.
# - From three large crowds: the second and third have turns of different lengths, so the difference
#   of their requests is due to the longer waiting, not to grants. Divided by the difference in
#   waiting time, it is the number of requests for a second of waiting. server_summary subtracts the
#   requests for the waiting from those of the first crowd. Behind turns of less than 100 ms, how
#   often a waiter asks for one grant depends on the turn's length (alert_near of
#   lib/lua/shared/queue.lua), so the second and third crowds have longer turns.
server_summary() {
    awk -F '\t' -v few="$few" '
        BEGIN { OFS = FS; print "name", "waiters", "requests", "commands", "beats_per_s" }
        $2 < few { n = $2; requests = $3; commands = $4; next }
        $2 == few { print $1, $2, ($3 - requests) / ($2 - n), ($4 - commands) / ($2 - n), ""; next }
        { nth++; asked[nth] = $3; executed[nth] = $4; waited_s[nth] = $5 }
        nth == 3 {
            longer_s = waited_s[3] - waited_s[2]
            beats = (asked[3] - asked[2]) / longer_s
            print $1, $2, (asked[1] - beats * waited_s[1]) / $2,
                (executed[1] - (executed[3] - executed[2]) / longer_s * waited_s[1]) / $2, beats
        }' "$scratch/server" >"$out/server.tsv"
}

# line_summary: prints percentiles (nearest rank) of the hand-over times in all crowds of a program.
line_summary() {
    printf '%s\t' name median_us p90_us p99_us max_us inversions overtaken
    echo pairs
    each line_row "$waiting"
}

# quantiles: reads numbers, and prints their median, 90th and 99th percentile and maximum, with tabs
# between them.
quantiles() {
    sort -n | awk '
        function quantile(q,    rank) {
            rank = int(q * NR)
            return us[rank + (rank < q * NR)]
        }
        { us[NR] = $1 }
        END {
            if (NR)
                printf "%s\t%s\t%s\t%s\n", quantile(0.5), quantile(0.9), quantile(0.99), us[NR]
        }'
}

line_row() {
    awk -F '\t' -v name="$1" '$1 == name { print $3 }' "$out/line_samples.tsv" | quantiles |
        awk -v name="$1" -v waiters="$waiters" -v order="$scratch/order" '
            {
                times = $0
                FS = "\t"
                while ((getline < order) > 0) {
                    inversions += $1 == name ? $2 : 0
                    overtaken += $1 == name ? $3 : 0
                    pairs += $1 == name ? waiters * (waiters - 1) / 2 : 0
                }
                printf "%s\t%s\t%d\t%d\t%d\n", name, times, inversions, overtaken, pairs
            }'
}

# distance_measure NAME WORDS: measures the hand-over at the present distance of $round_trip_ms.
distance_measure() {
    crowd "$1" "$2" "$few" 5 0 || return 0
    crowd_number handover_us | sed "s/^/$1$tab$round_trip_ms$tab/" >>"$scratch/distance"
}

# distance_measure_all: puts a proxy that delays all messages between the programs and the server,
# and measures ten waiters of each program.
distance_measure_all() {
    compile distance "$here/distance.c" || die "$(cat "$scratch/compile.log")"
    waiting=$scratch/distant
    waits rlock "$rlock" -u "redis://127.0.0.1:$distant_port" -k line -- "$turn"
    [ -z "$rlock_other" ] ||
        waits "$other" "$rlock_other" -u "redis://127.0.0.1:$distant_port" -k line -- "$turn"
    [ ! -x "$rlock_static" ] || waits "rlock, static" "$rlock_static" \
        -u "redis://127.0.0.1:$distant_port" -k line -- "$turn"
    [ ! -x "$out/bare_line" ] ||
        waits "bare C, in line" "$out/bare_line" "$distant_port" line "$turn"
    say "at a distance: $lines times $few waiters, round trips of $round_trips_ms ms"
    for round_trip_ms in $round_trips_ms; do
        serve "distance-$round_trip_ms" "$out/distance" "$distant_port" "$redis_port" \
            $((round_trip_ms * 500))
        eventually 5 redis-cli -p "$distant_port" PING || die "distance: $(tail -n 1 "$log")"
        round=0
        while [ "$round" -lt "$lines" ]; do
            round=$((round + 1))
            each distance_measure "$waiting"
        done
        end_last_server
    done
    distance_summary >"$out/distance.tsv"
}

distance_summary() {
    printf 'name\tround_trip_ms\tmedian_us\tp90_us\tp99_us\tmax_us\n'
    for round_trip_ms in $round_trips_ms; do
        cut -f 1 "$waiting" | while read -r name; do
            awk -F '\t' -v name="$name" -v ms="$round_trip_ms" \
                '$1 == name && $2 == ms { print $3 }' "$scratch/distance" | quantiles |
                sed "s/^/$name$tab$round_trip_ms$tab/"
        done
    done
}

# begin_with FILE N: prints the lines of the file from the Nth to the last, then those before. What
# a program leaves in caches and servers changes the times of the next program, so each round begins
# with another program.
begin_with() {
    tail -n "+$2" "$1"
    head -n "$(($2 - 1))" "$1"
}

line_measure_all() {
    compile crowd "$here/crowd.c" || die "$(cat "$scratch/compile.log")"
    printf 'name\tround\thandover_us\n' >"$out/line_samples.tsv"
    line_programs
    say "at rest: $(wc -l <"$waiting") programs, $few waiters, $rest_s s"
    each rest_measure "$waiting"
    say "in line: $lines times $waiters waiters of each"
    round=0
    while [ "$round" -lt "$lines" ]; do
        round=$((round + 1))
        begin_with "$waiting" "$round" >"$scratch/turned"
        each line_measure "$scratch/turned"
        grants_measure "$(grep "^rlock$tab" "$waiting" | cut -f 2-)"
    done
    rest_summary >"$out/rest.tsv"
    grants_summary >"$out/grant.tsv"
    say "requests for a grant: $few waiters of each, $many of rlock"
    each server_measure "$waiting"
    server_summary
    line_summary >"$out/line.tsv"
}
