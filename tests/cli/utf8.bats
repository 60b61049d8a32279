#!/usr/bin/env bats
# utf8: in a UTF-8 locale rlock shows keys, labels and values that are valid UTF-8 as they are; in
# any locale it escapes characters that a terminal would act on.

load ../helpers/common
load ../helpers/server

HIDDEN=$'\u009b31m\u202e\e[2J' # C1 control, direction override, escape sequence
ESCAPED='\xc2\x9b31m\xe2\x80\xae\x1b[2J'

setup() {
    server_setup
    KEY="größe:日本$BATS_TEST_NUMBER:$HIDDEN"
    SHOWN="größe:日本$BATS_TEST_NUMBER:$ESCAPED"
}

has() { [[ $output == *"$1"* ]] || fail "the output lacks: $1" "output: $output"; }

# shows TEXT COMMAND...: checks that the command, in a UTF-8 locale, shows the key and the text as
# they are, with controls escaped; and that it shows both in ASCII in the locale C.
shows() {
    run env LC_ALL=C.UTF-8 "${@:2}"
    has "$SHOWN"
    has "$1"
    refute_match "$output" $'[\e\u009b\u202e]'
    run env LC_ALL=C "${@:2}"
    assert_eq "$(LC_ALL=C tr -d ' -~\n' <<<"$output")" '' 'what is not ASCII'
    has 'gr\xc3\xb6\xc3\x9fe:\xe6\x97\xa5\xe6\x9c\xac'
    has "$ESCAPED"
}

@test "utf8: status, list and the message of a lock that is taken show key and label as they are" {
    hold holder -k "$KEY" --label "Müller 🔒 $HIDDEN"
    shows "(Müller 🔒 $ESCAPED)" "$RLOCK" status -k "$KEY"
    shows "(Müller 🔒 $ESCAPED)" "$RLOCK" list
    shows "(Müller 🔒 $ESCAPED)" "$RLOCK" -n -k "$KEY" -- true
    let_go holder
}
