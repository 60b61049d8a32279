# results: prints the failed tests of TAP files with their comments, then how many tests passed.
#
#     awk -f tests/tools/results.awk FILE...
#
# The last line is `N passed, N failed`, followed by `, N skipped` if tests were skipped. The exit
# status is 0 if at least one test passed and none failed. Lines that aren't TAP are left out.

FNR == 1 { is_shown = is_named = 0 }

/^ok /    { is_shown = 0; if (/# (skip|SKIP)/) n_skipped++; else n_passed++ }
/^not ok / {
    is_shown = 1
    n_failed++
    if (ARGC > 2 && !is_named++)
        print "--- " FILENAME
}
/^1\.\./ { is_shown = 0 }

# tests/tools/run_bats.sh prints these lines last, one for each test that passed in a second run.
/^# failed beside others, passed alone: / { passed_alone = passed_alone $0 "\n"; next }

is_shown && /^(not ok |#)/ { print }

END {
    if (passed_alone != "")
        printf "=== failed beside others and passed alone: find out why\n%s", passed_alone
    printf "%d passed, %d failed", n_passed, n_failed
    if (n_skipped > 0)
        printf ", %d skipped", n_skipped
    print ""
    exit n_failed > 0 || n_passed == 0
}
