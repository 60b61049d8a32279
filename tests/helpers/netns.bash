# shellcheck shell=bash
# netns: servers in network namespaces of their own, and cuts between them and us; needs
# quorum.
#
#     netns_setup_file N     in setup_file(): servers q1 to qN, each at the far end of its own link
#     netns_setup            in setup(): skips where that could not be had; else all as at first
#     netns_teardown_file    in teardown_file(): ends them, and takes links and namespaces away
#     netns_url NUMBER       the address of this one; RLOCK_URL has those of all
#     netns_cut NUMBER HOW   what goes in is swallowed (in), what comes out (out), or both;
#                            the link goes down (down);
#                            what goes in is refused to who sends it (route)
#     netns_heal NUMBER      the same as before
#     netns_cut_all HOW NUMBER..., netns_heal_all NUMBER...
#
# The server is asked by redis_cli as before, also when it is cut off: that goes by its Unix socket.
# Cuts are made at its own end of the link but for `route`: where ours is down, what we send to it
# goes by another way, and may be answered from there.

NETNS_NAME=rlock-test

netns_name() { echo "$NETNS_NAME-$NETNS_ID-$1"; }
netns_link() { echo "rl$NETNS_ID.$1$2"; } # NUMBER a|b: our end, its end

# netns_address NUMBER 1|2: ours and its own, of the 4 that no other process and number has.
netns_address() {
    local n=$(((NETNS_ID * 8 + $1) % (1 << 22) * 4 + $2))
    echo "10.$((n >> 16)).$((n >> 8 & 255)).$((n & 255))"
}

in_netns() { # NUMBER IP-COMMAND...
    local name
    name=$(netns_name "$1")
    ip -n "$name" "${@:2}"
}

netns_link_up() { # NUMBER
    local name ours its
    name=$(netns_name "$1") ours=$(netns_link "$1" a) its=$(netns_link "$1" b)
    ip netns add "$name" && ip link add "$ours" type veth peer name "$its" netns "$name" &&
        ip address add "$(netns_address "$1" 1)/30" dev "$ours" && ip link set "$ours" up &&
        in_netns "$1" address add "$(netns_address "$1" 2)/30" dev "$its" &&
        in_netns "$1" link set "$its" up &&
        # the first rule is for what comes in; a cut goes before it
        in_netns "$1" rule add pref 1 lookup local && in_netns "$1" rule del pref 0
}

# What redis_launch starts; its process is the server in the end.
netns_server() { exec ip netns exec "$NETNS" "$NETNS_SERVER" "$@"; }

netns_start() { # NUMBER
    local NETNS_SERVER NETNS RLOCK_TEST_SERVER
    NETNS_SERVER=$(RLOCK_TEST_SERVER=$NETNS_GIVEN redis_program)
    NETNS=$(netns_name "$1")
    RLOCK_TEST_SERVER=netns_server
    redis_start "q$1" --bind "$(netns_address "$1" 2)" --protected-mode no
}

netns_url() { echo "redis://$(netns_address "$1" 2):$(on "$1" eval 'echo $REDIS_PORT')"; }

# What a run left that was killed itself is of a process that is gone.
netns_sweep() {
    local name id number NETNS_ID
    for name in $(ip netns list | sed -n "s/^\($NETNS_NAME-[0-9]*-[0-9]*\).*/\1/p"); do
        IFS=- read -r id number <<<"${name#"$NETNS_NAME-"}"
        NETNS_ID=$id
        alive "$id" || netns_remove "$number"
    done
}

netns_remove() { # NUMBER
    local name its_pid
    name=$(netns_name "$1")
    for its_pid in $(ip netns pids "$name" 2>/dev/null); do
        kill -KILL "$its_pid" 2>/dev/null || :
    done
    ip route del blackhole "$(netns_address "$1" 2)" 2>/dev/null || :
    ip link del "$(netns_link "$1" a)" 2>/dev/null || :
    ip netns del "$name" 2>/dev/null || :
}

netns_setup_file() {
    local each said
    export NETNS_ID=$$ NETNS_MISSING='' NETNS_GIVEN=${RLOCK_TEST_SERVER:-} QUORUM=$1
    if ! command -v ip >/dev/null; then
        NETNS_MISSING=ip
        return
    fi
    netns_sweep
    for ((each = 1; each <= QUORUM; each++)); do
        if ! said=$(netns_link_up "$each" 2>&1); then
            NETNS_MISSING="no network namespaces here (root?): $said"
            echo "# SKIPPED, all of ${BATS_TEST_FILENAME##*/}: $NETNS_MISSING" >&3
            return
        fi
        netns_start "$each"
    done
}

netns_setup() {
    local each
    # that it is not installed is somebody's fault, that it is not allowed may be nobody's
    [[ $NETNS_MISSING != ip ]] || need ip
    [[ -z $NETNS_MISSING ]] || skip "$NETNS_MISSING"
    RLOCK_URL=
    for each in $(all_members); do
        netns_heal "$each"
        on "$each" redis_cli flushall >/dev/null
        RLOCK_URL+=${RLOCK_URL:+ }$(netns_url "$each")
    done
    export RLOCK_URL
}

netns_teardown_file() {
    local each
    [[ $NETNS_MISSING != ip ]] || return 0
    for ((each = 1; each <= QUORUM; each++)); do
        netns_remove "$each"
    done
}

netns_cut() { # NUMBER HOW
    case $2 in
    in) in_netns "$1" rule add pref 0 from "$(netns_address "$1" 1)" blackhole ;;
    out) in_netns "$1" route add blackhole "$(netns_address "$1" 1)" ;;
    both) netns_cut "$1" in && netns_cut "$1" out ;;
    down) in_netns "$1" link set "$(netns_link "$1" b)" down ;;
    route) ip route add blackhole "$(netns_address "$1" 2)" ;;
    *) fail "no such cut: $2" ;;
    esac
}

netns_heal() { # NUMBER
    in_netns "$1" link set "$(netns_link "$1" b)" up
    ip neighbour flush dev "$(netns_link "$1" a)" # that nobody was there is remembered for seconds
    in_netns "$1" rule del pref 0 2>/dev/null || :
    in_netns "$1" route del blackhole "$(netns_address "$1" 1)" 2>/dev/null || :
    ip route del blackhole "$(netns_address "$1" 2)" 2>/dev/null || :
}

netns_cut_all() { # HOW NUMBER...
    local each
    for each in "${@:2}"; do
        netns_cut "$each" "$1"
    done
}

netns_heal_all() {
    local each
    for each; do
        netns_heal "$each"
    done
}
