# embed: turns the Lua scripts that the server runs into C string literals.
#
#     awk -v form=c -f embed.awk reply_codes.tsv NAME.lua...   C string literals, and SHA1 digests
#     awk -v form=lua -f embed.awk reply_codes.tsv NAME.lua    the text of a script as it is sent
#     awk -v form=enum -f embed.awk reply_codes.tsv            enum reply_code for C
#
# In a Lua file this program replaces
#
#     -- with FILE     by that file, whose path is relative to the folder of the including file
#     REPLY_NAME       by the value of that reply code. It is an error if the table doesn't have the
#                      name, or doesn't have it for this script.
#
# The program removes comment lines and indentation. A comment line becomes an empty line, so that
# line numbers in the server's error messages stay the same.

function fail(where, why) {
    printf "%s: %s\n", where, why > "/dev/stderr"
    failed = 1
    exit 1
}

# ---- reading the table of reply codes ----

function read_code(    scripts, n, i) {
    if ($1 !~ /^[A-Z][A-Z_]*$/ || $2 !~ /^-?[0-9]+$/ || NF != 4)
        fail(FILENAME ":" FNR, "a row needs name, value, scripts and meaning, with tabs between")
    if ($1 in value)
        fail(FILENAME ":" FNR, $1 " is there twice")
    value[$1] = $2
    name_of[++n_codes] = $1
    meaning[$1] = $4
    n = split($3, scripts, " ")
    for (i = 1; i <= n; i++) {
        if ((scripts[i], $2) in name_by_value)
            fail(FILENAME ":" FNR, scripts[i] " would return " $2 " with two meanings")
        name_by_value[scripts[i], $2] = $1
        may_return[scripts[i], $1] = 1
    }
}

function print_enum(    i, name, comma) {
    print "/* reply_codes: made by embed.awk from reply_codes.tsv; do not edit. */"
    print "#ifndef REPLY_CODES_H\n#define REPLY_CODES_H\n\nenum reply_code {"
    for (i = 1; i <= n_codes; i++) {
        name = name_of[i]
        comma = i < n_codes ? "," : ""
        printf "    REPLY_%s = %d%s /* %s */\n", name, value[name], comma, meaning[name]
    }
    print "};\n\n#endif"
}

# ---- embedding the scripts ----

# A script of the timestamp protocol may return the codes that the table gives to the script of the
# same verb.
function verb(script) {
    sub(/^timestamp_lock_/, "", script)
    return script
}

function put_codes(line, where,    name) {
    while (match(line, /REPLY_[A-Z_]*/)) {
        name = substr(line, RSTART + 6, RLENGTH - 6)
        if (!(name in value))
            fail(where, "REPLY_" name " is no reply code")
        if (!((verb(script), name) in may_return))
            fail(where, "REPLY_" name " is not among the codes that " verb(script) " returns")
        line = substr(line, 1, RSTART - 1) value[name] substr(line, RSTART + RLENGTH)
    }
    return line
}

# Appends a line to the script's text, and to its C literal. Escapes `?` in the literal, because two
# of them may begin a trigraph in C11.
function emit(line, where) {
    sub(/^[ \t]*(--.*)?/, "", line)
    line = put_codes(line, where)
    text = text line "\n"
    gsub(/[\\"?]/, "\\\\&", line)
    gsub(/\t/, "\\\\t", line)
    literal = literal "    \"" line "\\n\"\n"
}

# Prints the script as a C literal, and the SHA1 digest by which EVALSHA names the script.
function print_c(    digest) {
    printf "\nstatic const char script_%s[] =\n%s    ;\n", script, literal
    printf "static const char sha1_%s[] = \"", script
    fflush()
    digest = "sha1sum | cut -c 1-40 | tr -d '\\n'"
    printf "%s", text | digest
    close(digest)
    print "\";"
}

function finish() {
    if (script != "" && form == "lua")
        printf "%s", text
    else if (script != "")
        print_c()
    text = literal = ""
}

BEGIN {
    FS = "\t"
    if (form == "c")
        print "/* scripts: made by embed.awk from the Lua files; do not edit. */"
}

FILENAME ~ /\.tsv$/ {
    if (!/^#/)
        read_code()
    next
}

FNR == 1 {
    finish()
    script = FILENAME
    sub(/^.*\//, "", script)
    sub(/\.lua$/, "", script)
    if (script !~ /^[a-z][a-z0-9_]*$/)
        fail(FILENAME, "the file's name is no C name")
}

/^[ \t]*--\[=*\[/ {
    fail(FILENAME ":" FNR, "block comments are not understood here, write -- on each line")
}

/^-- with [a-z\/_]+\.lua$/ {
    path = FILENAME
    sub(/[^\/]*$/, substr($0, 9), path)
    for (n = 1; (got = (getline line < path)) > 0; n++)
        emit(line, path ":" n)
    if (got < 0)
        fail(FILENAME ":" FNR, "there is no " path)
    close(path)
    next
}

{
    emit($0, FILENAME ":" FNR)
}

END {
    if (failed)
        exit 1
    finish()
    if (form == "enum")
        print_enum()
}
