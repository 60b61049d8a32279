#!/usr/bin/env bats
# static: the static program runs in a root directory without any other file, and reaches servers.
#
# Each test runs rlock in a chroot(2) of its own, which contains rlock, an empty /etc and what the
# test puts there: no /proc, no library. Only root may call chroot(2), so the tests need root.

load ../helpers/common
load ../helpers/tls

setup_file() {
    command -v openssl >/dev/null || return 0
    export TLS=$BATS_FILE_TMPDIR/tls
    mkdir -p "$TLS"
    tls_ca ca
    tls_certificate right ca DNS:server.example,IP:127.0.0.1
}

setup() {
    common_setup
    PROGRAM=$ROOT/build/static/rlock
    [[ -x $PROGRAM ]] || skip_or_fail 'the static program (make static)'
    ((EUID == 0)) || skip 'only root may call chroot(2)'
    CHROOT=$DIR/empty
    mkdir -p "$CHROOT/etc"
    cp "$PROGRAM" "$CHROOT/rlock"
}

in_chroot() { env -u LD_PRELOAD /usr/sbin/chroot "$CHROOT" "$@"; }

# assert_locks URL [OPTION...]: rlock acquires the lock at this server, runs a command, and releases
# the lock. The command is `rlock status`: it ends with 75, as the lock is held, and so does rlock.
assert_locks() {
    export RLOCK_URL=$1
    run -75 --separate-stderr in_chroot /rlock -k "$KEY" -t 5 "${@:2}" -- \
        /rlock status -k "$KEY" "${@:2}"
    assert_match "$output" "held"
    assert_eq "$(redis_cli exists "$KEY")" 0 'keys of the lock that are left'
}

# start_dns: starts a name server that answers each query with 127.0.0.1. Sets DNS_ADDRESS.
start_dns() {
    need python3
    DNS_ADDRESS=127.$((RANDOM % 250 + 1)).$((RANDOM % 250 + 1)).53
    cat >"$DIR/dns.py" <<'END'
import socket, struct, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
print("ready", flush=True)
while True:
    query, client = server.recvfrom(512)
    end = query.index(0, 12) + 5  # end of the question: name, 0, 2 bytes of type, 2 of class
    is_ipv4 = query[end - 4:end - 2] == b"\0\1"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_ipv4 else b""
    flags = struct.pack(">HHHHH", 0x8180, 1, int(is_ipv4), 0, 0)
    server.sendto(query[:2] + flags + query[12:end] + answer, client)
END
    start dns python3 "$DIR/dns.py" "$DNS_ADDRESS"
    eventually 10 file_has "$DIR/dns.out" ready
}

@test "static: --version says that the program is static" {
    run -0 in_chroot /rlock --version
    assert_match "$output" '^rlock .*, TLS yes, static\)$'
}

@test "static: rlock reaches a server by a Unix socket" {
    redis_start
    ln "$REDIS_SOCKET" "$CHROOT/socket"
    assert_locks unix:///socket
}

@test "static: rlock reaches a server by its address, and by a name in /etc/hosts alone" {
    redis_start
    assert_locks "redis://127.0.0.1:$REDIS_PORT"
    echo '127.0.0.1 server.example' >"$CHROOT/etc/hosts"
    assert_locks "redis://server.example:$REDIS_PORT"
    # other sources are not asked: rlock would have to load them
    echo 'hosts: resolve [!UNAVAIL=return] mymachines' >"$CHROOT/etc/nsswitch.conf"
    assert_locks "redis://server.example:$REDIS_PORT"
}

@test "static: rlock reaches a server by a name in the DNS" {
    redis_start
    start_dns
    echo "nameserver $DNS_ADDRESS" >"$CHROOT/etc/resolv.conf"
    assert_locks "redis://server.example:$REDIS_PORT"
}

@test "static: rlock reaches a server by TLS, and checks its certificate with --tls-ca" {
    need openssl
    tls_redis tls right --tls-auth-clients no
    cp "$TLS/ca.crt" "$CHROOT/ca.crt"
    echo '127.0.0.1 server.example stranger.example' >"$CHROOT/etc/hosts"
    assert_locks "rediss://127.0.0.1:$TLS_PORT" --tls-ca /ca.crt
    assert_locks "rediss://server.example:$TLS_PORT" --tls-ca /ca.crt
    run -78 --separate-stderr in_chroot /rlock -u "rediss://stranger.example:$TLS_PORT" \
        --tls-ca /ca.crt -k "$KEY" -t 5 -- /rlock --version
    run -78 --separate-stderr in_chroot /rlock -u "rediss://server.example:$TLS_PORT" \
        -k "$KEY" -t 5 -- /rlock --version
}
