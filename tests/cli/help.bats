#!/usr/bin/env bats
# help: `rlock help` prints the same text as --help, in groups, and in lines that fit the terminal.

load ../helpers/common

@test "help: without a word it prints the help of rlock, with a verb's name that of the verb" {
    local verb
    run -0 --separate-stderr rlock help
    assert_eq "$output" "$(rlock --help)"
    assert_eq "$stderr" ""
    for verb in $(rlock --dump=verbs | cut -f1 | grep -v '^-$'); do
        run -0 --separate-stderr rlock help "$verb"
        assert_eq "$output" "$(rlock "$verb" --help)" "$verb"
        assert_match "$output" "^usage: rlock $verb "
        assert_eq "$stderr" ""
    done
    run -0 --separate-stderr rlock -h status
    assert_eq "$output" "$(rlock status --help)"
}

@test "help: without COLUMNS the lines are as wide as the terminal, or have 80 columns" {
    local width
    /usr/bin/python3 -c 'import pyte' 2>/dev/null || skip_or_fail 'the Python module pyte'
    unset COLUMNS
    assert_eq "$(rlock help --all)" "$(COLUMNS=80 rlock help --all)" 'in a pipe'
    assert_eq "$(COLUMNS=wide rlock help)" "$(COLUMNS=80 rlock help)" 'with a bad COLUMNS'
    for width in 60 100; do
        run -0 "$ROOT/tests/tools/screen.py" --until 'man rlock' "$width" -- "$RLOCK" help
        assert_eq "$(sed -n "s/^$width\t//p" <<<"$output")" \
            "$(COLUMNS=$width rlock help | grep .)" "on a terminal of $width columns"
    done
}

@test "help: it fits a terminal of 52 lines, and answers what newcomers ask" {
    local answer
    output=$(COLUMNS=80 rlock help)
    (($(wc -l <<<"$output") <= 52)) || fail "$(wc -l <<<"$output") lines: $output"
    assert_eq "$(grep -c '^  rlock ' <<<"$output")" 8 'examples'
    for answer in ' -n -- .*exit with 75 if the lock is taken' \
        ' -w 10m .*give up after ten minutes' '^  76 +the lock was lost' \
        'password-file .*a password in cron' \
        'two steps of a pipeline' '^  69 +no server' 'rlock status job +show who holds the lock' \
        'rlock break job +take the lock from its holder' 'as in CI' 'several -u: a quorum' \
        '--max-hold DURATION +end the command after this time' 'without Redis'; do
        grep -Eq -- "$answer" <<<"$output" || fail "the help lacks: $answer" "$output"
    done
}

@test "help: all options stand under the heading of their group; each exit status has one row" {
    output=$(COLUMNS=1000 rlock help --all)
    assert_eq "$(grep -E '^[a-z ]+:$' <<<"$output")" "$(printf '%s:\n' examples 'daily options' \
        'waiting options' 'safety options' 'server options' 'output options' verbs 'exit status')"
    group() { awk -v group="$1 options:" '/^[a-z]/ { inside = $0 == group } inside' <<<"$output"; }
    assert_match "$(group daily)" '--wait DURATION'
    assert_match "$(group waiting)" '--slots N'
    assert_match "$(group safety)" '--on-lost kill'
    assert_match "$(group server)" '--tls-ca FILE'
    assert_match "$(group output)" '--json'
    assert_eq "$(sed -n '/^exit status:/,/^$/s/^  \([0-9]*\) .*/\1/p' <<<"$output" | uniq -d)" ''
    assert_match "$output" '  75 .*with -n; .*within -w; a newer waiter'
}
