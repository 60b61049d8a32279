# embed: prints each Lua file as a C string literal, one literal line for each Lua line.
#
#     awk -f embed.awk NAME.lua... >scripts_embedded.h
#
# Comment lines become empty lines, so that line 12 of an error message from the server is
# line 12 of the file; where a file says "-- with FILE" that one stands in its place, and the
# lines count on from there. `?` is escaped because -std=c11 still knows trigraphs. Behind each
# script comes its SHA1, by which a server knows it.

function finish(    digest) {
    if (name == "")
        return
    printf "    ;\nstatic const char sha1_%s[] = \"", name
    fflush()
    digest = "sha1sum | cut -c 1-40 | tr -d '\\n'"
    printf "%s", text | digest
    close(digest)
    print "\";"
    text = ""
}

# Neither comments nor indentation are of use to the server, which gets this with each request.
function emit(line) {
    sub(/^[ \t]*(--.*)?/, "", line)
    text = text line "\n"
    gsub(/[\\"?]/, "\\\\&", line)
    gsub(/\t/, "\\\\t", line)
    printf "    \"%s\\n\"\n", line
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

/^-- with [a-z\/]+\.lua$/ {
    path = FILENAME
    sub(/[^\/]*$/, $3, path)
    while ((got = (getline line < path)) > 0)
        emit(line)
    if (got < 0)
        fail("there is no " path)
    close(path)
    next
}

{
    emit($0)
}

END {
    if (!failed)
        finish()
}
