# chart: draws the numbers that table.awk prints as bars, in SVG.
#
#     awk -v about=TEXT -f chart.awk kind=limit limits.tsv kind=time time.tsv
#         kind=memory memory.tsv kind=line line.tsv kind=rest rest.tsv kind=server server.tsv
#
# limits.tsv is in this folder; run.sh makes the other files, and TEXT, which is put below the
# picture.
#
# All axes are linear and start at 0. Programs that are nearly as fast as rlock have a panel of
# their own: in a panel with the slowest program, their bars would all look the same. The default
# colours can be read on white and on black. A viewer with a light or dark colour scheme uses the
# colours for that scheme.
#
# SPDX-License-Identifier: MIT

# draw: collects the elements, to be printed at the end: the first line of the SVG has the height of
# the picture, which is known only then.
function draw(element) {
    body = body element "\n"
}

function label(x, class, text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    draw(sprintf("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>", x, y, class, text))
}

# bar: draws the bar of one program, and a thin line on from its end to the value `beyond` (the 90th
# percentile).
function bar(name, value, beyond, unit, scale,    end) {
    y += 24
    end = left + value * scale
    label(left - 10, "right", name)
    draw(sprintf("<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"16\" class=\"%s\"/>",
        left, y - 12.5, end - left, name ~ /^rlock/ ? "rlock" : "peer"))
    if (beyond > value)
        draw(sprintf("<path d=\"M%.1f %.1fH%.1f\" class=\"beyond\"/>",
            end, y - 4.5, left + beyond * scale))
    label(left + width + 75, "right", sprintf("%.2f %s", value, unit))
}

# panel: draws the programs that have a value of at most `most`, and a dashed line at the limit,
# unless the limit is 0.
function panel(title, value, beyond, unit, most, limit, limit_said,    i, longest, top) {
    y += 40
    label(0, "title", title (limit ? "; dashed: " limit_said : ""))
    longest = limit
    for (i = 1; i <= n; i++) {
        if (names[i] in value && value[names[i]] <= most && value[names[i]] > longest)
            longest = value[names[i]]
        if (names[i] in value && value[names[i]] <= most && beyond[names[i]] > longest)
            longest = beyond[names[i]]
    }
    top = y + 8
    for (i = 1; i <= n; i++)
        if (names[i] in value && value[names[i]] <= most)
            bar(names[i], value[names[i]], beyond[names[i]], unit, longest ? width / longest : 0)
    if (limit)
        draw(sprintf("<path d=\"M%.1f %.1fV%.1f\" class=\"limit\"/>",
            left + limit / longest * width, top, y + 8))
}

function style() {
    print "<style>"
    print "text { font: 13px system-ui, sans-serif; fill: #6e7681 }"
    print ".title { font-weight: 600 } .right { text-anchor: end } .small { font-size: 11px }"
    print ".peer { fill: #8c959f } .rlock { fill: #2f81f7 }"
    print ".beyond { stroke: #8c959f; stroke-width: 1.5 }"
    print ".limit { stroke: #e5534b; stroke-width: 1.5; stroke-dasharray: 4 3 }"
    print "@media (prefers-color-scheme: light) { text { fill: #424a53 } }"
    print "@media (prefers-color-scheme: dark) { text { fill: #b1bac4 } }"
    print "</style>"
}

BEGIN {
    FS = "\t"
    left = 170
    width = 480
    y = -16
}

/^#/ { next }
kind == "limit" { limit[$1, $2] = $3; said[$1, $2] = $4; next }
FNR == 1 { next }
{ name = kind == "server" ? $1 ", " $2 : $1 }
!(name in known) { known[name]; names[++n] = name }
kind == "time" { median[$1] = $2 / 1000; p90[$1] = $3 / 1000 }
kind == "memory" { MB[$1] = $2 / 1000; none[$1] = 0 }
kind == "line" { handover[$1] = $2 / 1000; handover_p90[$1] = $3 / 1000 }
kind == "line" { inversions[$1] = $8 ? 100 * $6 / $8 : 0 }
kind == "rest" { waiter_MB[$1] = $2 / 1000; cpu[$1] = $3 / 1000 }
kind == "server" { requests[name] = $3 }

END {
    panel("Time to run true under a lock, median", median, p90, "ms", 2 * median["rlock"],
        limit["time", "flock"] * median["flock"], said["time", "flock"] " times flock")
    panel("The same, all programs", median, p90, "ms", 1e9, 0)
    panel("Memory while holding a lock, PSS of all its processes", MB, none, "MB", 1e9,
        limit["memory", ""] / 1000, said["memory", ""])
    panel("Hand-over in a crowd: end of one command to the next one's start, median", handover,
        handover_p90, "ms", 3 * handover["rlock"],
        limit["line", "etcdctl lock"] * handover["etcdctl lock"],
        said["line", "etcdctl lock"] " of etcdctl lock")
    panel("The same, all programs", handover, handover_p90, "ms", 1e9, 0)
    panel("Pairs of waiters that were not served in the order they came", inversions, none, "%",
        1e9, 0)
    panel("Memory of a waiter, PSS", waiter_MB, none, "MB", 1e9, limit["waiter", ""] / 1000,
        said["waiter", ""])
    panel("Processor time of a waiter at rest", cpu, none, "ms/s", 2, limit["rest", ""] / 1000,
        said["rest", ""])
    panel("Requests to Redis for one grant, by the number of waiters", requests, none, "", 1e9,
        limit["server", ""], said["server", ""])
    y += 36
    label(0, "small", "Thin lines: 90th percentile. " about)

    print "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\""
    printf "    width=\"760\" height=\"%d\" viewBox=\"-10 0 760 %d\">\n", y + 14, y + 14
    print "<title>rlock side by side with what people use instead</title>"
    style()
    printf "%s</svg>\n", body
}
