# shellcheck shell=bash
# cluster: a real Redis Cluster, whose slots a test can move from node to node.
#
#     cluster_start PRIMARIES [REPLICAS]   start nodes n1, n2, ..., with REPLICAS for each primary.
#                                          The function that starts a node is redis_start, or the
#                                          one that the variable CLUSTER_NODE names
#     node N                               make redis_cli talk to node nN
#     on N COMMAND...                      send the command to node nN, and print the reply
#     slot_of KEY                          print the hash slot of KEY
#     owner_of SLOT                        print which node serves SLOT: 1, 2, ...
#     slot_move SLOT FROM TO               migrate SLOT with its keys from node FROM to node TO

node() { redis_use "n$1"; }

cluster_start() {
    local primaries=$1 each n=$(($1 * (1 + ${2:-0})))
    for ((each = 1; each <= n; each++)); do
        LD_PRELOAD=$TOOLS/syncshim.so "${CLUSTER_NODE:-redis_start}" "n$each" \
            --cluster-enabled yes --cluster-node-timeout 1000 --cluster-replica-validity-factor 0 \
            --repl-diskless-sync no
        redis_cli cluster set-config-epoch "$each" >/dev/null
        ((each == 1)) || redis_cli cluster meet 127.0.0.1 "$(port_of 1)" >/dev/null
        # --raw: by the program; with thousands of words redis_talk takes 10 s, in bats' DEBUG trap
        ((each > primaries)) || redis_cli --raw cluster addslots \
            $(seq $((16384 * (each - 1) / primaries)) $((16384 * each / primaries - 1))) >/dev/null
    done
    for ((each = 1; each <= n; each++)); do
        node "$each"
        eventually 20 cluster_settled "$n"
        ((each <= primaries)) ||
            redis_cli cluster replicate "$(id_of $(((each - 1) % primaries + 1)))" >/dev/null
    done
    for ((each = 1; each <= n; each++)); do
        node "$each"
        eventually 20 cluster_replicates $((n - primaries))
    done
}

# cluster_settled N: true if the node that redis_cli talks to knows all N nodes, and finds that all
# slots are served.
cluster_settled() {
    local info
    info=$(redis_cli cluster info)
    [[ $info == *cluster_state:ok* && $info == *cluster_known_nodes:$1* ]]
}

cluster_replicates() {
    [[ $(redis_cli cluster nodes | grep -c slave) == "$1" ]] &&
        [[ $(redis_cli info replication) != *master_link_status:down* ]]
}

slot_of() { redis_cli cluster keyslot "$1"; }

id_of() {
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_BY_TCP REDIS_PID
    node "$1"
    redis_cli cluster myid
}

port_of() {
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_BY_TCP REDIS_PID
    node "$1"
    echo "$REDIS_PORT"
}

on() {
    local REDIS_DIR REDIS_SOCKET REDIS_PORT REDIS_BY_TCP REDIS_PID
    node "$1"
    redis_cli "${@:2}"
}

# owner_of SLOT: asks the node that redis_cli talks to which node serves SLOT.
owner_of() {
    local each port
    port=$(redis_cli cluster nodes | awk -v slot="$1" '$3 ~ /master/ && $3 !~ /fail/ {
        for (i = 9; i <= NF; i++) {
            split($i, range, "-")
            if ($i !~ /^\[/ && range[1] <= slot && slot <= (range[2] == "" ? range[1] : range[2])) {
                split($2, at, /[:@]/)
                print at[2]
            }
        }
    }')
    for each in {1..6}; do
        [[ $(port_of "$each" 2>/dev/null) != "$port" ]] || { echo "$each" && return; }
    done
}

slot_move() {
    local id keys to
    id=$(id_of "$3")
    to=$(port_of "$3")
    on "$3" cluster setslot "$1" importing "$(id_of "$2")" >/dev/null
    on "$2" cluster setslot "$1" migrating "$id" >/dev/null # nodes reply TRYAGAIN and ASK
    while :; do
        mapfile -t keys < <(on "$2" cluster getkeysinslot "$1" 100 | grep .)
        ((${#keys[@]})) || break
        on "$2" migrate 127.0.0.1 "$to" '' 0 5000 keys "${keys[@]}" >/dev/null
    done
    on "$3" cluster setslot "$1" node "$id" >/dev/null
    on "$2" cluster setslot "$1" node "$id" >/dev/null
}
