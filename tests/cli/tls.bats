#!/usr/bin/env bats
# tls: rediss:// verifies the server before it sends anything, and refuses a wrong server.

load ../helpers/common
load ../helpers/fake
load ../helpers/tls

SECRET=hunter2
# what tests/tools/servers.sh has fetched; common_setup sets another HOME
SERVERS=${RLOCK_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/rlock-servers}

setup_file() {
    command -v openssl >/dev/null || return 0
    export TLS=$BATS_FILE_TMPDIR/tls
    mkdir -p "$TLS"
    tls_ca ca
    tls_ca stranger
    tls_certificate right ca DNS:localhost,IP:127.0.0.1,IP:::1
    tls_certificate elsewhere ca DNS:elsewhere.example,DNS:*.localhost,IP:127.0.0.2
    tls_certificate unknown stranger DNS:localhost,IP:127.0.0.1
    tls_certificate client ca DNS:client.example
    tls_certificate localhost ca email:somebody@localhost # the host's name is only in the subject
    openssl pkey -in "$TLS/client.key" -aes256 -passout pass:x -out "$TLS/locked.key"
    cat "$TLS/client.crt" "$TLS/client.key" >"$TLS/both.pem"
    tls_redis tls right --tls-auth-clients no
    redis_cli acl setuser job on ">$SECRET" '~*' '&*' +@all
    tls_redis mutual right --tls-auth-clients yes
}
setup() {
    common_setup
    need openssl
    "$RLOCK" --version | grep -q 'TLS yes' || skip_or_fail 'an rlock with TLS'
    export RLOCK_TLS_CA=$TLS/ca.crt
    tls_use tls
    AT=127.0.0.1:$TLS_PORT
}

once=(-q -n -t 20 --connect-timeout 2) # -q: one line, not how the waiting goes

# refused STATUS REGEX OPTION...: rlock ends with STATUS and one line that matches, and runs no
# command.
refused() {
    local wanted=$1 says=$2
    shift 2
    run "-$wanted" --separate-stderr rlock -k "$KEY" "${once[@]}" "$@" -- touch "$DIR/ran"
    assert_line "$says"
    [[ ! -e $DIR/ran ]] || fail 'the command was run'
}

# ---- servers that are accepted ----

@test "a server is reached by name, IPv4 and IPv6, with user, password file and database" {
    local host
    for host in localhost 127.0.0.1 '[::1]'; do
        [[ $host != '[::1]' || -s /proc/net/if_inet6 ]] || continue
        run -0 --separate-stderr rlock -k "$KEY" -u "rediss://$host:$TLS_PORT" -c \
            "$(asking) exists \"\$RLOCK_KEY\""
        assert_eq "$output|$stderr" '1|' "$host"
    done
    gone "$KEY"
    umask 077 # rlock warns of a password that others may read
    echo "$SECRET" >"$DIR/password"
    run -0 --separate-stderr rlock -k "$KEY" -u "rediss://job@$AT/3" \
        --password-file "$DIR/password" -c "$(asking) -n 3 exists \"\$RLOCK_KEY\""
    assert_eq "$output|$stderr" '1|'
    run -0 --separate-stderr rlock -k "$KEY" -u "rediss://job:$SECRET@$AT" -- true
    refused 77 'refused: .*WRONGPASS' -u "rediss://job:wrong@$AT"
}

@test "without --tls-ca rlock trusts the system's CAs; with --tls-ca it trusts only that CA" {
    unset RLOCK_TLS_CA
    refused 78 'signed by a CA that is not trusted here .--tls-ca.$' -u "rediss://$AT"
    SSL_CERT_FILE=$TLS/ca.crt run -0 rlock -k "$KEY" -u "rediss://$AT" -- true
    export SSL_CERT_FILE=$TLS/ca.crt
    refused 78 'signed by a CA that is not trusted here .--tls-ca.$' -u "rediss://$AT" \
        --tls-ca "$TLS/stranger.crt"
}

# ---- servers that are refused ----

@test "status 78: a trusted CA's certificate for another name or address" {
    tls_listener elsewhere elsewhere
    refused 78 "misconfigured: 127.0.0.1:$TLS_PORT: TLS: .* certificate is not for 127.0.0.1; if " \
        -u "rediss://job:$SECRET@127.0.0.1:$TLS_PORT"
    refute_match "$(tls_heard elsewhere)" "$SECRET|AUTH|EVAL"
    refused 78 "the server's certificate is not for localhost; if" -u "rediss://localhost:$TLS_PORT"
}

@test "--tls-ca accepts a folder, in which CAs are found by their hash" {
    mkdir "$DIR/cas"
    cp "$TLS/stranger.crt" "$TLS/ca.crt" "$DIR/cas"
    refused 78 "CA folder $DIR/cas: no file in it" -u "rediss://$AT" --tls-ca "$DIR/cas"
    openssl rehash "$DIR/cas"
    run -0 rlock -k "$KEY" -u "rediss://$AT" --tls-ca "$DIR/cas" -- true
    rm "$DIR/cas/ca.crt"
    openssl rehash "$DIR/cas"
    refused 78 'signed by a CA that is not trusted here' -u "rediss://$AT" --tls-ca "$DIR/cas"
}

@test "--tls-name is verified and sent to the server in place of the URL's host" {
    tls_listener two localhost -servername elsewhere.example -cert2 "$TLS/elsewhere.crt" \
        -key2 "$TLS/elsewhere.key"
    refused 69 'no answer in time' -u "rediss://127.0.0.1:$TLS_PORT" --tls-name elsewhere.example
    refused 78 'not for other.example;' -u "rediss://localhost:$TLS_PORT" \
        --tls-name other.example
    refused 78 'not for 127.0.0.3;' -u "rediss://localhost:$TLS_PORT" --tls-name 127.0.0.3
    refused 78 'no certificate can name this host$' -u "rediss://$AT" --tls-name %
    RLOCK_TLS_NAME=127.0.0.1 run -0 rlock -k "$KEY" -u "rediss://localhost:${AT#*:}" -- true
}

@test "status 78: a server with TLS 1.1 only; servers with 1.2 only or 1.3 only are accepted" {
    local version
    tls_listener old right -tls1_1 -cipher DEFAULT@SECLEVEL=0
    openssl s_client -tls1_1 -cipher DEFAULT@SECLEVEL=0 -connect "127.0.0.1:$TLS_PORT" \
        </dev/null 2>&1 | grep -q 'Cipher is [A-Z]' || skip_or_fail 'an OpenSSL with TLS 1.1'
    # Lower the system's own minimum, so that rlock's minimum is what counts.
    printf '%s\n' 'openssl_conf = a' '[a]' 'ssl_conf = b' '[b]' 'system_default = c' '[c]' \
        'MinProtocol = TLSv1' 'CipherString = DEFAULT@SECLEVEL=0' >"$DIR/openssl.cnf"
    OPENSSL_CONF=$DIR/openssl.cnf refused 78 'TLS: the server has no TLS 1.2 or later$' \
        -u "rediss://job:$SECRET@127.0.0.1:$TLS_PORT"
    refused 78 'TLS: ' -u "rediss://127.0.0.1:$TLS_PORT"
    refute_match "$(tls_heard old)" "$SECRET|AUTH|EVAL"
    for version in tls1_2 tls1_3; do
        tls_listener $version right -$version
        refused 69 'no answer in time' -u "rediss://127.0.0.1:$TLS_PORT"
    done
}

# ---- client certificates and files ----

@test "a server that asks for a client certificate gets it; without one rlock exits with 78" {
    local protocol
    tls_use mutual
    for protocol in TLSv1.2 TLSv1.3; do
        redis_cli config set tls-protocols "$protocol"
        refused 78 "$TLS_PORT: TLS: the server asks for a client certificate \(--tls-cert\)$" \
            -u "rediss://job:$SECRET@127.0.0.1:$TLS_PORT"
        refused 78 "$TLS_PORT: TLS: the server asks for a client certificate \(--tls-cert\)$" \
            -u "rediss://127.0.0.1:$TLS_PORT"
        refused 78 "TLS: the server refuses this client's certificate: .*unknown ca" \
            -u "rediss://127.0.0.1:$TLS_PORT" --tls-cert "$TLS/unknown.crt" \
            --tls-key "$TLS/unknown.key"
        refute_match "$(redis_cli info commandstats)" 'cmdstat_(auth|eval)'
    done
    run -0 --separate-stderr rlock -k "$KEY" -u "rediss://127.0.0.1:$TLS_PORT" \
        --tls-cert "$TLS/client.crt" --tls-key "$TLS/client.key" -- echo held
    assert_eq "$output|$stderr" 'held|'
    RLOCK_TLS_CERT=$TLS/both.pem run -0 --separate-stderr rlock -k "$KEY" \
        -u "rediss://127.0.0.1:$TLS_PORT" -- echo held
    assert_eq "$output|$stderr" 'held|'
    tls_use tls # this server doesn't ask for a certificate, and ignores one
    run -0 rlock -k "$KEY" -u "rediss://$AT" --tls-cert "$TLS/both.pem" -- true
}

@test "status 78: a file that can't be used is named, and rlock asks for no passphrase" {
    local says options cert="--tls-cert $TLS/client.crt"
    while IFS='|' read -r says options; do
        # shellcheck disable=SC2086
        refused 78 "$says" -u rediss://127.0.0.1:1 $options
    done <<END
CA file $DIR/none: No such file|--tls-ca $DIR/none
CA file $TLS/ca.key: it has no certificates in PEM|--tls-ca $TLS/ca.key
CA folder $DIR: no file in it is named by the hash|--tls-ca $DIR
certificate file $DIR/none: No such file|--tls-cert $DIR/none
certificate file $TLS/ca.key: it has no certificate in PEM|--tls-cert $TLS/ca.key
key file $TLS/client.key: no certificate is given for this key|--tls-key $TLS/client.key
key file $TLS/client.crt: it has no private key in PEM|$cert
key file $DIR/none: No such file|$cert --tls-key $DIR/none
key file $TLS/right.key: it is not the key of the certificate|$cert --tls-key $TLS/right.key
key file $TLS/locked.key: it has no private key in PEM without a |$cert --tls-key $TLS/locked.key
END
    # A redis:// URL doesn't need the files.
    run -0 rlock -k "$KEY" -u "redis://127.0.0.1:$REDIS_PORT" --tls-ca "$DIR/none" -- true
}

# ---- servers without TLS, and broken connections ----

@test "status 69: a port without TLS; the password isn't sent to it" {
    python3 - "$DIR" <<'END' 3>&- &
import socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
open(sys.argv[1] + "/port", "w").write("%d\n" % listener.getsockname()[1])
peer = listener.accept()[0]
heard = open(sys.argv[1] + "/heard", "wb")
while chunk := peer.recv(65536):
    heard.write(chunk)
    heard.flush()
END
    eventually 10 file_has "$DIR/port" .
    refused 69 'TLS: timed out; does the server speak TLS on this port\?$' \
        -u "rediss://job:$SECRET@127.0.0.1:$(<"$DIR/port")"
    assert_eq "$(head -c 3 "$DIR/heard" | od -An -tx1)" ' 16 03 01' 'first bytes of the handshake'
    ! grep -aq "$SECRET" "$DIR/heard"
}

@test "status 69: a connection without TLS to a TLS port, and the message says so" {
    refused 69 'does the server want TLS \(rediss://\)\?' -u "redis://$AT"
    fake_start <<'END'
ACCEPT
SEND \x15\x03\x03\x00\x02\x02\x46
STALL
END
    refused 69 'the server speaks TLS here: use rediss://' -u "redis://127.0.0.1:$FAKE_PORT"
}

# ---- OpenSSL is optional ----

# libraries NAME: prints the memory maps of all rlock processes of that run.
libraries() {
    local its_pid
    for its_pid in $(<"$DIR/pids/$1") $(descendants "$(<"$DIR/pids/$1")"); do
        [[ $(readlink "/proc/$its_pid/exe") != "$(readlink -f "$RLOCK")" ]] ||
            cat "/proc/$its_pid/maps"
    done
}

@test "OpenSSL is loaded for rediss:// only, and only rediss:// fails without it" {
    hold plain -k "$KEY" -u "redis://127.0.0.1:$REDIS_PORT"
    hold secure -k "$KEY:2" -u "rediss://$AT"
    refute_match "$(libraries plain)" 'libssl|libcrypto'
    assert_match "$(libraries plain)" '/libc[.-]'
    assert_match "$(libraries secure)" 'libssl'
    let_go plain
    let_go secure
    mkdir "$DIR/lib"
    touch "$DIR"/lib/libssl.so.{3,4,5}
    export LD_LIBRARY_PATH=$DIR/lib
    refused 78 'misconfigured: TLS needs OpenSSL: .*libssl.*; install it: in Debian libssl3' \
        -u "rediss://$AT"
    run -0 rlock -k "$KEY" -u "redis://127.0.0.1:$REDIS_PORT" -- true
}

# bats test_tags=long
@test "a build with TLS=no refuses rediss://, and says so in --version" {
    ! is_sanitized || skip 'the test builds an rlock without sanitizers'
    timeout 120 make -C "$ROOT" -s -j2 TLS=no CFLAGS=-O0 FLAVOUR=without-tls B="$DIR/build" \
        "$DIR/build/rlock" 3>&- >/dev/null
    RLOCK=$DIR/build/rlock
    assert_match "$("$RLOCK" --version)" ', TLS no\)$'
    refused 78 'rediss://: this rlock was built without TLS' -u "rediss://$AT"
    run -0 rlock -k "$KEY" -u "redis://127.0.0.1:$REDIS_PORT" -- true
}

@test "a server that takes the user from the client certificate gets no AUTH; doctor names him" {
    local url server=$SERVERS/valkey-9.1/valkey-server
    [[ -x $server ]] || skip 'no Valkey 9 in the cache of tests/tools/servers.sh'
    RLOCK_TEST_SERVER=$server tls_redis certified right --tls-auth-clients yes \
        --tls-auth-clients-user CN
    redis_cli acl setuser client on ">$SECRET" '~*' '&*' +@all >/dev/null
    redis_cli acl setuser default resetkeys -@all >/dev/null
    export RLOCK_TLS_CERT=$TLS/client.crt RLOCK_TLS_KEY=$TLS/client.key
    for url in "rediss://client@127.0.0.1:$TLS_PORT" "rediss://127.0.0.1:$TLS_PORT"; do
        run -0 --separate-stderr rlock -n -k "$KEY" -u "$url" -- echo held
        assert_eq "$output|$stderr" 'held|'
        run --separate-stderr rlock doctor -u "$url"
        assert_match "$output" 'good +user: client'
    done
}
