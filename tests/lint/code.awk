# code: read_code(line) takes a line of a C file apart, for owners.awk and only.awk.
#
# It sets text, the line without comments and the text of literals, and whole, the line without
# comments. in_comment is 1 while a comment goes on in the next line; a file begins with 0.

function read_code(line,   i, c, quote) {
    text = whole = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (in_comment) {
            if (substr(line, i, 2) == "*/") {
                in_comment = 0
                i++
            }
        } else if (quote != "") {
            whole = whole c
            if (c == "\\")
                whole = whole substr(line, ++i, 1)
            else if (c == quote) {
                quote = ""
                text = text c
            }
        } else if (substr(line, i, 2) == "/*") {
            in_comment = 1
            i++
        } else {
            if (c == "\"" || c == "'")
                quote = c
            text = text c
            whole = whole c
        }
    }
}

FNR == 1 {
    in_comment = 0
}
