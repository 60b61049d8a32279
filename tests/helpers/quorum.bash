# shellcheck shell=bash
# quorum: several servers that don't know of each other, for locks that need a majority of them.
#
#     quorum_start N [OPTION...]     start servers q1 to qN; sets RLOCK_URL to all of them
#     quorum_urls NUMBER...          print the URLs of these servers, with blanks between them
#     on NUMBER COMMAND...           run the command with redis_cli talking to this server
#     each_of "NUMBER..." COMMAND... do `on NUMBER COMMAND...` for each of these servers
#     holders KEY                    print how many servers have the lock's key
#     quorum_keys                    print all keys of all servers, each once
#
# A server's vote counts only when the server has run for longer than a TTL, so
# a test waits for that, once for its file (quorum_is_old).

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
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_BY_TCP REDIS_PID number=$1
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

quorum_keys() { each_of "$(all_members)" redis_cli --scan | sort -u; }
quorum_flush() { each_of "$(all_members)" redis_cli flushall >/dev/null; }
only_fences() { [[ -z $(quorum_keys | grep -v ':rlock:fence$') ]]; }
assert_no_locks() {
    eventually 5 only_fences || fail "left: $(quorum_keys | grep -v ':rlock:fence$')"
}

# has_run_for SECONDS: true if the server has run for so long; sets `left_s` to what is left.
has_run_for() {
    local info
    info=$(redis_cli info server)
    [[ $info =~ uptime_in_seconds:([0-9]+) ]] || return
    left_s=$(($1 - BASH_REMATCH[1]))
    ((left_s <= 0))
}
# await_age SECONDS: waits until the server has run for so long, and asks it seldom meanwhile.
await_age() {
    local left_s=1 tries
    for tries in {1..10}; do
        ! has_run_for "$1" || return 0
        rest "$left_s"
    done
    fail "$left_s s too young after $tries tries"
}
quorum_is_old() { # SECONDS
    each_of "$(all_members)" await_age "$1"
}
