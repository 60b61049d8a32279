#!/usr/bin/env bats
# scripts: embed.awk turns the Lua scripts and the table of their reply codes into C and Lua.

load ../helpers/common

setup() {
    common_setup
    LUA=$ROOT/lib/lua
    TABLE=$DIR/reply_codes.tsv
    cp "$LUA/reply_codes.tsv" "$TABLE"
}
teardown() { common_teardown; }

# embed FORM FILE...: prints what embed.awk makes of the table of reply codes and the Lua files;
# FORM is c, lua or enum.
embed() {
    awk -v form="$1" -f "$LUA/embed.awk" "$TABLE" "${@:2}"
}

# script NAME TEXT: writes the Lua file NAME.lua.
script() { printf '%s\n' "$2" >"$DIR/$1.lua"; }

@test "reply codes: C and Lua get the same value for each name" {
    local name value by
    embed enum >"$DIR/reply_codes.h"
    while IFS=$'\t' read -r name value by _; do
        [[ $name != '#'* ]] || continue
        file_has "$DIR/reply_codes.h" "^    REPLY_$name = $value(,| )"
        for by in $by; do
            script "$by" "return {REPLY_$name, now}"
            assert_eq "$(embed lua "$DIR/$by.lua")" "return {$value, now}" "$name in $by"
        done
    done <"$TABLE"
}

@test "reply codes: each script contains all codes that the table gives it" {
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

@test "embed: an unknown code, or a code of another script, is an error that names its line" {
    script release $'\nreturn REPLY_MAYBE'
    run -1 embed c "$DIR/release.lua"
    assert_match "$output" 'release.lua:2: REPLY_MAYBE is no reply code'
    script release 'return REPLY_DONE'
    run -1 embed c "$DIR/release.lua"
    assert_match "$output" 'release.lua:1: REPLY_DONE is not among the codes that release returns'
    script timestamp_lock_release 'return REPLY_OK'
    run -0 embed lua "$DIR/timestamp_lock_release.lua"
    assert_eq "$output" 'return 1'
}

@test "embed: a malformed row of the table is an error that names its line" {
    local row
    for row in $'OK\t7\tacquire\tthere twice' $'OTHER\t1\trelease\tthe value of another' \
        $'bad\t9\tacquire\ta name' $'BAD\tx\tacquire\ta value' $'BAD\t9\tacquire'; do
        cp "$LUA/reply_codes.tsv" "$TABLE"
        printf '%s\n' "$row" >>"$TABLE"
        run -1 embed enum
        assert_match "$output" "reply_codes.tsv:[0-9]+: "
    done
}

@test "embed: a comment line becomes an empty line, and -- with FILE becomes that file" {
    mkdir "$DIR/shared"
    printf '%s\n' '-- what it is' 'local a = "?"' >"$DIR/shared/in_it.lua"
    script x $'-- head\n-- with shared/in_it.lua\n  -- more\n  return a -- and why'
    run -0 embed lua "$DIR/x.lua"
    assert_eq "$(cat -A <<<"$output")" $'$\n$\nlocal a = "?"$\n$\nreturn a -- and why$'
    run -0 embed c "$DIR/x.lua"
    assert_match "$output" 'static const char script_x\[\] ='
    assert_match "$output" 'local a = \\"\\\?\\"'
    assert_match "$output" "sha1_x\[\] = \"$(embed lua "$DIR/x.lua" | sha1sum | cut -c 1-40)\""
    script x '-- with shared/not_there.lua'
    run -1 embed lua "$DIR/x.lua"
    assert_match "$output" 'x.lua:1: there is no .*not_there.lua'
    script x '--[[ a block ]]'
    run -1 embed lua "$DIR/x.lua"
    assert_match "$output" 'x.lua:1: block comments'
}
