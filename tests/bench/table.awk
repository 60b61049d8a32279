# table: what was measured, beside what is asked of rlock.
#
#     awk -v verdicts=FILE -f table.awk kind=limit limits.tsv kind=time time.tsv
#         kind=memory memory.tsv kind=requests requests.tsv
#
# FILE gets each limit with what was measured. Ends with 1 if a limit was not met.
#
# SPDX-License-Identifier: MIT

# verdict: the columns "limit" and "met", empty where nothing is asked.
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

# row: the numbers, and where they are rlock's own, the verdict on one of them.
function row(name, columns, kind, measured) {
    if (name == "rlock")
        columns = sprintf("%-57s", columns) verdict(kind, "", measured)
    printf "%-24s%s\n", name, columns
}

function time_row(name,    ratio) {
    ratio = median["rlock"] / median[name]
    printf "%-24s%8.3f ms %8.3f ms %8.3f ms", name, median[name], p90[name], p99[name]
    printf " %9.2f %12.2f%s\n", median[name] / median[names[1]], ratio, verdict("time", name, ratio)
}

function memory_row(name) {
    row(name, sprintf("%8.2f MB %11d", kB[name] / 1000, processes[name]), "memory", kB[name])
}

function requests_row(name) {
    if (requests[name] || name == "rlock")
        row(name, sprintf("%8d %14d  %s", requests[name], connections[name], commands[name]),
            "requests", requests[name])
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
kind == "requests" { requests[$1] = $2; connections[$1] = $3; commands[$1] = $4 }

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
    if (names[1] == "flock")
        printf "\nrlock to flock within each round: median %.2f, 95 %% interval %.2f to %.2f\n",
            of_rounds, at_least, at_most
    exit missed > 0
}
