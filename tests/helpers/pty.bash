# shellcheck shell=bash
# pty: a terminal with an interactive shell, to which the test types, and whose screen it reads.
#
#     pty_start [TOOL...]             start the terminal, 80 columns by 24 lines, and its shell;
#                                     rlock and the tools of tests/tools are in the shell's PATH
#     pty_type '"$RLOCK" -k k -- cat' type a line, and the return key
#     pty_key C-c                     type this key; also C-z, C-d, C-\, C-s, C-q
#     pty_expect SECONDS REGEX        wait until REGEX matches output after the previous match
#     pty_prompt [SECONDS]            wait for the shell's prompt
#     pty_status N                    check that the shell's last command ended with N
#     pty_screen                      print all bytes that were written to the terminal
#     pty_rows                        print the rows as the user sees them, without wrapping
#     pty_states                      print each state of the rows that are drawn again and again
#     pty_resize COLUMNS              change the width of the terminal
#     pty_end                         end the shell, and wait for its end
#
# The terminal echoes what the test types, so REGEX must not match the typed text. script(1) makes
# the terminal, and types what the test writes to a named pipe.

pty_start() {
    mkfifo "$DIR/keys"
    mkdir -p "$DIR/bin"
    ln -s "$RLOCK" "${@/#/$TOOLS/}" "$DIR/bin"
    PATH=$DIR/bin:$PATH
    start pty pty_script
    exec {PTY_KEYS}>"$DIR/keys"
    PTY_SEEN=0
    pty_prompt
    pty_type 'stty rows 24 cols 80; tty >"$DIR/tty"'
    pty_prompt
}

# script(1) writes this command line to the screen. The prompt in it stands in two quoted parts, so
# that pty_prompt doesn't take the command line for a prompt.
pty_script() {
    exec script -qfc "exec env TERM=xterm PS1='pty''> ' bash --norc --noprofile --noediting -i" \
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
pty_status() {
    pty_type 'echo "status $?."'
    pty_expect 5 "status $1\\."
    pty_prompt
}

# pty_matches REGEX: true if output that follows the previous match matches. The next call searches
# only what follows this match.
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

# After a carriage return, the text that follows overwrites the row from its start. ESC [ J erases
# the rest of the row; other escape sequences switch wrapping off and on.
pty_rows() {
    LC_ALL=C awk '{
        gsub(/\033\[\?7[hl]/, "")
        n = split($0, part, "\r")
        row = ""
        for (i = 1; i <= n; i++)
            if (sub(/\033\[J/, "", part[i]))
                row = part[i]
            else
                row = part[i] substr(row, length(part[i]) + 1)
        sub(/ +$/, "", row)
        print row
    }' "$DIR/screen"
}

# pty_states: print each state of each row: what stands between two carriage returns or newlines,
# without escape sequences.
pty_states() { sed 's/\x1b\[?7[hl]//g; s/\x1b\[J//g' "$DIR/screen" | tr '\r' '\n'; }

pty_resize() { stty -F "$(<"$DIR/tty")" cols "$1"; }

pty_end() {
    pty_type 'exit'
    exec {PTY_KEYS}>&-
    finish pty
}
