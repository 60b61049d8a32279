# sizes: the longest files and C functions, longest first, for people to look at.
#
#     awk -f sizes.awk FILE... | sort -rn
#
# Nothing is enforced: a file is split, or a function cut, where its subject ends, not for a number.
# A function is what stands between { and } in column 1, so tables may be long.

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
