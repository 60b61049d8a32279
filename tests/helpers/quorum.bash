# shellcheck shell=bash
# quorum: several servers that don't know of each other.
#
#     quorum_start N [OPTION...]     servers q1 to qN; sets RLOCK_URL to all of them
#     quorum_urls NUMBER...          the addresses of these, with blanks between them
#     on NUMBER COMMAND...           a command with this one as the server in use
#     each_of "NUMBER..." COMMAND... the same with each of these
#     holders KEY                    how many of the members have a lock's key
#     quorum_keys                    all keys of all members, each once
#
# A member counts only when it has run for longer than a TTL: with 1 s that is soon.

quorum_start() {
    local n=$1 each
    shift
    for ((each = 1; each <= n; each++)); do
        redis_start "q$each" "$@"
    done
    # shellcheck disable=SC2046
    RLOCK_URL=$(quorum_urls $(seq "$n"))
    QUORUM=$n
    export RLOCK_URL QUORUM
}

quorum_urls() {
    local each urls=
    for each; do
        urls+=${urls:+ }redis://127.0.0.1:$(on "$each" eval 'echo $REDIS_PORT')
    done
    echo "$urls"
}

on() {
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_PID number=$1
    shift
    redis_use "q$number"
    "$@"
}

each_of() {
    local number numbers=$1
    shift
    for number in $numbers; do
        on "$number" "$@" || return 1
    done
}

all_members() { seq -s ' ' "$QUORUM"; }

holders() {
    local each n=0
    for each in $(all_members); do
        [[ $(on "$each" redis_cli exists "$1") != 1 ]] || n=$((n + 1))
    done
    echo "$n"
}
held_by() { [[ $(holders "$1") == "$2" ]]; } # KEY NUMBER-OF-MEMBERS

quorum_keys() { each_of "$(all_members)" redis_cli --scan | sort -u; }
quorum_flush() { each_of "$(all_members)" redis_cli flushall >/dev/null; }
only_fences() { [[ -z $(quorum_keys | grep -v ':rlock:fence$') ]]; }
assert_no_locks() {
    eventually 5 only_fences || fail "left: $(quorum_keys | grep -v ':rlock:fence$')"
}

uptime_s() { redis_cli info server | tr -d '\r' | sed -n 's/^uptime_in_seconds://p'; }
has_run_for() { (($(uptime_s) >= $1)); }
quorum_is_old() { # SECONDS
    local each
    for each in $(all_members); do
        eventually 10 on "$each" has_run_for "$1" || return 1
    done
}
