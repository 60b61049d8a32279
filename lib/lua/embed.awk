# embed: prints each Lua file as a C string literal, one literal line for each Lua line.
#
#     awk -f embed.awk NAME.lua... >scripts.h
#
# Comment lines become empty lines, so that line 12 of an error message from the server is
# line 12 of the file. `?` is escaped because -std=c11 still knows trigraphs.

function finish() {
    if (name != "")
        print "    ;"
}

function fail(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
    failed = 1
    exit 1
}

BEGIN {
    print "/* scripts: made by embed.awk from the Lua files; do not edit. */"
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.lua$/, "", name)
    if (name !~ /^[a-z][a-z0-9_]*$/)
        fail("the file's name is no C name")
    printf "\nstatic const char script_%s[] =\n", name
}

/^[ \t]*--\[=*\[/ {
    fail("block comments are not understood here, write -- on each line")
}

/^[ \t]*--/ {
    $0 = ""
}

{
    gsub(/[\\"?]/, "\\\\&")
    gsub(/\t/, "\\\\t")
    printf "    \"%s\\n\"\n", $0
}

END {
    if (!failed)
        finish()
}
