# shellcheck shell=bash
# span: for tests of locks that a shell holds between `rlock acquire` and `rlock release`.
#
#     shell NAME OPTION...       starts a shell that acquires $KEY with --bind-pid and OPTIONs,
#                                and then waits for tell; returns when the shell holds the lock
#     tell NAME COMMAND          makes that shell run COMMAND; sets status and output
#     renewd, renewd_guard       print the pids of the processes that rlock acquire left running:
#                                rlock-renewd renews the lease, its guard ends the shell if the
#                                lease can't be renewed
#     alone                      true if no such process runs any more
#     unchanged COMMAND...       runs COMMAND, and fails if a key of the server has changed, except
#                                for its remaining TTL
#
# This file also loads server.bash.

# shellcheck source=tests/helpers/server.bash
source "$ROOT/tests/helpers/server.bash"

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
    timeout 10 tee "$DIR/$1.in" <<<"$2" >/dev/null || fail "the shell $1 has ended" || return 1
    eventually 10 test -s "$DIR/$1.did" || fail "the shell $1 has not run this within 10 s: $2"
    status=$(<"$DIR/$1.did")
    output=$(<"$DIR/$1.said")
}

renewd() { named rlock-renewd; }
renewd_guard() { named rlock-guard; }
alone() { [[ -z $(renewd)$(renewd_guard) ]]; }

print_server_contents() {
    local key
    for key in $(redis_cli --scan | sort); do
        echo "$key $(redis_cli dump "$key")"
    done
}
unchanged() {
    local before
    before=$(print_server_contents)
    "$@"
    assert_eq "$(print_server_contents)" "$before" "the keys of the server and their values"
}
