# table: prints what was measured, beside the limits for rlock.
#
#     awk -v verdicts=FILE -f table.awk kind=limit limits.tsv kind=time time.tsv
#         kind=memory memory.tsv kind=requests requests.tsv kind=cost cost.tsv kind=line line.tsv
#         kind=rest rest.tsv kind=server server.tsv kind=grant grant.tsv
#         kind=distance distance.tsv
#
# limits.tsv is in this folder; run.sh makes the other files.
# FILE gets each limit with the measured number. The exit status is 1 if a limit was exceeded.
#
# SPDX-License-Identifier: MIT

# verdict: compares a number with its limit, and returns the columns "limit" and "met"; returns ""
# if the number has no limit.
function verdict(kind, peer, measured,    met) {
    if (!((kind, peer) in most))
        return ""
    met = measured <= most[kind, peer]
    missed += !met
    printf "%s\t%s\t%.3f\t%s\t%s\n", kind, peer, measured, most[kind, peer],
        met ? "yes" : "no" > verdicts
    return sprintf("  <= %-8s %s", said[kind, peer], met ? "yes" : "NO")
}

function heading(title, columns) {
    printf "\n%-24s%-57s  %-11s %s\n", title, columns, "limit", "met"
}

# row: prints the columns of a program. rlock's row also gets the limit for the number `measured`,
# and whether it is met.
function row(name, columns, kind, measured) {
    if (name == "rlock")
        columns = sprintf("%-57s", columns) verdict(kind, "", measured)
    printf "%-24s%s\n", name, columns
}

# time_row: prints the times of a program, and the ratio of rlock's time to them. For a quorum and
# for the static rlock, time_row prints the ratio to rlock or flock, as limits.tsv limits that one.
function time_row(name,    kind, peer, ratio) {
    kind = "time"
    peer = name
    ratio = median["rlock"] / median[name]
    if (name ~ /^rlock, quorum/) {
        kind = "quorum"
        peer = "rlock"
        ratio = median[name] / median["rlock"]
    } else if (name == "rlock, static" && names[1] == "flock") {
        kind = "static"
        peer = "flock"
        ratio = median[name] / median["flock"]
    }
    printf "%-24s%8.3f ms %8.3f ms %8.3f ms", name, median[name], p90[name], p99[name]
    printf " %9.2f %12.2f%s\n", median[name] / median[names[1]], ratio, verdict(kind, peer, ratio)
}

function memory_row(name) {
    row(name, sprintf("%8.2f MB %11d", kB[name] / 1000, processes[name]), "memory", kB[name])
}

function requests_row(name) {
    if (requests[name] || name == "rlock")
        row(name, sprintf("%8d %14d  %s", requests[name], connections[name], commands[name]),
            "requests", requests[name])
}

# cost_row: prints what a run costs the server. rlock's row also gets the limit for the ratio of its
# processor time to redis-py's. cost_bytes prints the rows with the limits for rlock's bytes.
function cost_row(name) {
    row(name, sprintf("%8.1f us %11.2f %11d", server_us[name],
        server_us[name] / server_us["redis-py Lock"], server_bytes[name]), "run cpu",
        server_us["rlock"] / server_us["redis-py Lock"])
}

function cost_bytes() {
    row("rlock", sprintf("%11s %11s %11d  of a run", "", "", server_bytes["rlock"]), "run bytes",
        server_bytes["rlock"])
    row("rlock", sprintf("%11s %11s %11d  of its largest request", "", "", largest["rlock"]),
        "request bytes", largest["rlock"])
}

# grant_rows: prints what a grant to a waiter costs the server, and how much more it costs with the
# most waiters than with the fewest.
function grant_rows(    i, few, many) {
    for (i = 1; i <= n_grants; i++) {
        printf "%-24s%8d %11.0f us %11d\n", grants[i], grant_waiters[i], grant_us[i],
            grant_bytes[i]
        if (grants[i] == "rlock") {
            few = few ? few : i
            many = i
        }
    }
    row("rlock", sprintf("%8s %11.2f", "ratio", grant_us[many] / grant_us[few]), "grant growth",
        grant_us[many] / grant_us[few])
}

function per_cent(part, whole) {
    return sprintf("%.1f %%", whole ? 100 * part / whole : 0)
}

# line_row: prints the hand-over times of a program. In rlock's row the limit is for the 99th
# percentile, in other rows for the ratio of rlock's median to the program's.
function line_row(name,    ratio, columns) {
    ratio = handover["rlock"] / handover[name]
    columns = sprintf("%8.2f ms %8.2f ms %8.2f ms %22.2f", handover[name], handover_p90[name],
        handover_p99[name], ratio)
    if (name == "rlock")
        row(name, columns, "line p99", handover_p99[name])
    else
        printf "%-24s%s%s\n", name, columns, verdict("line", name, ratio)
}

function order_row(name) {
    row(name, sprintf("%11d %11d %22s", inversions[name], overtaken[name],
        per_cent(inversions[name], pairs[name])), "order", inversions[name])
}

function waiter_row(name) {
    row(name, sprintf("%8.0f kB", waiter_kB[name]), "waiter", waiter_kB[name])
}

function rest_row(name) {
    row(name, sprintf("%6.0f us/s %6.0f us/s", cpu[name], busiest[name]), "rest", cpu[name])
}

# server_rows: prints the requests for a grant of each crowd. Of rlock's rows, the first is for its
# smallest crowd and the last for its largest. Then it prints the ratio of these two, and the
# requests for a second of waiting.
function server_rows(    i, few, many) {
    for (i = 1; i <= n_crowds; i++) {
        row(crowds[i], sprintf("%8d %14.2f %14.2f", crowd[i], asked[i], commands_in[i]), "server",
            asked[i])
        if (crowds[i] == "rlock") {
            few = few ? few : i
            many = i
        }
    }
    row("rlock", sprintf("%8s %14.2f", "ratio", asked[many] / asked[few]), "server growth",
        asked[many] / asked[few])
    row("rlock", sprintf("%8s %14.2f  in a second, not for a grant", "each", beats[many]), "beat",
        beats[many])
}

# distance_rows: prints the hand-over times of each program at each distance. The limit is for the
# median of rlock at the greatest distance.
function distance_rows(    i, said_at) {
    for (i = 1; i <= n_distances; i++) {
        said_at = distant[i] == "rlock" && round_trip[i] == greatest ? "distance" : "none"
        row(distant[i], sprintf("%8d ms %8.2f ms %8.2f ms %8.2f ms", round_trip[i],
            distant_ms[i], distant_p90[i], distant_p99[i]), said_at, distant_ms[i])
    }
}

function waiting(    i) {
    heading("hand over", sprintf("%11s %11s %11s %22s", "median", "p90", "p99", "rlock to it"))
    for (i = 1; i <= n_lines; i++)
        line_row(lines[i])
    heading("hand over at a distance", sprintf("%11s %11s %11s %11s", "round trip", "median", "p90",
        "p99"))
    distance_rows()
    heading("keep the order", sprintf("%11s %11s %22s", "inversions", "overtaken", "of all pairs"))
    for (i = 1; i <= n_lines; i++)
        order_row(lines[i])
    heading("wait", sprintf("%11s", "memory, PSS"))
    for (i = 1; i <= n_rests; i++)
        waiter_row(rests[i])
    heading("rest", sprintf("%11s %11s", "CPU, mean", "busiest"))
    for (i = 1; i <= n_rests; i++)
        rest_row(rests[i])
    heading("ask Redis for one grant", sprintf("%8s %14s %14s", "waiters", "requests", "commands"))
    server_rows()
    heading("cost it, a grant", sprintf("%8s %14s %11s", "waiters", "CPU", "bytes"))
    grant_rows()
}

BEGIN {
    FS = "\t"
    print "kind\tpeer\tmeasured\tat_most\tmet" > verdicts
}

/^#/ { next }
kind == "limit" { most[$1, $2] = $3; said[$1, $2] = $4; next }
FNR == 1 { next }
kind == "time" { names[++n] = $1; median[$1] = $2 / 1000; p90[$1] = $3 / 1000; p99[$1] = $4 / 1000 }
kind == "time" && $1 == "rlock" { of_rounds = $6; at_least = $7; at_most = $8 }
kind == "memory" { kB[$1] = $2; processes[$1] = $3 }
kind == "line" { lines[++n_lines] = $1; handover[$1] = $2 / 1000; handover_p90[$1] = $3 / 1000 }
kind == "line" { handover_p99[$1] = $4 / 1000; inversions[$1] = $6; overtaken[$1] = $7 }
kind == "line" { pairs[$1] = $8 }
kind == "rest" { rests[++n_rests] = $1; waiter_kB[$1] = $2; cpu[$1] = $3; busiest[$1] = $4 }
kind == "server" { crowds[++n_crowds] = $1; crowd[n_crowds] = $2 }
kind == "server" { asked[n_crowds] = $3; commands_in[n_crowds] = $4; beats[n_crowds] = $5 }
kind == "requests" { requests[$1] = $2; connections[$1] = $3; commands[$1] = $4; largest[$1] = $5 }
kind == "cost" { costs[++n_costs] = $1; server_us[$1] = $2; server_bytes[$1] = $3 }
kind == "grant" { grants[++n_grants] = $1; grant_waiters[n_grants] = $2 }
kind == "distance" { distant[++n_distances] = $1; round_trip[n_distances] = $2 }
kind == "distance" { distant_ms[n_distances] = $3 / 1000; distant_p90[n_distances] = $4 / 1000 }
kind == "distance" { distant_p99[n_distances] = $5 / 1000; greatest = $2 }
kind == "grant" { grant_us[n_grants] = $3; grant_bytes[n_grants] = $4 }

END {
    heading("run `true`", sprintf("%11s %11s %11s %9s %12s", "median", "p90", "p99",
        "to " names[1], "rlock to it"))
    for (i = 1; i <= n; i++)
        time_row(names[i])
    heading("hold", sprintf("%11s %11s", "memory, PSS", "processes"))
    for (i = 1; i <= n; i++)
        memory_row(names[i])
    heading("ask Redis", sprintf("%8s %14s  %s", "requests", "connections", "commands"))
    for (i = 1; i <= n; i++)
        requests_row(names[i])
    heading("cost the server, a run", sprintf("%11s %11s %11s", "CPU", "to redis-py", "bytes"))
    for (i = 1; i <= n_costs; i++)
        cost_row(costs[i])
    cost_bytes()
    if (names[1] == "flock")
        printf "\nrlock to flock within each round: median %.2f, 95 %% interval %.2f to %.2f\n",
            of_rounds, at_least, at_most
    waiting()
    exit missed > 0
}
