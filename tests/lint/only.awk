# only: finds text in C files that the rules allow only in other files.
#
#     awk -f code.awk -f only.awk RULES FILE...
#
# A rule is an extended regular expression, a tab, and the files in which it may match: paths,
# a path ending in / for a whole folder, or - for none. A line that begins with a tab has more
# files for the rule above it. Text in comments never matches. Text in string and character literals
# matches only rules that begin with a quotation mark.

function is_allowed(rule,   n, i, files) {
    n = split(allowed[rule], files)
    for (i = 1; i <= n; i++)
        if (files[i] == FILENAME || (files[i] ~ /\/$/ && index(FILENAME, files[i]) == 1))
            return 1
    return 0
}

NR == FNR {
    if ($0 ~ /^#/ || NF == 0)
        next
    if (/^\t/ && n_rules > 0) {
        allowed[n_rules] = allowed[n_rules] " " $0
        next
    }
    if (split($0, part, "\t") != 2) {
        printf "%s:%d: not a rule\n", FILENAME, FNR
        failed = 1
        next
    }
    pattern[++n_rules] = part[1]
    allowed[n_rules] = part[2]
    next
}

{
    read_code($0)
    for (rule = 1; rule <= n_rules; rule++)
        if ((pattern[rule] ~ /^"/ ? whole : text) ~ pattern[rule] && !is_allowed(rule)) {
            printf "%s:%d: %s only in %s\n", FILENAME, FNR, pattern[rule], allowed[rule]
            failed = 1
        }
}

END {
    exit failed
}
