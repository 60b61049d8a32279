# shellcheck shell=bash
# sentinel: a primary with replicas, and Sentinels that watch it.
#
#     sentinel_start [REPLICAS [SENTINELS]]   start primary r1, replicas r2, ..., and Sentinels s1,
#                                             s2, ...; sets SENTINELS to their addresses, for a URL
#     sentinel_fail_over PORT                 make a replica the primary, after the primary on PORT
#                                             died or hung; returns when all Sentinels name the
#                                             new primary, and none is failing over any more
#     primary_of N                            print the port of the primary that Sentinel N names
#     server_at PORT                          make redis_cli talk to the server on PORT

sentinel_start() {
    local replicas=${1:-2} sentinels=${2:-3} each port
    redis_start r1 --repl-diskless-sync no --repl-ping-replica-period 1
    port=$REDIS_PORT
    for ((each = 2; each <= replicas + 1; each++)); do
        redis_start "r$each" --replicaof "127.0.0.1 $port" --repl-diskless-sync no
        eventually 20 redis_is_linked
    done
    SENTINELS=
    for ((each = 1; each <= sentinels; each++)); do
        sentinel_launch "$each" "$port" $((sentinels / 2 + 1))
        SENTINELS+=${SENTINELS:+,}127.0.0.1:$REDIS_PORT
    done
    export SENTINELS
    eventually 20 sentinel_settled "$replicas"
}

sentinel_settled() {
    local commas=${SENTINELS//[^,]/} each
    for ((each = 1; each <= ${#commas} + 1; each++)); do
        sentinel_knows "$each" "$1" "${#commas}" || return 1
    done
}

redis_is_linked() { [[ $(redis_cli info replication) == *master_link_status:up* ]]; }

# The test demands each failover. The Sentinels start a failover by themselves only after 60 s: with
# a short limit they would take a server that replies late, on a busy machine, for dead.
sentinel_fail_over() {
    local commas=${SENTINELS//[^,]/} each
    eventually 20 sentinel_has_moved "$1"
    for ((each = 1; each <= ${#commas} + 1; each++)); do
        eventually 20 sentinel_names_another "$each" "$1"
        eventually 20 sentinel_is_done "$each" "$1"
    done
}
# The Sentinel that fails over names the new primary for up to 2 s (failover-timeout) while SENTINEL
# MASTER, which doctor asks for, still has the old one.
sentinel_is_done() {
    redis_use "s$1"
    [[ $(redis_cli sentinel master main | field port) != "$2" ]]
}
sentinel_names_another() { [[ $(primary_of "$1") != "$2" ]]; }
# True if Sentinel 1 names another primary than PORT. If not, demand a failover: the caller repeats
# this, as the Sentinel refuses while it knows no replica that is fit.
sentinel_has_moved() {
    sentinel_names_another 1 "$1" && return
    redis_use s1
    redis_cli sentinel failover main >/dev/null
    return 1
}

# A Sentinel doesn't start without a configuration file, in which it keeps its state.
sentinel_launch() { # NUMBER PORT-OF-PRIMARY QUORUM
    REDIS_DIR=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/server-s$1
    mkdir -p "$REDIS_DIR"
    cat >"$REDIS_DIR/sentinel.conf" <<END
sentinel monitor main 127.0.0.1 $2 $3
sentinel down-after-milliseconds main 60000
sentinel failover-timeout main 2000
END
    LD_PRELOAD=$TOOLS/syncshim.so redis_start "s$1"
    # Let the Sentinel ask the servers for INFO every 200 ms, and not enter TILT mode, in which it
    # doesn't act, on a busy machine. These commands need Redis 7.
    redis_cli sentinel debug info-period 200 tilt-trigger 60000 >/dev/null
}

sentinel_knows() { # NUMBER REPLICAS OTHER-SENTINELS
    local said
    redis_use "s$1"
    said=$(redis_cli sentinel master main)
    [[ $(field num-slaves <<<"$said") == "$2" && $(field num-other-sentinels <<<"$said") == "$3" ]]
}

field() { awk -v name="$1" 'found { print; exit } $0 == name { found = 1 }'; }

primary_of() {
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_BY_TCP REDIS_PID
    redis_use "s$1"
    redis_cli sentinel get-master-addr-by-name main | sed -n 2p
}

server_at() {
    local each
    for each in r1 r2 r3; do
        redis_use "$each"
        [[ $REDIS_PORT != "$1" ]] || return 0
    done
    return 1
}
