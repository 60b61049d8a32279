# results: prints the failed tests of TAP files with their comments, then how many tests passed.
#
#     awk -f tests/tools/results.awk FILE...
#
# Of each failed test it prints 20 lines of comments. The last line is `N passed, N failed`,
# followed by `, N skipped` if tests were skipped. The exit status is 0 if at least one test passed
# and none failed. Lines that aren't TAP are left out.

function end_test() {
    if (n_comments > 20)
        printf "# ... %d more lines in %s\n", n_comments - 20, file
    n_comments = is_shown = 0
}

FNR == 1 || /^(not )?ok / || /^1\.\./ { end_test(); file = FILENAME }

/^ok / { if (/# (skip|SKIP)/) n_skipped++; else n_passed++ }

/^not ok / {
    n_failed++
    is_shown = 1
    print "\n" $0
}

is_shown && /^#/ && ++n_comments <= 20 { print substr($0, 1, 400) }

END {
    end_test()
    if (n_failed > 0)
        print ""
    printf "%d passed, %d failed", n_passed, n_failed
    if (n_skipped > 0)
        printf ", %d skipped", n_skipped
    print ""
    exit n_failed > 0 || n_passed == 0
}
