# owners: finds writes to a struct's fields outside the file that owns the struct.
#
#     awk -f code.awk -f owners.awk OWNERS HEADER... FILE...
#
# NAME.c owns the structs that NAME.h of the same folder declares: no other file may assign to their
# fields, or write to them by snprintf() or memset(). OWNERS has the exceptions, one a line: the
# struct, and the files that may also write it, or * for a struct that callers fill in. The script
# also reports exceptions that no file needs. It ignores structs that a .c file declares.
#
# The script is no compiler. It follows a chain of names such as a->b[i].c from the declaration of
# `a` in the same function through the fields of the structs. The script doesn't follow a chain that
# begins with a call.

function complain(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why
    failed = 1
}

# declare: remembers the type of each NAME that `struct TYPE *NAME, *NAME` declares in the line: as
# a field if the line is in a struct's body, else as a variable.
function declare(line,   type, name) {
    while (match(line, /struct [a-z_0-9]+ +\**(const )?\**[a-z_0-9]+/)) {
        type = name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/^struct /, "", type)
        sub(/[ *].*/, "", type)
        sub(/.*[ *]/, "", name)
        remember(name, type)
        while (match(line, /^(\[[^]]*\])?( = [^,;()]*)?, \**[a-z_0-9]+ *[][,;=)]/)) {
            name = substr(line, 1, RLENGTH - 1)
            line = substr(line, RLENGTH)
            sub(/ *$/, "", name)
            sub(/.*[ *]/, "", name)
            remember(name, type)
        }
    }
}

function remember(name, type) {
    if (in_struct != "")
        field[in_struct, name] = type
    else
        variable[name] = type
}

# holder_of: returns the struct type that has the last field of a chain such as a->b[i].c (the field
# c); "" if the script can't tell.
function holder_of(chain,   part, n, i, type) {
    gsub(/\[[^]]*\]/, "", chain)
    gsub(/->/, ".", chain)
    n = split(chain, part, ".")
    if (!(part[1] in variable))
        return ""
    type = variable[part[1]]
    for (i = 2; i < n; i++)
        if ((type, part[i]) in field)
            type = field[type, part[i]]
    return type
}

function is_allowed(type,   n, i, file) {
    n = split(writers[type], file)
    for (i = 1; i <= n; i++)
        if (file[i] == "*" || file[i] == FILENAME) {
            is_needed[type, file[i]] = 1
            return 1
        }
    return 0
}

function judge(chain, type) {
    if (type in owner && owner[type] != FILENAME && !is_allowed(type))
        complain(chain " is written here, and struct " type " belongs to " owner[type] \
                 "; see " owners)
}

# look: calls judge() for each chain, such as a->b[i].c, to which the line writes: by an assignment,
# by ++ or --, or by a function that fills memory.
function look(line,   chain, rest, before) {
    gsub(/[^-+<>=!*\/%&|^]==/, " @@ ", line)
    gsub(/(<=|>=|!=)/, "@@", line)
    while (match(line, /[a-z_][a-z_0-9]*(\[[^]]*\])*((->|\.)[a-z_][a-z_0-9]*(\[[^]]*\])*)+/)) {
        before = substr(line, 1, RSTART - 1)
        chain = substr(line, RSTART, RLENGTH)
        rest = substr(line, RSTART + RLENGTH)
        if (rest ~ /^ *([-+*\/%&|^]|<<|>>)?=[^=]/ || rest ~ /^ *([-+*\/%&|^]|<<|>>)?=$/ ||
            rest ~ /^(\+\+|--)/ || before ~ /(\+\+|--)\**$/ ||
            before ~ /(snprintf|memcpy|memset|memmove|stpcpy|strcpy|vsnprintf)\(&?$/)
            judge(chain, holder_of(chain))
        line = rest
    }
}

FNR == 1 {
    in_struct = ""
    split("", variable)
    n_files_seen++
}

n_files_seen == 1 {
    sub(/#.*/, "")
    owners = FILENAME
    if (NF == 1)
        complain($1 " has no file")
    if (NF > 0)
        writers[$1] = substr($0, index($0, $2))
    next
}

{
    read_code($0)
}

/^struct [a-z_0-9]+ \{/ {
    in_struct = $2
    if (FILENAME ~ /\.h$/) {
        owner[in_struct] = FILENAME
        sub(/h$/, "c", owner[in_struct])
    }
    next
}

/^}/ {
    in_struct = ""
    split("", variable)
    next
}

in_struct != "" || FILENAME ~ /\.h$/ {
    declare(text)
    next
}

{
    declare(text)
    look(text)
    if (match(text, /^ *\*[a-z_][a-z_0-9]* = /)) {
        chain = substr(text, RSTART, RLENGTH)
        gsub(/[ *=]/, "", chain)
        if (chain in variable)
            judge("*" chain, variable[chain])
    }
}

END {
    for (type in writers) {
        n = split(writers[type], file)
        for (i = 1; i <= n; i++)
            if (!((type, file[i]) in is_needed)) {
                printf "%s: struct %s: %s does not write it\n", ARGV[1], type, file[i]
                failed = 1
            }
    }
    exit failed
}
