# sizes: prints the lengths of files and C functions, for people to look at the longest.
#
#     awk -f sizes.awk FILE... | sort -rn
#
# There is no limit: a file or function is split where its subject ends, not for its length. A
# function is what stands between { and } in column 1; the { of a table is never in column 1.

FNR == 1 {
    start = 0
    files[++n_files] = FILENAME
}

{ lines[FILENAME] = FNR }

FILENAME ~ /\.[ch]$/ && /^[{]/ {
    start = FNR
}

/^[}]/ && start > 0 {
    printf "%d lines: function at %s:%d\n", FNR - start - 1, FILENAME, start
    start = 0
}

END {
    for (i = 1; i <= n_files; i++)
        printf "%d lines: %s\n", lines[files[i]], files[i]
}
