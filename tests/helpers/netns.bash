# shellcheck shell=bash
# netns: servers in network namespaces of their own, so that a test can cut the link to a server.
#
# A bats file that loads netns.bash must load quorum.bash, too.
#
#     netns_setup_file N     in setup_file(): start servers q1 to qN, each behind a link of its own
#     netns_setup            in setup(): skip the test if netns_setup_file failed; else heal
#                            all links and empty all servers
#     netns_teardown_file    in teardown_file(): end the servers, remove links and namespaces
#     netns_url NUMBER       print the URL of the server; RLOCK_URL has the URLs of all servers
#     netns_cut NUMBER HOW   cut the link: drop packets to the server (in), from it (out) or both
#                            (both), take the link down (down), or send errors to the sender (route)
#     netns_heal NUMBER      undo all cuts of the link
#
# redis_cli talks to a server by its Unix socket, so it reaches a server whose link is cut. Cuts are
# made at the server's end of the link, except `route`. If our end were down, the kernel would send
# the packets by the default route, where another host might answer.

NETNS_NAME=rlock-test

netns_name() { echo "$NETNS_NAME-$NETNS_ID-$1"; }
netns_link() { echo "rl$NETNS_ID.$1$2"; } # NUMBER a|b: our end, the server's end

# netns_address NUMBER 1|2: print the address of our end (1) or of the server's end (2). Each NUMBER
# of each test process has a network of 4 addresses of its own.
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
        # TCP as on most machines, whatever this one is set to: ten packets before the first reply.
        ip route add "$(netns_address "$1" 2)/31" dev "$ours" initcwnd 10 congctl reno &&
        # Rule 0 delivers packets to local sockets. Move it to preference 1: the cut `in` adds a
        # rule 0 that drops packets before they are delivered.
        in_netns "$1" rule add pref 1 lookup local && in_netns "$1" rule del pref 0
}

# redis_launch calls netns_server as if it were the server program. Because of the exec, the pid
# that redis_launch writes down is the server's.
netns_server() { exec ip netns exec "$NETNS" "$NETNS_SERVER" "$@"; }

netns_start() { # NUMBER
    local NETNS_SERVER NETNS RLOCK_TEST_SERVER
    NETNS_SERVER=$(RLOCK_TEST_SERVER=$NETNS_GIVEN redis_program)
    NETNS=$(netns_name "$1")
    RLOCK_TEST_SERVER=netns_server
    redis_start "q$1" --bind "$(netns_address "$1" 2)" --protected-mode no
}

netns_url() { echo "redis://$(netns_address "$1" 2):$(on "$1" eval 'echo $REDIS_PORT')"; }

# Remove the namespaces that killed test runs left behind. A namespace's name has the pid of its
# test run: if that process has ended, nobody else removes the namespace.
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
    # fail in CI if ip(8) is not installed, but skip if this user has no right to use it
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
    route) ip route add blackhole "$(netns_address "$1" 2)" ;;
    *) fail "no such cut: $2" ;;
    esac
}

netns_heal() { # NUMBER
    in_netns "$1" rule del pref 0 2>/dev/null || :
    in_netns "$1" route del blackhole "$(netns_address "$1" 1)" 2>/dev/null || :
    ip route del blackhole "$(netns_address "$1" 2)" 2>/dev/null || :
}
