# shellcheck shell=bash
# pty: a person at a terminal: a shell with job control, keys, and the screen.
#
#     pty_start                       a shell that prompts; 80 columns, 24 lines
#     pty_type '"$RLOCK" -k k -- cat' a line, and the return key
#     pty_key C-c                     also C-z, C-d, C-\, C-s, C-q
#     pty_expect SECONDS REGEX        waits until something after the last match matches
#     pty_prompt [SECONDS]            the same for the prompt
#     pty_screen                      all bytes that were ever shown
#     pty_rows                        what a person sees of that; no row is broken
#     pty_resize COLUMNS              after pty_start, at any time
#     pty_end                         ends the shell, and waits for that
#
# What is typed is on the screen too: let the regex match only the answer. script(1) makes the
# terminal; that it gets its keys from a pipe does not change what the shell sees.

pty_start() {
    mkfifo "$DIR/keys"
    export RLOCK TOOLS KEY DIR
    start pty pty_script
    exec {PTY_KEYS}>"$DIR/keys"
    PTY_SEEN=0
    pty_prompt
    pty_type 'stty rows 24 cols 80; tty >"$DIR/tty"'
    pty_prompt
}

# script(1) writes the command to the screen, and that must not look like the prompt.
pty_script() {
    exec script -qfc "exec env PS1='pty''> ' bash --norc --noprofile --noediting -i" \
        "$DIR/screen" <"$DIR/keys"
}

pty_type() { printf '%s\r' "$1" >&"$PTY_KEYS"; }

pty_key() {
    case $1 in
        C-c) printf '\003' ;;
        C-d) printf '\004' ;;
        C-z) printf '\032' ;;
        C-\\) printf '\034' ;;
        C-s) printf '\023' ;;
        C-q) printf '\021' ;;
        *) fail "no such key: $1" ;;
    esac >&"$PTY_KEYS"
}

pty_expect() { eventually "$1" pty_matches "$2" || fail "screen: $(pty_screen)"; }
pty_prompt() { pty_expect "${1:-10}" 'pty> '; }

# On success, what is looked at next time starts behind the match.
pty_matches() {
    local LC_ALL=C match before
    match=$(tail -c "+$((PTY_SEEN + 1))" "$DIR/screen" 2>/dev/null | grep -aEobm1 -- "$1") ||
        return 1
    match=${match%%$'\n'*}
    before=${match%%:*}
    match=${match#*:}
    PTY_SEEN=$((PTY_SEEN + before + ${#match}))
}

pty_screen() { cat "$DIR/screen"; }

# A carriage return goes back to the start of the row, and what follows is written over it.
pty_rows() {
    LC_ALL=C awk '{
        n = split($0, part, "\r")
        row = ""
        for (i = 1; i <= n; i++)
            row = part[i] substr(row, length(part[i]) + 1)
        sub(/ +$/, "", row)
        print row
    }' "$DIR/screen"
}

pty_resize() { stty -F "$(<"$DIR/tty")" cols "$1"; }

pty_end() {
    pty_type 'exit'
    exec {PTY_KEYS}>&-
    finish pty
}
