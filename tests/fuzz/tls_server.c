/* SPDX-License-Identifier: MIT */
/* tls_server: a TLS server of OpenSSL in memory, with certificates that it makes itself. */
#include "tls_server.h"

#include "fuzz.h"

#if __has_include(<openssl/ssl.h>) /* without OpenSSL, fuzz_tls.c doesn't use this file */

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define DAY_S 86400

struct signed_key {
    EVP_PKEY *key;
    X509 *certificate;
};

static struct signed_key ca;
static struct signed_key untrusted_ca;
static struct signed_key server_keys[TLS_SERVER_CERTIFICATES];
static SSL_CTX *contexts[TLS_SERVER_CERTIFICATES][TLS_SERVER_REQUIRES + 1][2];
static char files[TLS_FILES][32];

struct tls_server {
    SSL *ssl;
    BIO *in;
    BIO *out;
};

static void extend(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, NULL, nid, value);

    must(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/*
 * Makes a key and its certificate, which is valid from first_day to last_day, counted from today.
 * `by` NULL: the key signs its own certificate. `names` NULL: the certificate is that of a CA.
 */
static struct signed_key sign(const char *name, const char *names, const struct signed_key *by,
                              long first_day, long last_day)
{
    struct signed_key made = {EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"), X509_new()};
    X509_NAME *subject;
    static long serial;

    must(made.key != NULL && made.certificate != NULL);
    if (by == NULL)
        by = &made;
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), first_day * DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), last_day * DAY_S);
    X509_set_pubkey(made.certificate, made.key);
    subject = X509_get_subject_name(made.certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made.certificate, X509_get_subject_name(by->certificate));
    extend(made.certificate, NID_basic_constraints, names == NULL ? "CA:TRUE" : "CA:FALSE");
    if (names != NULL)
        extend(made.certificate, NID_subject_alt_name, names);
    must(X509_sign(made.certificate, by->key, EVP_sha256()) > 0);
    return made;
}

static void write_file(char path[32], const X509 *certificate, const EVP_PKEY *key,
                       const char *passphrase)
{
    BIO *text = BIO_new(BIO_s_mem());
    int fd = memfd_create("pem", 0);
    char bytes[4096];
    int n;

    must(text != NULL && fd >= 0);
    if (certificate != NULL)
        must(PEM_write_bio_X509(text, (X509 *)certificate) == 1);
    if (key != NULL)
        must(PEM_write_bio_PrivateKey(text, (EVP_PKEY *)key,
                                      passphrase != NULL ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
                                      (void *)passphrase) == 1);
    while ((n = BIO_read(text, bytes, sizeof bytes)) > 0)
        must(write(fd, bytes, (size_t)n) == n);
    BIO_free(text);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
}

void tls_server_prepare(void)
{
    static const char names[] = "DNS:h,IP:127.0.0.1";
    static struct signed_key client; /* static, as nothing here is freed before the process ends */

    ca = sign("trusted CA", NULL, NULL, -2, 2);
    untrusted_ca = sign("another CA", NULL, NULL, -2, 2);
    client = sign("client", "DNS:client", &ca, -2, 2);
    server_keys[TLS_SERVER_GOOD] = sign("h", names, &ca, -2, 2);
    server_keys[TLS_SERVER_OTHER_HOST] = sign("h", "DNS:other", &ca, -2, 2);
    server_keys[TLS_SERVER_EXPIRED] = sign("h", names, &ca, -2, -1);
    server_keys[TLS_SERVER_EARLY] = sign("h", names, &ca, 1, 2);
    server_keys[TLS_SERVER_SELF_SIGNED] = sign("h", names, NULL, -2, 2);
    server_keys[TLS_SERVER_UNTRUSTED] = sign("h", names, &untrusted_ca, -2, 2);
    server_keys[TLS_SERVER_CHAIN] = server_keys[TLS_SERVER_UNTRUSTED];
    write_file(files[TLS_FILE_CA], ca.certificate, NULL, NULL);
    write_file(files[TLS_FILE_CLIENT], client.certificate, client.key, NULL);
    write_file(files[TLS_FILE_KEY], NULL, server_keys[TLS_SERVER_GOOD].key, NULL);
    write_file(files[TLS_FILE_EMPTY], NULL, NULL, NULL);
    write_file(files[TLS_FILE_LOCKED_KEY], NULL, client.key, "passphrase");
}

const char *tls_server_file(enum tls_server_file which)
{
    return files[which];
}

static int accept_any(int is_good, X509_STORE_CTX *context)
{
    (void)is_good;
    (void)context;
    return 1;
}

static SSL_CTX *make_context(enum tls_server_certificate which, bool is_old,
                             enum tls_server_asks asks)
{
    const struct signed_key *keys = &server_keys[which];
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    must(context != NULL);
    must(SSL_CTX_use_certificate(context, keys->certificate) == 1);
    must(SSL_CTX_use_PrivateKey(context, keys->key) == 1);
    if (which == TLS_SERVER_CHAIN)
        must(SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, untrusted_ca.certificate) == 1);
    if (is_old)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_2_VERSION, NULL);
    if (asks != TLS_SERVER_ASKS_NOT)
        SSL_CTX_set_verify(context,
                           SSL_VERIFY_PEER |
                               (asks == TLS_SERVER_REQUIRES ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                           accept_any);
    return context;
}

struct tls_server *tls_server_new(enum tls_server_certificate certificate, bool is_old,
                                  enum tls_server_asks asks)
{
    SSL_CTX **context = &contexts[certificate][asks][is_old];
    struct tls_server *server = malloc(sizeof *server);

    if (*context == NULL)
        *context = make_context(certificate, is_old, asks);
    must(server != NULL);
    *server = (struct tls_server){
        .ssl = SSL_new(*context), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem())};
    must(server->ssl != NULL && server->in != NULL && server->out != NULL);
    SSL_set_bio(server->ssl, server->in, server->out);
    SSL_set_accept_state(server->ssl);
    return server;
}

void tls_server_free(struct tls_server *server)
{
    if (server != NULL)
        SSL_free(server->ssl);
    free(server);
}

void tls_server_hear(struct tls_server *server, const char *bytes, size_t n)
{
    char heard[4096];

    ERR_clear_error();
    must(BIO_write(server->in, bytes, (int)n) == (int)n);
    if (SSL_do_handshake(server->ssl) == 1)
        while (SSL_read(server->ssl, heard, sizeof heard) > 0)
            continue;
    ERR_clear_error();
}

size_t tls_server_take(struct tls_server *server, char *bytes, size_t room)
{
    int n = BIO_read(server->out, bytes, (int)room);

    return n > 0 ? (size_t)n : 0;
}

bool tls_server_write(struct tls_server *server, const char *bytes, size_t n)
{
    bool is_written = SSL_is_init_finished(server->ssl) && n > 0 &&
                      SSL_write(server->ssl, bytes, (int)n) == (int)n;

    ERR_clear_error();
    return is_written;
}

void tls_server_shutdown(struct tls_server *server)
{
    SSL_shutdown(server->ssl);
    ERR_clear_error();
}

#endif
