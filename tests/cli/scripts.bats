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
            assert_eq "$(embed lua "$DIR/$by.lua")" "return{$value,now}" "$name in $by"
        done
    done <"$TABLE"
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

# ---- keys that are not in KEYS ----

# undeclared_keys FILE: reads what MONITOR wrote to FILE. Prints the SHA1 of each script, and a key
# that the script used and that was not among its KEYS.
undeclared_keys() {
    python3 - "$1" <<'END'
import re, shlex, sys
keys, sha = [], None
for line in open(sys.argv[1]):
    who, _, words = line.partition('] ')
    words = [word.encode().decode('unicode_escape') for word in shlex.split(words)]
    if words and words[0].upper() == 'EVALSHA':
        sha, keys = words[1], words[3:3 + int(words[2])]
    elif who.endswith(' lua') and words[0].upper() not in ('TIME', 'ACL', 'SCAN'):
        used = words[1:] if words[0].upper() in ('DEL', 'EXISTS') else words[1:2]
        for key in set(used) - set(keys):
            print(sha, key)
    elif who.endswith(' lua') and words[0].upper() == 'SCAN':
        print(sha, '(SCAN)')
END
}

@test "a script that uses keys outside KEYS begins with the flag that strict servers want" {
    local name sha mode token=0123456789abcdef0123456789abcdef
    redis_start
    redis_load_scripts
    redis_monitor "$DIR/monitor"
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    for mode in -x -s --slots=2; do
        hold "one$mode" -t 3 "$mode" -k "$KEY$mode"
        start "two$mode" "$RLOCK" -w 20 -x -k "$KEY$mode" -- true
    done
    for mode in -x -s --slots=2; do eventually 5 in_queue 1 "$KEY$mode"; done
    hold time --protocol timestamp -t 3 -k "$KEY:time"
    start late "$RLOCK" -w 20 --protocol timestamp -k "$KEY:time" -- true
    run -75 "$RLOCK" status -k "$KEY-x"
    run -0 "$RLOCK" list
    run -0 "$RLOCK" -k "$KEY:noted" --history 9 -- true
    run -0 "$RLOCK" history
    run -0 "$RLOCK" break --yes -k "$KEY-s"
    run "$RLOCK" doctor --history 9
    eventually 5 renewed
    for name in one-x one--slots=2 time; do let_go "$name"; done
    for name in two-x two-s two--slots=2 late; do
        ended 0 "$name" 20
    done
    redis_cli set k "$token v1 try=1 ttl=1000 host=h" >/dev/null
    run -0 redis_cli EVALSHA "$(sha1_of confirm)" 3 k{,:fence,:queue} "$token" 1 1000 0
    assert_match "$output" '^1'
    redis_cli echo "end of $KEY" >/dev/null
    eventually 5 file_has "$DIR/monitor" '"echo" "end of'
    undeclared_keys "$DIR/monitor" >"$DIR/undeclared"
    for name in "$LUA"/*.lua; do
        sha=$(sha1_of "$(basename "$name" .lua)")
        file_has "$DIR/monitor" "\"EVALSHA\" \"$sha\"" || fail "$name was not run"
        [[ $(head -n 1 "$name") == '--!df flags=allow-undeclared-keys' ]] ||
            refute_match "$(<"$DIR/undeclared")" "$sha" "$name has no flag"
    done
    assert_match "$(<"$DIR/undeclared")" ':rlock:wake:' 'keys that are not in KEYS'
    # The server knew each digest that rlock sent: redis_load_scripts has loaded the scripts.
    refute_match "$(redis_cli info errorstats)" NOSCRIPT
}
in_queue() { [[ $(redis_cli zcard "{$2}:rlock:queue") == "$1" ]]; }
renewed() { file_has "$DIR/monitor" "$(sha1_of timestamp_lock_renew)"; }
sha1_of() { embed lua "$LUA/$1.lua" | sha1sum | cut -c 1-40; }
