# sizes: no line over 100 columns, no file over 500 lines, no C function over 60.
#
#     awk -f sizes.awk FILE...
#
# A function is what stands between { and } in column 1, so tables may be long.

function complain(line, why) {
    printf "%s:%d: %s\n", file, line, why
    failed = 1
}

function finish_file() {
    if (n_lines > 500)
        complain(n_lines, n_lines " lines in a file, 500 are enough")
}

FNR == 1 {
    finish_file()
    file = FILENAME
    start = 0
}

{ n_lines = FNR }

length($0) > 100 {
    complain(FNR, length($0) " columns, 100 are enough")
}

FILENAME ~ /\.[ch]$/ && /^[{]/ {
    start = FNR
}

/^[}]/ && start > 0 {
    if (FNR - start - 1 > 60)
        complain(start, FNR - start - 1 " lines in a function, 60 are enough")
    start = 0
}

END {
    finish_file()
    exit failed
}
