# shellcheck shell=bash
# span: locks of `rlock acquire`, and the processes that renew them.
#
#     shell NAME OPTION...     start a shell that acquires $KEY with these options, bound to itself;
#                              returns when the shell holds the lock
#     tell NAME COMMAND        let that shell run a command; sets `output` to what it prints
#     renewd, deadline_killer  print the pid of its renew daemon, or of its deadline killer
#     unchanged COMMAND...     run the command, and check that no key of the server has changed,
#                              except for its time to live

shell() {
    local name=$1
    shift
    mkfifo "$DIR/$name.in"
    start "$name" bash -c 'exec 3<>"$0.in"
        RLOCK_TOKEN=$("$RLOCK" acquire -k "$KEY" --bind-pid $$ "$@" 3>&-) || exit
        export RLOCK_TOKEN
        echo $RLOCK_TOKEN >"$0.token"
        while read -ru 3 line; do
            eval "$line" >"$0.said" 3>&-
            echo $? >"$0.did"
        done' "$DIR/$name" "$@"
    eventually 10 test -s "$DIR/$name.token" || fail "$(cat "$DIR/$name.err")"
}

tell() {
    rm -f "$DIR/$1.did"
    timeout 10 tee "$DIR/$1.in" <<<"$2" >/dev/null || fail "$1 has ended" || return 1
    eventually 10 test -s "$DIR/$1.did" || fail "$1 does not answer: $2"
    status=$(<"$DIR/$1.did")
    output=$(<"$DIR/$1.said")
}

of_name() {
    local its_pid
    for its_pid in $(marked); do
        [[ $(cat "/proc/$its_pid/comm" 2>/dev/null) != "$1" ]] || echo "$its_pid"
    done
}
renewd() { of_name rlock-renewd; }
deadline_killer() { of_name rlock-deadline; }
alone() { [[ -z $(renewd)$(deadline_killer) ]]; }

everything() {
    local key
    for key in $(redis_cli --scan | sort); do
        echo "$key $(redis_cli dump "$key")"
    done
}
unchanged() {
    local before
    before=$(everything)
    "$@"
    assert_eq "$(everything)" "$before" "what the server holds"
}
