# layers: checks that each file includes only its own header and files that LAYERS allows.
#
#     awk -f layers.awk DIR/LAYERS FILE...
#
# A line of LAYERS is a folder and its files; the folder . is DIR itself. A file may include files
# of the folders on the lines above its own folder's line, and on that line the files to its left.
# The line `library NAME...` has the headers of lib that cmd may include. # begins a comment.
#
# LAYERS doesn't list the two headers that the build makes from lib/lua: scripts_embedded.h, which
# only lock/scripts.c includes, and reply_codes.h, which only lock/replies.h or .c includes.

function complain(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why
    failed = 1
}

function name_of(path) {
    sub(/\.[ch]$/, "", path)
    return path
}

NR == FNR {
    sub(/#.*/, "")
    if (FNR == 1) {
        top = FILENAME
        sub(/LAYERS$/, "", top)
    }
    for (i = 2; i <= NF; i++) {
        name = $1 == "library" || $1 == "." ? $i : $1 "/" $i
        if (name in layer)
            complain(name " stands here twice")
        layer[name] = ++n
        is_ours[name] = $1 != "library"
    }
    next
}

FNR == 1 {
    self = name_of(substr(FILENAME, length(top) + 1))
    seen[self] = 1
    if (!(self in layer))
        complain("add " self " to its folder's line in " top "LAYERS")
}

/^#[ ]*include "/ {
    split($0, part, "\"")
    other = name_of(part[2])
    if (other == self || (other == "scripts_embedded" && self == "lock/scripts") ||
        (other == "reply_codes" && self == "lock/replies"))
        next
    if (!(self in layer)) # not in LAYERS, as the rule above has reported: skip its includes
        next
    if (!(other in layer))
        complain(self " may not include " other)
    else if (layer[other] >= layer[self])
        complain(self " may not include " other ", which stands behind it in LAYERS")
}

END {
    for (name in layer)
        if (is_ours[name] && !(name in seen)) {
            printf "%s: %s has a layer and no file\n", ARGV[1], name
            failed = 1
        }
    exit failed
}
