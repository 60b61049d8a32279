#!/usr/bin/env bats
# screens: rlock's output on a terminal fits each width, also after a change of the width.
# tests/tools/screen.py emulates the terminal, and prints its rows.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    /usr/bin/python3 -c 'import pyte' 2>/dev/null || skip_or_fail 'the Python module pyte'
    export LC_ALL=C.UTF-8
}

# screen [OPTION...] WIDTHS -- COMMAND...: prints the rows of the terminal at each of these widths.
screen() { timeout 120 /usr/bin/python3 "$ROOT/tests/tools/screen.py" "$@"; }

# waiting KEY [OPTION...] WIDTHS: sets `rows` to what the terminal shows at these widths while rlock
# waits for the lock.
waiting() {
    local key=$1
    shift
    rows=$(screen --until '[0-9]s' "$@" -- "$RLOCK" -k "$key" -- true)
}

# row WIDTH: prints what the terminal showed at that width; it must have been one row, no wider than
# the terminal.
row() {
    local shown
    shown=$(sed -n "s/^$1\t//p" <<<"$rows")
    [[ -n $shown && $shown != *$'\n'* ]] || fail "not exactly one row at width $1: $rows"
    printf '%s' "$shown"
}
has() { assert_match "$(row "$1")" "$2" "at width $1"; }
assert_nothing_left() { refute_match "$rows" $'(^|\n)end\t' 'after the end'; }

WHOLE='^rlock: job:nightly: waiting [0-9]+s, place 1, [0-9ms]+ left, for sh of [^ ]+@[^ ]+, '
WHOLE+='pid [0-9]+ \(db1\)$'

@test "waiting row: a terminal without escape sequences gets none, and no part of an older row" {
    hold holder -k job:nightly -t 600 --label db1
    SCREEN_TERM=dumb waiting job:nightly 120,119,118
    has 119 "$WHOLE"
    row 118 >/dev/null
    assert_nothing_left
    let_go holder
}

# listing WIDTH: sets `rows` to what rlock list shows on a terminal of that width.
listing() {
    rows=$(screen --until "${2:-job}" "$1" -- env NO_COLOR=1 "$RLOCK" list | sed -n "s/^$1\t//p")
    assert_eq "$(wc -l <<<"$rows")" 3 "rows at width $1: $rows"
}

@test "list: on a terminal a row fits it, and gives up held, waiting, mode, then the holder" {
    local long=job:monthly:accounts:europe:2026-11 headings
    hold one -k job:nightly -t 600 --label 'a label of some length'
    hold two -k "$long" -t 600
    for width in 200 80 66 60 50 40 30; do
        listing "$width"
        assert_match "$rows" $'\njob:nig[^ ]* '
        headings=$(head -n 1 <<<"$rows")
        case $width in
            200 | 80) assert_match "$headings" '^KEY +MODE +LEFT +WAITING +HELD FOR +HOLDER$' ;;
            66) assert_match "$headings" '^KEY +MODE +LEFT +WAITING +HOLDER$' ;;
            60) assert_match "$headings" '^KEY +MODE +LEFT +HOLDER$' ;;
            50) assert_match "$headings" '^KEY +LEFT +HOLDER$' ;;
            40 | 30) assert_match "$headings" '^KEY +LEFT$' ;;
        esac
    done
    listing 200
    assert_match "$rows" "$long +exclusive"
    assert_match "$rows" '\(a label of some length\)'
    # Without a terminal nothing is cut, also if COLUMNS says that it is narrow.
    run -0 env COLUMNS=30 "$RLOCK" list
    assert_match "$output" "$long  exclusive  [0-9ms]+ +0 +[0-9ms]+ +sh of "
    assert_match "$output" '\(a label of some length\)'
    let_go one && let_go two
}
