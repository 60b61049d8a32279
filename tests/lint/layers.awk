# layers: a file may include only files of lower layers, and its own header.
#
#     awk -v below="NAME..." -f layers.awk DIR/LAYERS DIR/*.[ch]
#
# LAYERS has lines `NUMBER NAME...`, low to high; # begins a comment. `below` names what may be
# included from the folder underneath: of the whole library, rlock.h alone. scripts.h is made
# from the Lua files and belongs to script.c.

function complain(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why
    failed = 1
}

function name_of(path) {
    sub(/^.*\//, "", path)
    sub(/\.[ch]$/, "", path)
    return path
}

BEGIN {
    n = split(below, names, " ")
    for (i = 1; i <= n; i++)
        layer[names[i]] = -1
}

NR == FNR {
    sub(/#.*/, "")
    if (NF > 0 && $1 <= last)
        complain("layers are not in order")
    for (i = 2; i <= NF; i++)
        layer[$i] = $1
    if (NF > 0)
        last = $1 + 0
    next
}

FNR == 1 {
    self = name_of(FILENAME)
    seen[self] = 1
    if (!(self in layer))
        complain(self " is in no layer")
}

/^#[ ]*include "/ {
    split($0, part, "\"")
    other = name_of(part[2])
    if (other == self || (other == "scripts" && self == "script"))
        next
    if (!(other in layer))
        complain(self " may not include " other)
    else if (layer[other] >= layer[self])
        complain(self " (" layer[self] ") may not include " other " (" layer[other] ")")
}

END {
    for (name in layer)
        if (layer[name] >= 0 && !(name in seen)) {
            printf "%s: %s has a layer and no file\n", ARGV[1], name
            failed = 1
        }
    exit failed
}

BEGIN { last = -1 }
