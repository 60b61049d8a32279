# shellcheck shell=bash
# tls: certificates, made by the test, and servers that show them.
#
#     tls_ca NAME                          a CA: $TLS/NAME.crt and NAME.key
#     tls_certificate NAME CA SAN [OPTION...]
#                                          one signed by it, for these names (DNS:a,IP:b); OPTIONs
#                                          go to `openssl x509`
#     tls_redis NAME CERTIFICATE [SERVER OPTION...]
#                                          redis_start with a TLS port beside the other; sets
#                                          TLS_PORT, as tls_use does where there are several
#     tls_listener NAME CERTIFICATE [OPTION...]
#                                          a server that answers nothing; OPTIONs go to `openssl
#                                          s_server`; sets TLS_PORT
#     tls_heard NAME                       what it was told, decrypted
#
# $TLS is a folder that setup_file() makes.

# Quick to make, and as strong as every policy wants.
TLS_KEY=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

tls_ca() {
    openssl req -x509 "${TLS_KEY[@]}" -days 30 -subj "/CN=$1" \
        -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$TLS/$1.key" -out "$TLS/$1.crt" \
        2>>"$TLS/log"
}

tls_certificate() {
    local name=$1 ca=$2 san=$3
    shift 3
    [[ -n $* ]] || set -- -days 30
    openssl req -new "${TLS_KEY[@]}" -subj "/CN=$name" -keyout "$TLS/$name.key" \
        -out "$TLS/$name.csr" 2>>"$TLS/log"
    openssl x509 -req -in "$TLS/$name.csr" -CA "$TLS/$ca.crt" -CAkey "$TLS/$ca.key" \
        -CAcreateserial -extfile <(echo "subjectAltName=$san") -out "$TLS/$name.crt" "$@" \
        2>>"$TLS/log"
}

# tls_past: the options that make a certificate which has expired; newer versions know others.
tls_past() {
    if openssl x509 -help 2>&1 | grep -q not_after; then
        echo -not_before 20200101000000Z -not_after 20200201000000Z
    else
        echo -days -1
    fi
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
    # it ends when its standard input does
    [[ -p $DIR/open ]] || mkfifo "$DIR/open"
    start "$name" bash -c 'exec openssl s_server "$@" <>"$0"' "$DIR/open" -accept 127.0.0.1:0 \
        -cert "$TLS/$certificate.crt" -key "$TLS/$certificate.key" "$@"
    eventually 10 file_has "$DIR/$name.out" '^ACCEPT .*:[0-9]'
    TLS_PORT=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$DIR/$name.out")
}

tls_heard() { cat "$DIR/$1.out" "$DIR/$1.err"; }
