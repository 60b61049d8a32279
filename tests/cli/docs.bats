#!/usr/bin/env bats
# docs: the program's tables, its help, the manual pages and the README agree.
#
# The program itself tells its options, verbs and exit statuses (--dump=TABLE). Each comparison of
# two lists fails for what is missing, and also for what should not be there.

load ../helpers/common

MAN=$ROOT/man/rlock.1
PAGES=("$ROOT"/man/*.[1-9])

# agree LEFT RIGHT PLACE: calls two functions, which must print the same lines in any order, and at
# least one. PLACE is what to change if they don't.
agree() {
    local left right difference
    left=$("$1" | sort -u) && right=$("$2" | sort -u) || fail "$1 or $2 failed" || return 1
    [[ -n $left ]] || fail "$1 prints nothing" || return 1
    difference=$(diff <(echo "$left") <(echo "$right")) && return
    sed -n "s/^</only in $1:/p; s/^>/only in $2:/p" <<<"$difference" >&2
    echo "change $3" >&2
    return 1
}

dump() { "$RLOCK" --dump="$1"; }
dump_column() { dump "$1" | cut -f"$2"; }

# section PAGE NAME [LEVEL]: prints the lines of a section of a manual page, such as rlock.1; LEVEL
# is Sh (default) or Ss.
section() {
    awk -v name="$2" -v level="${3:-Sh}" '
        /^\.Sh / || (level == "Ss" && /^\.Ss /) { inside = $0 == "." level " " name; next }
        inside' "$ROOT/man/$1"
}

# ---- options ----

# program_options, manual_options, help_options print a line for each option: letter, name,
# argument, default.
program_options() { dump options | awk -F '\t' -v OFS='\t' '{ print $1, $2, $3, $5 }'; }

manual_options() {
    awk -v OFS='\t' '
        function flush() {
            if (name != "")
                print letter, name, argument, by_default
            name = ""
            letter = argument = by_default = "-"
        }
        /^\.(S[hs]|It Fl) / { flush() }
        /^\.It Fl / {
            for (i = 2; i <= NF; i++)
                if ($i == "Fl" && sub(/^-/, "", $(i + 1)))
                    name = $++i
                else if ($i == "Fl")
                    letter = $++i
                else if ($i !~ /^([A-Z][a-z]|,)$/)
                    argument = (argument == "-" ? "" : argument) $i
        }
        match($0, /^Default: .*\.$/) {
            by_default = substr($0, RSTART + 9, RLENGTH - 10)
        }' "$MAN" "$ROOT/man/rlock-verbs.1" | sort -u
}

every_help() {
    local verb
    for verb in --all $(named_verbs); do
        COLUMNS=1000 "$RLOCK" help "$verb"
    done
}
help_options() {
    every_help | awk -v OFS='\t' '
        match($0, /^  (-.,|   ) --[a-z-]+/) {
            letter = substr($0, 3, 1) == "-" ? substr($0, 4, 1) : "-"
            name = substr($0, 9, RLENGTH - 8)
            rest = substr($0, RLENGTH + 1)
            argument = rest ~ /^ [^ ]/ ? substr(rest, 2, match(rest " ", /[^ ] /) - 1) : "-"
            by_default = match(rest, /\[[^]]*\]$/) ? substr(rest, RSTART + 1, RLENGTH - 2) : "-"
            print letter, name, argument, by_default
        }'
}

# known_options prints the options of the program's table; mentioned_options prints those, and every
# option that the manual pages and the README mention.
named_verbs() { dump_column verbs 1 | grep -v '^-$'; }
known_options() { dump_column options 2; dump_column flock 2 | grep -v '^-$'; }
mentioned_options() {
    {
        sed -n 's/^\.It//; /Fl -[a-z]/p' "${PAGES[@]}" | grep -oE 'Fl -[a-z-]+' | cut -c5-
        # Options of Containerfiles, of systemd-run, of container engines, and for a download
        local others='^COPY --from=|systemd-run|(docker|podman) run|^ *(curl|sha256sum) '
        grep -vhE "$others" README.md "${PAGES[@]}" |
            grep -oE -- '(^|[^a-z-])--[a-z][a-z-]*' | sed 's/.*--//'
        known_options
    } | grep -v '^$'
}

# program_flock_names, manual_flock_names print the name of each option of flock(1) that rlock
# accepts under another name, and rlock's name for it.
program_flock_names() {
    dump flock | awk -F '\t' '$3 != "-" { print ($2 == "-" ? $1 : "-" $2), $3 }'
}
manual_flock_names() {
    awk '/^\.It Fl / { for (i = 2; i <= NF; i++) if ($i ~ /^-[a-z]/) name = substr($i, 2) }
        last == ".Xr flock 1 :" {
            gsub(/^\.Fl | \.$/, ""); n = split($0, word, " , ")
            for (i = 1; i <= n; i++) print word[i], name
        }
        { last = $0 }' "$MAN"
}

refused_flock_names() { dump flock | awk -F '\t' '$3 == "-" { print $2 }'; }
manual_refused_names() { section rlock.1 STANDARDS | sed -nE 's/^\.Fl -([a-z-]+).*/\1/p'; }

# ---- verbs ----

help_verbs() { "$RLOCK" help --all | sed -nE '/^verbs:/,/^exit status:/s/^  ([a-z]+) .*/\1/p'; }
manual_verbs() { section rlock-verbs.1 VERBS | sed -nE 's/^\.Ss ([a-z]+)$/\1/p'; }
mentioned_verbs() { section rlock.1 VERBS | sed -nE 's/^\.It Cm ([a-z]+)$/\1/p'; }

@test "verbs: each verb has a file of tests" {
    local verb
    for verb in $(named_verbs); do
        [[ -s $ROOT/tests/cli/$verb.bats ]] || fail "no tests of $verb"
    done
}

# The README's row of rlock-verbs(1) names the verbs that ask a server. rights.bats has what the
# manual's section on rights says of each.
asking_verbs() { named_verbs | grep -vxE 'help|version'; }
readme_verbs() {
    sed -n 's/^| \[rlock-verbs(1)\]//p' README.md | grep -oE '`[a-z]+`' | tr -d '`'
}

# program_usages, manual_usages print a line for each verb: its name, and the words that must or may
# follow.
program_usages() {
    local verb
    for verb in $(named_verbs); do
        "$RLOCK" "$verb" --help | sed -n 's/^usage: rlock //p'
    done
}
manual_usages() {
    section rlock.1 SYNOPSIS |
        sed -e 's/Oo Ar \([A-Z]*\) Oc/[\1]/; s/Op Ar \([A-Z]*\)/[\1]/g; s/ Ar / /' |
        awk '
            sub(/^\.Cm /, "") {
                n = split($0, word, " ")
                words = ""
                for (i = n; i > 0 && word[i] !~ /^[a-z|]+$/; i--)
                    words = " " word[i] words
                for (; i > 0; i--)
                    if (word[i] != "|")
                        print word[i] words
            }'
}

# ---- environment and files ----

program_variables() { dump options | awk -F '\t' '$4 != "-" { print $4, $2 }'; }
manual_variables() {
    section rlock.conf.5 KEYS | sed -nE 's/^\.It Cm ([a-z-]+) No = .* Pq Ev ([A-Z_]+)$/\2 \1/p'
}

# program_unset and manual_unset print the options that only the command line takes.
program_unset() { dump options | awk -F '\t' '$4 == "-" { print $2 }'; }
manual_unset() {
    sed -n '/^The options$/,/can be given only on/p' "$ROOT/man/rlock.conf.5" |
        grep '^\.Fl ' | grep -oE '[a-z]{2,}'
}

# program_keys and manual_keys print a line for each key of a configuration file: its name, its
# argument and its default.
program_keys() {
    dump options | awk -F '\t' -v OFS='\t' '$4 != "-" { print $2, $3 == "-" ? "yes" : $3, $5 }'
}
manual_keys() {
    section rlock.conf.5 KEYS | awk -v OFS='\t' '
        function flush() {
            if (name != "")
                print name, argument, by_default
            name = argument = ""
            by_default = "-"
        }
        /^\.(Ss|It Cm [a-z-]+ No =)/ { flush() }
        /^\.It Cm [a-z-]+ No =/ {
            name = $3
            for (i = 6; $i != "Pq"; i++)
                if ($i !~ /^[A-Z][a-z]$/)
                    argument = argument $i
        }
        match($0, /^Default: .*\.$/) {
            by_default = substr($0, RSTART + 9, RLENGTH - 10)
        }
        END { flush() }'
}

read_variables() {
    grep -ohE '(getenv|if_set|(find|environment)_value)\("[A-Z_]+"' "$ROOT"/cmd/*/*.c |
        cut -d'"' -f2
    echo PATH           # execvpe(3) reads it
    # rlock reads these two, but not by getenv("NAME"), so the grep above doesn't find them
    echo RLOCK_KEY
    echo RLOCK_STRIPPED
    dump_column options 4 | grep -v '^-$'
}
named_variables() {
    section rlock.conf.5 ENVIRONMENT | sed -n 's/^\.It Ev //p'
    manual_variables | cut -d' ' -f1
}

given_variables() {
    REDIS_URL=redis://user:secret@host "$RLOCK" -u local: -k "$KEY" -- \
        "$RLOCK" -u local: --slots 2 -k "$KEY:2" -- env |
        grep -o '^RLOCK_[A-Z_]*' | grep -v '^RLOCK_TEST_\|^RLOCK_LOCAL_DIR\|^RLOCK_HOLD_DIR'
}
promised_variables() { section rlock.conf.5 "THE COMMAND'S ENVIRONMENT" | sed -n 's/^\.It Ev //p'; }

known_keys() { program_keys | cut -f1; }
known_and_example_keys() {
    known_keys
    section rlock.conf.5 DESCRIPTION | sed -n '/^# .*rlock.conf/,/^\.Ed/s/ = .*//p'
}

# ---- combinations ----

# Both print "a feature: those it excludes. The reason", without the marks of mdoc.
program_combinations() {
    dump combinations | awk -F '\t' '{
        print $1 ": " $2 ". " toupper(substr($3, 1, 1)) substr($3, 2) "." }'
}
manual_combinations() {
    section rlock-locks.7 COMBINATIONS | awk '
        /^\.It/ {
            gsub(/^\.It |No /, ""); gsub(/Fl -/, "--"); gsub(/Cm /, "")
            gsub(/ ,/, ","); gsub(/ :/, ":")
            row = $0
        }
        row != "" && !/^\./ && !/^-/ && $0 != row { print row ". " $0; row = "" }'
}

# ---- exit statuses and verdicts ----

program_statuses() { dump_column exits 1 | grep -v '^-'; }
manual_statuses() { section rlock.1 'EXIT STATUS' | sed -n 's/^\.It \([0-9]*\)$/\1/p'; }
help_statuses() { "$RLOCK" --help | sed -n '/^exit status:/,$s/^  \([0-9]\{1,\}\) .*/\1/p'; }

program_verdicts() { dump exits | awk -F '\t' '{ print $2, $1 < 0 ? "-" : $1 }'; }
manual_verdicts() {
    section rlock-messages.7 'THE REPORT' |
        awk '/^\.It Cm / { print $3, $5 ~ /^[0-9]/ && $6 == "Ta" ? $5 : "-" }'
}

# ---- reports and messages ----

members() { grep -oE '"[a-z_]+":' "$1" | tr -d '":'; }
report_members() { members "$DIR/report"; }
manual_report() { section rlock-messages.7 'THE REPORT' | sed -n 's/^\.It Va //p'; }

SCHEMA=$ROOT/docs/messages.schema.json
schema() { python3 -c 'import json, sys
schema = json.load(open(sys.argv[1], encoding="utf-8"))
print(*eval(sys.argv[2]), sep="\n")' "$SCHEMA" "$1"; }
schema_members() { schema 'schema["properties"]'; }
manual_json() {
    section rlock-messages.7 'JSON MESSAGES' | sed -n 's/^\.It Va //p' | sed 's/ , /\n/g'
}

program_events() { dump events; }
schema_events() { schema 'schema["properties"]["event"]["enum"]'; }
manual_events() {
    section rlock-messages.7 'JSON MESSAGES' | sed -nE "s/^\.It Cm ([a-z', -]*)( No .*)?\$/\1/p"
    manual_verdicts | cut -d' ' -f1
}

# ---- versions, manual pages, architecture ----

@test "manual: mandoc and groff find nothing to warn of" {
    local page
    need mandoc groff
    run -0 mandoc -T lint -W warning "${PAGES[@]}"
    assert_eq "$output" ""
    for page in "${PAGES[@]}"; do
        run -0 --separate-stderr groff -ww -mdoc -K utf8 -T utf8 "$page"
        # groff 1.23 says so of each line of one long word.
        assert_eq "$(grep -v 'warning.*cannot adjust line$' <<<"$stderr")" ""
    done
}

headings() {
    local page name section
    for page in "${PAGES[@]}"; do
        IFS=' ' read -r name section < <(page_name "$page")
        sed -nE "s/^\.S[hs] (\\\\&)?(.*)/$name($section): \\2/p" "$page"
    done
}
# page_name FILE: prints the name and the section of a manual page, as .Xr takes them.
page_name() { sed -E 's,.*/(.*)\.([1-9])$,\1 \2,' <<<"$1"; }
# references: prints the sections and pages to which the pages refer, a section of the same page by
# .Sx, a section of another page by .Dq and, two lines below, .Xr.
references() {
    local page name section
    for page in "${PAGES[@]}"; do
        IFS=' ' read -r name section < <(page_name "$page")
        awk -v here="$name($section)" '
            match($0, /Sx /) {
                name = substr($0, RSTART + 3)
                sub(/( [.,;:)]+)+$/, "", name)
                print here ": " name
            }
            /^\.Dq / { quoted = substr($0, 5); at = NR }
            /^\.Xr rlock/ && NR == at + 2 && before == "in" { print $2 "(" $3 "): " quoted }
            { before = $0 }' "$page"
    done
}
known_and_named_headings() { headings; references; }

own_pages() {
    local page
    for page in "${PAGES[@]}"; do page_name "$page"; done
}
named_pages() { sed -nE 's/^\.Xr (rlock[a-z.-]*) ([0-9]).*/\1 \2/p' "${PAGES[@]}"; }

@test "manual: each test that BOUNDS names exists" {
    local each named
    named=$(sed -n '/^.Sh BOUNDS/,/^.Sh SIGNALS/p' "$ROOT/man/rlock-locks.7" |
        grep -oE 'tests/[a-z_/]+\.[a-z]+')
    assert_match "$named" 'tests/unit/test_lease_end.c'
    for each in $named; do
        [[ -e $ROOT/$each ]] || fail "BOUNDS names $each, which doesn't exist"
    done
}

described_names() {
    sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.F[on] \(rlock_[a-z_]*\).*/\1/p' \
        "$ROOT/man/rlock.3"
}
public_values() { grep -ohE '^    RLOCK_[A-Z_]+' "$ROOT"/lib/rlock{,_admin}.h | tr -d ' '; }
described_values() {
    grep -oE 'RLOCK_[A-Z_]+' "$ROOT/man/rlock.3" |
        grep -vxF "$(sed -n 's/^#define \(RLOCK_[A-Z_]*\).*/\1/p' "$ROOT"/lib/rlock{,_admin}.h)"
}

# members_of_structs: prints the structs of a header on stdin, without comments, one member a line.
members_of_structs() {
    tr '\n' ' ' | sed -E 's,/\*([^*]|\*[^/])*\*/,,g; s/  */ /g' |
        grep -oE 'struct rlock_[a-z_]+ \{[^}]*\}' | sed 's/; /;\n/g'
}
header_structs() { cat "$ROOT"/lib/rlock{,_admin}.h | members_of_structs; }
manual_structs() { members_of_structs <"$ROOT/man/rlock.3"; }

acl_rule() {
    section rlock-locks.7 Rights Ss |
        sed -n '/^ACL SETUSER rlock on/,/^\.Ed/{/^\.Ed/!p}'
}
# granted_commands: prints the commands of the manual's ACL rule, but not ASKING, which rlock sends
# only to a Cluster: cluster.bats tests that right.
granted_commands() { acl_rule | grep -oE '\+[a-z|]+' | grep -vxF +asking; }
used_commands() {
    redis_cli info commandstats | sed -nE 's/^cmdstat_([a-z|]+):calls=[1-9].*/+\1/p' |
        grep -vxE '\+(auth|info|ping|config\|resetstat)'
}

@test "manual: its ACL rule is enough for rlock, and rlock uses each command of the rule" {
    local rule url
    redis_start
    rule=$(acl_rule)
    # shellcheck disable=SC2086
    assert_eq "$(redis_cli ${rule/>SECRET/>secret})" OK "$rule"
    redis_cli config resetstat
    url=redis://rlock@127.0.0.1:$REDIS_PORT
    echo secret >"$DIR/password"
    export RLOCK_URL=$url RLOCK_CONFIG=$DIR/config
    echo "password-file = $DIR/password" >"$RLOCK_CONFIG"
    "$RLOCK" -t 3 -k job:a -- sh -c 'sleep 1.5; RLOCK_TOKEN= "$RLOCK" -n -E 0 -k job:a -- false'
    "$RLOCK" -t 3 --slots 2 -k job:c -- \
        sh -c 'sleep 1.5; RLOCK_TOKEN= "$RLOCK" --slots 2 -k job:c -- true'
    hold first -k job:b
    start older "$RLOCK" -k job:b --queue newest -- true
    eventually 5 in_line 1 job:b
    start newest "$RLOCK" -k job:b --queue newest -- true
    ended 75 older
    start next "$RLOCK" -k job:b -- true
    eventually 5 in_line 2 job:b
    # While this waiter is stopped, it doesn't read its wake-up from the server. So the scripts of
    # the next waiter look for that wake-up, by a command that the rule must allow.
    kill -STOP "$(<"$DIR/pids/newest")"
    let_go first
    ended 0 next
    agree used_commands granted_commands 'man/rlock-locks.7, Rights'
    # CLUSTER NODES fails here, because this server is no Cluster, and EVALSHA, because the server
    # doesn't know the scripts yet; no other command may fail.
    refute_match "$(redis_cli info commandstats | grep -vE 'cluster\|nodes|evalsha')" \
        '(rejected|failed)_calls=[1-9]'
}

# The error message for a --kill-after that is too long tells the longest that the TTL allows.
@test "manual: the table of the longest --kill-after for each TTL is right" {
    local ttl most said
    section rlock-locks.7 TIMING |
        sed -n 's/^\.It \([0-9]* [a-z]\) Ta.* Ta \([0-9.]*\) s$/\1\t\2/p' >"$DIR/rows"
    [[ -s $DIR/rows ]]
    while IFS=$'\t' read -r ttl most; do
        run -64 "$RLOCK" -k a -t "${ttl/ /}" --kill-after 1d -- true
        said=$(sed -n 's/.*at most \([0-9]*\) ms.*/\1/p' <<<"$output")
        awk -v said="$said" -v most="$most" 'BEGIN { exit !(said / (most * 1000) > 0.95 &&
            said / (most * 1000) < 1.05) }' ||
            fail "for a TTL of $ttl the manual says $most s, rlock says $said ms"
    done <"$DIR/rows"
}

header_names() { basename -s .h "$ROOT"/{lib,cmd}/*/*.h; }
header_summaries() {
    grep -hm1 -E '^(/\*| \*) [a-z_0-9]+: ' "$ROOT"/{lib,cmd}/*/*.h | sed -E 's/^.. ([^:]*):.*/\1/'
}

readme_targets() { { grep -oE '`make [a-z-]+|^ +make [a-z-]+' "$ROOT/README.md" |
    sed 's/.*make //'; make_targets; }; }

# ---- the comparisons ----

# bats test_tags=smoke
@test "the program, its help, the manual, the README and other documents agree" {
    local left right place differ=0
    cd "$ROOT"
    "$RLOCK" -u local: -k "$KEY" --report-append "$DIR/report" -- true
    [[ $(references | wc -l) -gt 50 ]]
    section rlock.1 'EXIT STATUS' | grep -Fx ".It the command's own"
    section rlock.1 'EXIT STATUS' | grep -Fx '.It 128 + Ar N'
    while read -r left right place; do
        agree "$left" "$right" "$place" || differ=1
    done <<'END'
program_options      help_options         cmd/options/options.c, or help.c
program_options      manual_options       man/rlock.1, OPTIONS, or man/rlock-verbs.1
known_options        mentioned_options    the manual pages or README.md: no such option
program_flock_names  manual_flock_names   man/rlock.1, "Also, as in flock(1): ..."
refused_flock_names  manual_refused_names man/rlock.1, STANDARDS
named_verbs          help_verbs           cmd/options/help.c
named_verbs          manual_verbs         man/rlock-verbs.1, VERBS
named_verbs          mentioned_verbs      man/rlock.1, VERBS
asking_verbs         readme_verbs         README.md, the row of rlock-verbs(1)
program_usages       manual_usages        man/rlock.1, SYNOPSIS
program_variables    manual_variables     man/rlock.conf.5, KEYS
program_keys         manual_keys          man/rlock.conf.5, KEYS
program_unset        manual_unset         man/rlock.conf.5, "can be given only on the command line"
known_keys           known_and_example_keys man/rlock.conf.5, DESCRIPTION
read_variables       named_variables      man/rlock.conf.5, ENVIRONMENT
given_variables      promised_variables   man/rlock.conf.5, THE COMMAND'S ENVIRONMENT
program_combinations manual_combinations  man/rlock-locks.7, COMBINATIONS
program_statuses     manual_statuses      man/rlock.1, EXIT STATUS
program_statuses     help_statuses        cmd/options/help.c
program_verdicts     manual_verdicts      man/rlock-messages.7, THE REPORT
report_members       manual_report        man/rlock-messages.7, THE REPORT
schema_members       manual_json          man/rlock-messages.7, JSON MESSAGES
program_events       schema_events        docs/messages.schema.json
program_events       manual_events        man/rlock-messages.7, JSON MESSAGES, or THE REPORT
headings             known_and_named_headings the page that names the section
own_pages            named_pages          the .Xr of the manual pages
public_names         described_names      man/rlock.3
public_values        described_values     man/rlock.3
header_structs       manual_structs       man/rlock.3
header_names         header_summaries     the first comment of a header: "NAME: what it does"
make_targets         readme_targets       README.md: no such make target
END
    return "$differ"
}
