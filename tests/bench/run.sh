#!/bin/sh
# bench: measures what a lock costs with rlock and with programs that people use instead
# (`make bench`).
#
# The script measures each program in the same way: how long it takes to run `true` under a lock
# (sidebyside.c), how much memory it needs while it holds a lock, how many requests it sends to
# Redis, what a run costs the server (cost.sh), and how it serves many waiters (line.sh). It prints
# the results beside rlock's limits (limits.tsv), and keeps them in build/bench/ as TSV and as a
# picture. A program that isn't installed is reported and left out.
#
# Where the comparison could be unfair, it favours the others: the shell script starts no process
# that it could do without, and the C program leaves out all that makes a lock safe. The script
# measures etcd twice: as installed, where etcd syncs its data to the disk, and without syncing and
# with the data in memory, which is unsafe.
#
#   BENCH_ROUNDS=N          how often each program runs; default: 300
#   RLOCK=FILE              the rlock to measure; default: ./rlock
#   RLOCK_STATIC=FILE       the static rlock to measure beside it; default: ./rlock-static
#   RLOCK_OTHER=FILE        another rlock to measure beside it, such as an older one; default: none
#   RLOCK_TEST_STRICT=1     fail if a program is left out or a limit is exceeded
#
# SPDX-License-Identifier: MIT
set -eu

cd "$(dirname "$0")/../.."
here=tests/bench
out=build/bench
rounds=${BENCH_ROUNDS:-300}
tab=$(printf '\t')

say() { printf '%s\n' "bench: $*" >&2; }
die() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# eventually SECONDS COMMAND...: repeats the command every 50 ms until it succeeds.
eventually() {
    tries=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

# ---- starting servers ----

# The kernel chooses the ports. `finish` kills the servers by their pids. If `finish` doesn't run,
# `timeout` ends the servers after half an hour.

started=        # pids of the servers
current=        # pid of the program that is being measured
scratch=

serve() {
    log=$scratch/$1.log
    shift
    timeout -k 5 1800 "$@" >"$log" 2>&1 </dev/null &
    started="$started $!"
}

# end_last_server: ends the server that `serve` started last, and forgets its pid.
end_last_server() {
    kill "${started##* }"
    wait "${started##* }" 2>/dev/null || :
    started=${started% *}
}

finish() {
    for pid in $current $started; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$scratch" "$out/etcd"
}

redis_start() {
    serve redis redis-server --port "$redis_port" --bind 127.0.0.1 --dir "$scratch" \
        --save '' --appendonly no
    eventually 10 redis-cli -p "$redis_port" PING ||
        die "redis-server does not answer: $(tail -n 1 "$log")"
    redis_pid=$(redis-cli -p "$redis_port" INFO server | tr -d '\r' | sed -n 's/^process_id://p')
}

# quorum_start: starts five servers for a quorum, beside the one server that all other programs use.
# rlock counts a member's grant only when the member has run for longer than a TTL.
quorum_start() {
    for port in $quorum_ports; do
        serve "redis-$port" redis-server --port "$port" --bind 127.0.0.1 --dir "$scratch" \
            --save '' --appendonly no
        eventually 10 redis-cli -p "$port" PING || die "redis-server: $(tail -n 1 "$log")"
        set -- "$@" -u "redis://127.0.0.1:$port"
    done
    "$rlock" "$@" -t 2 -k bench -- true || die "a quorum grants nothing"
    program "rlock, quorum of 5" "$rlock" "$@" -t 2 -k bench --
}

# tls_start: starts a server with a TLS port and a self-signed certificate.
tls_start() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=bench \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$scratch/tls.key" -out "$scratch/tls.crt" \
        2>"$scratch/openssl.log" &&
        redis-cli -p "$redis_port" CONFIG SET tls-cert-file "$scratch/tls.crt" \
            tls-key-file "$scratch/tls.key" tls-ca-cert-file "$scratch/tls.crt" \
            tls-auth-clients no tls-port "$tls_port" 2>&1 | grep -qx OK
}

# etcd_start NAME PORT PEER_PORT FOLDER OPTION...: starts an etcd, and adds `etcdctl lock` with this
# server to the programs.
etcd_start() {
    etcd_name=$1 client=http://127.0.0.1:$2 peer=http://127.0.0.1:$3 data=$4 log_name=etcd-$2
    shift 4
    rm -rf "$data"
    serve "$log_name" etcd "$@" --data-dir "$data" --initial-cluster "default=$peer" \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer"
    if eventually 20 etcdctl --endpoints "$client" endpoint health; then
        program "$etcd_name" etcdctl --endpoints "$client" lock bench
        printf '%s\t%s\n' "$etcd_name" "$client" >>"$scratch/etcds"
    else
        left_out "$etcd_name: etcd does not answer: $(tail -n 1 "$log")"
    fi
}

etcds_start() {
    if ! has etcd || ! has etcdctl; then
        left_out "etcdctl lock: needs etcd and etcdctl"
        return
    fi
    etcd_start "etcdctl lock" "$1" "$2" "$out/etcd"
    if etcd --unsafe-no-fsync --version >/dev/null 2>&1; then
        etcd_start "etcdctl, no sync" "$3" "$4" "$scratch/etcd" --unsafe-no-fsync
    else
        left_out "etcdctl, no sync: needs an etcd of 3.5, or a later 3.4"
    fi
}

# ---- listing the programs ----

# program NAME WORDS: adds a program to the list; WORDS are the words before the command.
program() {
    (IFS=$tab; printf '%s\n' "$*") >>"$programs"
}

left_out() {
    say "left out: $*"
    printf '%s\n' "$*" >>"$scratch/left_out"
}

# compile NAME FLAGS... FILE: compiles a C program of this folder as build/bench/NAME.
compile() {
    target=$out/$1
    shift
    ${CC:-cc} -std=c11 -O2 -o "$target" "$@" 2>"$scratch/compile.log"
}

programs_list() {
    if has flock; then
        program flock flock "$scratch/flock"
    else
        left_out "flock: not installed"
    fi
    program rlock "$rlock" -u "redis://127.0.0.1:$redis_port" -k bench --
    [ -z "$rlock_other" ] ||
        program "$other" "$rlock_other" -u "redis://127.0.0.1:$redis_port" -k bench --
    if [ -x "$rlock_static" ]; then
        program "rlock, static" "$rlock_static" -u "redis://127.0.0.1:$redis_port" -k bench --
    else
        left_out "rlock, static: needs rlock-static, which 'make static' builds"
    fi
    quorum_start
    if ! has openssl || ! "$rlock" --version | grep -q 'TLS yes'; then
        left_out "rlock, TLS: needs openssl and an rlock with TLS"
    elif tls_start; then
        program "rlock, TLS" "$rlock" -u "rediss://127.0.0.1:$tls_port" \
            --tls-ca "$scratch/tls.crt" -k bench --
    else
        left_out "rlock, TLS: needs a redis-server 7 or later with TLS"
    fi
    bare=$here/two_round_trips.c
    if compile two_round_trips_static -static "$bare" -lhiredis; then
        program "bare C, static, spawn" "$out/two_round_trips_static" spawn "$redis_port" bench
        program "bare C, static, fork" "$out/two_round_trips_static" fork "$redis_port" bench
    else
        left_out "bare C, static: needs libc.a and libhiredis.a"
    fi
    if compile two_round_trips "$bare" -lhiredis; then
        program "bare C, dynamic, fork" "$out/two_round_trips" fork "$redis_port" bench
    else
        left_out "bare C, dynamic: needs hiredis"
    fi
    program "shell script, redis-cli" "$here/shell_lock.sh" "$redis_port" bench -
    # shellcheck disable=SC2086 # four arguments
    etcds_start $etcd_ports
}

# each FUNCTION [FILE]: calls FUNCTION NAME WORDS for each line of FILE (default: $programs), which
# has the name of a program and the words of its command line before the locked command.
each() {
    while IFS=$tab read -r name words <&3; do
        "$1" "$name" "$words"
    done 3<"${2:-$programs}"
}

# run WORDS COMMAND...: runs COMMAND under a lock. WORDS, such as "rlock -k bench --", stand before
# COMMAND in the command line. The program replaces this shell, so call `run` in a subshell. The
# program ends after 30 s at the latest.
run() {
    words=$1
    shift
    IFS=$tab
    set -f
    # shellcheck disable=SC2086 # $words is several arguments
    exec timeout -k 5 30 $words "$@" </dev/null 3<&-
}

# ---- measuring time, memory and requests ----

# times_measure: measures the programs in turn. PATH begins with the folder of `true`, so that no
# program spends time on the search for `true`.
times_measure() {
    PATH=/usr/bin:/bin:$PATH timeout -k 5 $((60 + rounds)) \
        "$out/sidebyside" "$rounds" true "$out/samples.tsv" \
        <"$programs" >"$out/time.tsv" 2>"$scratch/sidebyside.log" &
    current=$!
    wait "$current" || die "$(tail -n 3 "$scratch/sidebyside.log")"
    current=
}

# family PID: prints the pids of this process and its descendants.
family() {
    echo "$1"
    cat "/proc/$1"/task/*/children 2>/dev/null | tr ' ' '\n' | while read -r child; do
        family "$child"
    done
}

# of_family PID NAME: prints the pids of those processes in family PID whose program is NAME.
of_family() {
    for member in $(family "$1"); do
        [ "$(cat "/proc/$member/comm" 2>/dev/null)" != "$2" ] || echo "$member"
    done | grep .
}

# memory_measure NAME WORDS: measures the proportional set size, in which a page that N processes
# share counts as an Nth for each. memory_measure adds up all processes of the program, but not the
# command or the `timeout` of this script, 1.3 s after the start of the command: with a TTL of 3 s
# rlock has renewed its lease once by then.
memory_measure() {
    (run "$2" sleep 3) &
    current=$!
    eventually 2 of_family "$current" sleep || die "$1: does not run its command"
    sleep 1.3
    for member in $(family "$current"); do
        case $(cat "/proc/$member/comm") in
        sleep | timeout) ;;
        *) cat "/proc/$member/smaps_rollup" ;;
        esac
    done | awk -v name="$1" '
        /^Pss:/ { kB += $2 * 1.024; processes++ }
        END { printf "%s\t%.0f\t%d\n", name, kB, processes }' >>"$out/memory.tsv"
    wait "$current" || die "$1: failed while it held the lock"
    current=
}

memory_measure_all() {
    printf 'name\tpss_kB\tprocesses\n' >"$out/memory.tsv"
    RLOCK_TTL=3s
    export RLOCK_TTL
    each memory_measure
    unset RLOCK_TTL
}

# requests_make NAME WORDS: runs the program once under MONITOR, and then sends ECHO NAME, which
# marks the end of the program's requests in MONITOR's output.
requests_make() {
    (run "$2" true) >/dev/null || die "$1: failed under MONITOR"
    redis-cli -p "$redis_port" ECHO "$1" >/dev/null
    last=$1
}

requests_count() {
    serve monitor redis-cli -p "$redis_port" MONITOR
    monitor=$log
    eventually 5 grep -q OK "$monitor" || die "no MONITOR"
    each requests_make
    eventually 5 grep -qF "\"ECHO\" \"$last\"" "$monitor" || die "MONITOR ended early"
    # MONITOR would cost the server more time than the requests themselves.
    end_last_server
    # A line is TIME [DB ADDRESS] "COMMAND" "ARGUMENT"...; calls of a script have the address "lua".
    awk '
        # Returns how many bytes the request had for which MONITOR printed this line.
        function request_bytes(line,    n, words, i, bytes) {
            gsub(/\\\\(x[0-9a-f][0-9a-f]|.)/, "c", line)
            n = split(substr(line, index(line, "\"")), words, /" "/)
            bytes = length("*" n) + 2
            for (i = 1; i <= n; i++) {
                gsub(/^"|"$/, "", words[i])
                bytes += length("$" length(words[i])) + length(words[i]) + 4
            }
            return bytes
        }
        BEGIN { print "name\trequests\tconnections\tcommands\tlargest" }
        $3 == "lua]" || NF < 4 { next }
        $4 == "\"ECHO\"" {
            sub(/.*"ECHO" "/, "")
            sub(/"$/, "")
            printf "%s\t%d\t%d\t%s\t%d\n", $0, requests, connections, commands, largest
            requests = connections = largest = 0
            commands = ""
            next
        }
        {
            bytes = request_bytes($0)
            largest = bytes > largest ? bytes : largest
            connections += !($3 in seen)
            seen[$3]
            gsub(/"/, "", $4)
            commands = commands (requests++ ? " " : "") $4
        }' "$monitor" >"$out/requests.tsv"
}

# ---- writing the results ----

about() {
    printf '%s rounds; %s times %s waiters; ' "$rounds" "$lines" "$waiters"
    redis-server --version | sed 's/.*v=\([^ ]*\).*/redis-server \1; /' | tr -d '\n'
    has etcd && etcd --version | sed -n 's/^etcd Version: /etcd /p' | tr '\n' ';' && printf ' '
    printf '%s CPUs, load %s before the start\n' "$(nproc)" "$load"
}

report() {
    set -- kind=limit "$here/limits.tsv" kind=time "$out/time.tsv" kind=memory "$out/memory.tsv" \
        kind=requests "$out/requests.tsv" kind=cost "$out/cost.tsv" kind=line "$out/line.tsv" \
        kind=rest "$out/rest.tsv" kind=server "$out/server.tsv" kind=grant "$out/grant.tsv" \
        kind=distance "$out/distance.tsv"
    about >"$out/about"
    awk -v about="$(cat "$out/about")" -f "$here/chart.awk" "$@" >"$out/bench.svg"
    cat "$out/about"
    awk -v verdicts="$out/verdicts.tsv" -f "$here/table.awk" "$@" || missed=1
    if [ -s "$scratch/left_out" ]; then
        sed 's/^/left out: /' "$scratch/left_out"
        missed=1
    fi
    echo "kept in $out: bench.svg, *.tsv"
}

rlock=${RLOCK:-./rlock}
rlock_static=${RLOCK_STATIC:-./rlock-static}
rlock_other=${RLOCK_OTHER:-}
other="rlock, other"
[ -z "$rlock_other" ] || [ -x "$rlock_other" ] || die "$rlock_other is not there"
[ -x "$rlock" ] || die "$rlock is not there: run make"
for name in redis-server redis-cli; do
    has "$name" || die "needs $name"
done

# The user's own settings of rlock must not change the measurement.
for name in $(env | sed -n 's/^\(RLOCK_[A-Z_]*\)=.*/\1/p' | grep -vx RLOCK_TEST_STRICT); do
    unset "$name"
done

# Keep the servers' data in memory if there is a /dev/shm.
scratch=$(mktemp -d /dev/shm/rlock-bench.XXXXXX 2>/dev/null || mktemp -d)
trap finish EXIT
trap 'exit 130' HUP INT TERM
programs=$scratch/programs
: >"$scratch/etcds" # a line for each etcd: its name, its client URL
# shellcheck source=line.sh
. "$here/line.sh"
# shellcheck source=cost.sh
. "$here/cost.sh"
missed=0
load=$(cut -d ' ' -f 1 /proc/loadavg)
mkdir -p "$out"

compile free_ports "$here/free_ports.c" || die "$(cat "$scratch/compile.log")"
compile sidebyside "$here/sidebyside.c" -lm || die "$(cat "$scratch/compile.log")"
# shellcheck disable=SC2046 # twelve arguments
set -- $("$out/free_ports" 12)
redis_port=$1 tls_port=$2 etcd_ports="$3 $4 $5 $6" distant_port=$7
shift 7
quorum_ports=$*
redis_start
programs_list

say "time: $(wc -l <"$programs") programs, $rounds rounds"
times_measure
say "memory"
memory_measure_all
say "requests"
requests_count
cost_measure_all
line_measure_all
distance_measure_all
report
[ "$missed" = 0 ] || [ "${RLOCK_TEST_STRICT:-0}" != 1 ]
