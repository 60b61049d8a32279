# embed: turns the Lua scripts that the server runs into C string literals.
#
#     awk -v form=c -f embed.awk reply_codes.tsv NAME.lua...   for each script a C string literal,
#                                                              its SHA1, and its table of lines
#     awk -v form=lua -f embed.awk reply_codes.tsv NAME.lua    the text of a script as it is sent
#     awk -v form=lines -f embed.awk reply_codes.tsv NAME.lua  where each line of that text stands
#     awk -v form=enum -f embed.awk reply_codes.tsv            enum reply_code for C
#
# In a Lua file this program replaces
#
#     --@include FILE  by that file, whose path is relative to the folder of the including file
#     REPLY_NAME       by the value of that reply code. It is an error if the table doesn't have the
#                      name, or doesn't have it for this script.
#
# The program removes comments, empty lines, and spaces that the script doesn't need, which are two
# thirds of a script's bytes. The program doesn't join lines, and notes for each line in which file
# and line the text stands. So rlock can name the place when a server's error message contains the
# number of a line. A first line that begins with --! is a flag for servers, and is kept.

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

# Returns whether the line is a flag such as "--!df flags=allow-undeclared-keys", which must be the
# first line of a script.
function is_flag(line) {
    return text == "" && line ~ /^--!/
}

# Returns whether a script needs the space between these two characters: between two words, where a
# number would swallow the point of `..`, and where the two would become --, [[ or ... .
function is_needed(before, after) {
    return before ~ /[A-Za-z0-9_]/ && after ~ /[A-Za-z0-9_]/ || before ~ /[0-9]/ && after == "." ||
           before == after && before ~ /[-[.]/
}

# Returns the line without its comment, and without spaces that the script doesn't need.
function strip(line, where,    i, c, quote, out, has_space) {
    if (is_flag(line))
        return line
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (quote == "") {
            if (substr(line, i, 2) == "[[")
                fail(where, "a string between [[ and ]] is not understood here")
            if (substr(line, i, 2) == "--")
                break
            if (c ~ /[ \t]/) {
                has_space = 1
                continue
            }
            if (has_space && is_needed(substr(out, length(out)), c))
                out = out " "
            has_space = 0
            if (c == "\"" || c == "'")
                quote = c
        } else if (c == quote) {
            quote = ""
        } else if (c == "\\") {
            out = out c
            c = substr(line, ++i, 1)
        }
        out = out c
    }
    return out
}

# Appends line `nr` of `file`, unless it is empty, to the script's text, its C literal and its table
# of lines. Escapes `?` in the literal, because two of them may begin a trigraph in C11.
function emit(line, file, nr,    where, name) {
    where = file ":" nr
    if (line ~ /^ *--@/)
        fail(where, "the only directive is --@include FILE.lua, in a script, not in a shared file")
    line = put_codes(strip(line, where), where)
    if (line == "")
        return
    name = file
    sub(/^(.*\/)?lua\//, "", name)
    if (!(name in file_number)) {
        file_number[name] = n_files++
        file_names = file_names "    \"" name "\",\n"
    }
    text = text line "\n"
    places = places name ":" nr "\n"
    table = table (n_lines++ % 10 ? " " : "\n    ") "{" file_number[name] ", " nr "},"
    gsub(/[\\"?]/, "\\\\&", line)
    gsub(/\t/, "\\\\t", line)
    literal = literal "    \"" line "\\n\"\n"
}

# Prints the script as a C literal, the SHA1 digest by which EVALSHA names the script, and the table
# of lines. The digest is a macro: an array would stand between the texts, see TEXTS in Makefile.
function print_c(    digest) {
    printf "\nstatic const char script_%s[] =\n%s    ;\n", script, literal
    printf "#define sha1_%s \"", script
    fflush()
    digest = "sha1sum | cut -c 1-40 | tr -d '\\n'"
    printf "%s", text | digest
    close(digest)
    print "\""
    printf "static const struct script_line lines_%s[] = {%s\n};\n", script, table
}

function finish() {
    if (script != "" && form == "lua")
        printf "%s", text
    else if (script != "" && form == "lines")
        printf "%s", places
    else if (script != "")
        print_c()
    text = literal = places = table = ""
    n_lines = 0
}

BEGIN {
    FS = "\t"
    n_files = 0
    if (form == "c") {
        print "/* scripts: made by embed.awk from the Lua files; do not edit. */"
        print "/* Where a line of a script stands: in script_files[file], which is in lib/lua. */"
        print "struct script_line {\n    unsigned char file;\n    unsigned short line;\n};"
    }
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

/^ *--@include [a-z\/_]+\.lua$/ {
    path = FILENAME
    sub(/[^\/]*$/, substr($0, index($0, "include ") + 8), path)
    for (n = 1; (got = (getline line < path)) > 0; n++)
        emit(line, path, n)
    if (got < 0)
        fail(FILENAME ":" FNR, "there is no " path)
    close(path)
    next
}

{
    emit($0, FILENAME, FNR)
}

END {
    if (failed)
        exit 1
    finish()
    if (form == "enum")
        print_enum()
    else if (form == "c")
        printf "\nstatic const char script_files[][32] = {\n%s};\n", file_names
}
