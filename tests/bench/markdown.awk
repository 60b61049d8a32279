# markdown: prints the numbers of a run of `make bench` as the rows of the tables in docs/cost.md.
#
#     awk -f markdown.awk kind=time time.tsv kind=memory memory.tsv kind=line line.tsv
#         kind=rest rest.tsv kind=cost cost.tsv kind=grant grant.tsv
#
# run.sh makes the files. Each row names its program in the first column.
#
# SPDX-License-Identifier: MIT

BEGIN { FS = "\t" }

FNR == 1 { next }
kind == "time" {
    times[++n_times] = $1
    time[$1] = sprintf("%.2f ms | %.2f ms | %.2f ms", $2 / 1000, $3 / 1000, $4 / 1000)
}
kind == "memory" { MB[$1] = $2 / 1000 }
kind == "line" {
    lines[++n_lines] = $1
    line[$1] = sprintf("%.1f ms | %.1f ms | %.0f %%", $2 / 1000, $4 / 1000, 100 * $6 / $8)
}
kind == "rest" { rest[$1] = sprintf("%.0f kB | %.2f ms/s", $2, $3 / 1000) }
kind == "cost" { runs[++n_runs] = $1; run[$1] = sprintf("%.0f us | %d bytes", $2, $3) }
kind == "grant" { grants[++n_grants] = $1 " | " $2 " | " $3 " us | " $4 " bytes" }

END {
    for (i = 1; i <= n_times; i++)
        printf "| %s | %s | %.2f MB |\n", times[i], time[times[i]], MB[times[i]]
    for (i = 1; i <= n_lines; i++)
        printf "| %s | %s | %s |\n", lines[i], line[lines[i]], rest[lines[i]]
    for (i = 1; i <= n_runs; i++)
        printf "| %s | %s |\n", runs[i], run[runs[i]]
    for (i = 1; i <= n_grants; i++)
        printf "| %s |\n", grants[i]
}
