# shellcheck shell=bash
# blocks: the code blocks of a Markdown document, for tests that run them.
#
#     block FILE HEADING [N] [SED_COMMAND...]   write the Nth block (default: 1) below the heading
#                                               to the file `block`, changed by the sed commands;
#                                               fail if a command changes nothing
#     blocks_of_page                            print `HEADING N` for each block of $DOCUMENT
#     tested_blocks                             print `HEADING N` for each call of block in the
#                                               bats file that runs
#     here ARGUMENT...                          call block for the document $DOCUMENT

block() {
    local file=$1 heading=$2 n=1
    shift 2
    [[ ${1:-} != [0-9] ]] || { n=$1 && shift; }
    awk -v heading="## $heading" -v n="$n" '
        /^```/ && inside { inside = 0; next }
        inside && shown == n
        inside { next }
        /^## / { below = $0 == heading }
        /^```/ { inside = 1; shown = below ? shown + 1 : 0 }' "$file" >block
    [[ -s block ]] || fail "$file has no block $n under $heading" || return 1
    for each; do
        cp block before
        sed -i "$each" block
        ! cmp -s block before || fail "$each changes nothing in:" "$(<block)" || return 1
    done
}

here() { block "$DOCUMENT" "$@"; }

blocks_of_page() {
    awk '/^```/ { inside = !inside; if (inside) print heading, ++n; next }
        !inside && sub(/^## /, "") { heading = $0; n = 0 }' "$DOCUMENT"
}

tested_blocks() {
    sed -nE "s/^ +here '([^']*)' ([0-9]).*/\1 \2/p; s/^ +here '([^']*)'( [^0-9].*)?$/\1 1/p" \
        "$BATS_TEST_FILENAME" | sort -u
}
