#!/usr/bin/env bats
# scripts: embed.awk turns the Lua scripts and the table of their reply codes into C and Lua.

load ../helpers/common

setup() {
    common_setup
    LUA=$ROOT/lib/lua
    TABLE=$DIR/reply_codes.tsv
    cp "$LUA/reply_codes.tsv" "$TABLE"
}

# embed FORM FILE...: prints what embed.awk makes of the table of reply codes and the Lua files;
# FORM is c, lua or enum.
embed() {
    awk -v form="$1" -f "$LUA/embed.awk" "$TABLE" "${@:2}"
}

@test "reply codes: each script contains all codes that reply_codes.tsv gives it" {
    local name by
    while IFS=$'\t' read -r name _ by _; do
        [[ $name != '#'* ]] || continue
        for by in $by; do
            grep -v '^ *--' "$LUA/$by.lua" | grep -qw "REPLY_$name" ||
                fail "$by never returns $name"
        done
    done <"$TABLE"
}

@test "reply codes: no script returns a number instead of a code" {
    run -1 grep -nE 'return (-?[0-9]+( |$)|\{-?[0-9]+,)' "$LUA"/*.lua
}

@test "embed: each line of a script that is sent stands in the file and line that the table names" {
    local name text place
    for name in "$LUA"/*.lua; do
        embed lua "$name" >"$DIR/text"
        embed lines "$name" >"$DIR/places"
        assert_eq "$(wc -l <"$DIR/places")" "$(wc -l <"$DIR/text")" "lines of $name"
        sed -E 's/^(.*):(.*)$/\1 \2/' "$DIR/places" |
            awk -v lua="$LUA/" '{ file = lua $1; for (n = 0; n < $2; n++) getline line < file
                close(file); print line }' >"$DIR/sources"
        # Remove what embed.awk changes: comments, codes, and spaces.
        sed -E '/^--!/b; s/REPLY_[A-Z_]+/CODE/g; s/ *-- .*//; s/ //g' "$DIR/sources" \
            >"$DIR/stripped"
        sed '/^--!/b; s/ //g' "$DIR/text" | paste - "$DIR/stripped" | awk -F '\t' '{
            text = $1; source = $2
            while ((at = index(source, "CODE")) && match(substr(text, at), /^-?[0-9]+/)) {
                source = substr(source, 1, at - 1) substr(text, at, RLENGTH) substr(source, at + 4)
            }
            if (text != source) { print NR ": " text " <> " source; exit 1 }
        }' || fail "the text sent for $name differs from its files"
    done
}

@test "an error in a script: the message names the file and the line of the command that failed" {
    local place
    redis_start redis --rename-command SET set-of-ours
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    run -78 --separate-stderr rlock -n -k "$KEY" -- true
    place=$(grep -oE 'lib/lua/[a-z_/]+\.lua:[0-9]+' <<<"$stderr") ||
        fail "the message has no file and line of a script: $stderr"
    assert_match "$(sed -n "${place#*:}p" "$ROOT/${place%:*}")" "redis.call\('SET'"
}
