# shellcheck shell=bash
# tls: makes certificates, and starts servers that use them.
#
#     tls_ca NAME                          create a CA: $TLS/NAME.crt and NAME.key
#     tls_certificate NAME CA SAN [OPTION...]
#                                          create a certificate, signed by CA, for the names SAN
#                                          (DNS:a,IP:b); OPTIONs go to `openssl x509`
#     tls_redis NAME CERTIFICATE [SERVER OPTION...]
#                                          redis_start with a TLS port as well; sets TLS_PORT
#     tls_use NAME                         sets TLS_PORT to the TLS port of the server NAME
#     tls_listener NAME CERTIFICATE [OPTION...]
#                                          start a server that never replies; OPTIONs go to
#                                          `openssl s_server`; sets TLS_PORT
#     tls_heard NAME                       print what that server received, decrypted
#
# $TLS is a folder that setup_file() creates.

# Elliptic curve keys are made quickly, and every security level of OpenSSL accepts them.
TLS_KEY=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

# A certificate is valid from a minute ago, in case somebody sets the clock back.
tls_openssl() {
    LD_PRELOAD=$TOOLS/clockshim.so CLOCKSHIM_BOOTED=$(($(booted_us) - 60000000)) openssl "$@"
}

tls_ca() {
    tls_openssl req -x509 "${TLS_KEY[@]}" -days 30 -subj "/CN=$1" \
        -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$TLS/$1.key" -out "$TLS/$1.crt" \
        2>>"$TLS/log"
}

tls_certificate() {
    local name=$1 ca=$2 san=$3
    shift 3
    [[ -n $* ]] || set -- -days 30
    openssl req -new "${TLS_KEY[@]}" -subj "/CN=$name" -keyout "$TLS/$name.key" \
        -out "$TLS/$name.csr" 2>>"$TLS/log"
    tls_openssl x509 -req -in "$TLS/$name.csr" -CA "$TLS/$ca.crt" -CAkey "$TLS/$ca.key" \
        -CAcreateserial -extfile <(echo "subjectAltName=$san") -out "$TLS/$name.crt" "$@" \
        2>>"$TLS/log"
}

tls_redis() {
    local name=$1 certificate=$2 tries
    shift 2
    for tries in {1..5}; do
        TLS_PORT=$((RANDOM % 2700 + 30000))
        ! redis_start "$name" --bind 127.0.0.1 -::1 --tls-port "$TLS_PORT" \
            --tls-cert-file "$TLS/$certificate.crt" --tls-key-file "$TLS/$certificate.key" \
            --tls-ca-cert-file "$TLS/ca.crt" "$@" || break
    done
    echo "$TLS_PORT" >"$REDIS_DIR/tls-port"
    export TLS_PORT
}

tls_use() {
    redis_use "$1"
    TLS_PORT=$(<"$REDIS_DIR/tls-port")
}

tls_listener() {
    local name=$1 certificate=$2
    shift 2
    # s_server ends at the end of its standard input, so give it a pipe that stays open
    [[ -p $DIR/open ]] || mkfifo "$DIR/open"
    start "$name" bash -c 'exec openssl s_server "$@" <>"$0"' "$DIR/open" -accept 127.0.0.1:0 \
        -cert "$TLS/$certificate.crt" -key "$TLS/$certificate.key" "$@"
    eventually 10 file_has "$DIR/$name.out" '^ACCEPT .*:[0-9]'
    TLS_PORT=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$DIR/$name.out")
}

tls_heard() { cat "$DIR/$1.out" "$DIR/$1.err"; }
