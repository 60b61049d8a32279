/* SPDX-License-Identifier: MIT */
/*
 * tls: speaks TLS over a connected socket, without blocking, and checks the server's certificate.
 *
 * OpenSSL reads from one buffer in memory and writes to another; this file moves the bytes between
 * them and the socket. So no SIGPIPE can occur, and if sending fails, the alert that says why the
 * server refuses us can still be read.
 */
#include "wire/tls.h"

#include "base/err.h"
#include "wire/libssl.h"
#include "wire/url.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_BYTES 16384
#define READS_A_STEP 16 /* a call returns after so many reads, and its caller checks the deadline */

struct tls_context {
    struct libssl lib;
    SSL_CTX *context;
    char *name; /* config.tls_name: the name that certificates must have; NULL: that of the host */
    bool has_certificate; /* we have a client certificate */
};

struct tls_connection {
    const struct libssl *lib;
    SSL *ssl;
    BIO *in;  /* received bytes that OpenSSL has not read yet; `ssl` owns both buffers */
    BIO *out; /* bytes that OpenSSL has written and that are not sent yet */
    int fd;   /* the socket; the caller closes it */
    const char *names[TLS_NAMES]; /* the server's certificate must be for one of them */
    size_t accepted;              /* bytes of tls_write() that OpenSSL has put into `out` */
    bool is_up;                   /* the handshake has succeeded */
    bool has_certificate;         /* we have a client certificate */
    bool was_asked;               /* the server has asked for our certificate */
    bool has_heard;               /* tls_read() has returned a byte that the server sent */
};

bool tls_is_built(void)
{
    return true;
}

/* ---- loading the trusted CAs and our certificate ---- */

/* OpenSSL calls this function for a key with a passphrase: rlock has none, so loading fails. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)context;
    return 0;
}

/* Says why OpenSSL refuses a file. `lacks` is the likely cause, in plainer words than OpenSSL's. */
static enum rlock_status bad_file(const struct libssl *lib, const char *what, const char *path,
                                  const char *lacks, struct rlock_error *err)
{
    unsigned long first = lib->ERR_peek_error();
    const char *why = lib->ERR_reason_error_string(first);

    if (ERR_SYSTEM_ERROR(first))
        return err_set(err, RLOCK_E_CONFIG, ERR_GET_REASON(first), "%s %.120s", what, path);
    if (ERR_GET_LIB(first) == ERR_LIB_X509 && ERR_GET_REASON(first) == X509_R_KEY_VALUES_MISMATCH)
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "%s %.120s: it is not the key of the certificate (--tls-cert)", what, path);
    return err_set(err, RLOCK_E_CONFIG, 0, "%s %.120s: %s (%.60s)", what, path, lacks,
                   why == NULL ? "OpenSSL gives no reason" : why);
}

/* Is the file name like "9d66eef0.0": the hash of a CA's name, and a number for equal hashes? */
static bool is_hashed(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");

    return digits == 8 && name[digits] == '.' && isdigit((unsigned char)name[digits + 1]);
}

/* OpenSSL finds CAs in a folder only by files that are named by the hash of the CA's name. */
static enum rlock_status load_folder(const struct tls_context *tls, const char *path,
                                     struct rlock_error *err)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    bool has_any = false;

    if (folder == NULL)
        return err_set(err, RLOCK_E_CONFIG, errno, "CA folder %.120s", path);
    while (!has_any && (entry = readdir(folder)) != NULL)
        has_any = is_hashed(entry->d_name);
    closedir(folder);
    if (!has_any)
        return err_set(
            err, RLOCK_E_CONFIG, 0,
            "CA folder %.120s: no file in it is named by the hash of its certificate: run "
            "`openssl rehash` on it",
            path);
    if (tls->lib.SSL_CTX_load_verify_dir(tls->context, path) != 1)
        return bad_file(&tls->lib, "CA folder", path, "OpenSSL can't use it", err);
    return RLOCK_OK;
}

static enum rlock_status load_trust(const struct tls_context *tls, const char *ca,
                                    struct rlock_error *err)
{
    struct stat info;

    tls->lib.ERR_clear_error();
    if (ca == NULL && tls->lib.SSL_CTX_set_default_verify_paths(tls->context) != 1)
        return bad_file(&tls->lib, "CA certificates", "of the system", "OpenSSL can't use them",
                        err);
    if (ca != NULL && stat(ca, &info) == 0 && S_ISDIR(info.st_mode))
        return load_folder(tls, ca, err);
    if (ca != NULL && tls->lib.SSL_CTX_load_verify_file(tls->context, ca) != 1)
        return bad_file(&tls->lib, "CA file", ca, "it has no certificates in PEM", err);
    return RLOCK_OK;
}

static enum rlock_status load_certificate(struct tls_context *tls, const char *certificate,
                                          const char *key, struct rlock_error *err)
{
    const struct libssl *lib = &tls->lib;

    if (certificate == NULL && key == NULL)
        return RLOCK_OK;
    if (certificate == NULL)
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "key file %.120s: no certificate is given for this key (--tls-cert)", key);
    lib->ERR_clear_error();
    if (lib->SSL_CTX_use_certificate_chain_file(tls->context, certificate) != 1)
        return bad_file(lib, "certificate file", certificate, "it has no certificate in PEM", err);
    if (key == NULL)
        key = certificate; /* one file may contain certificate and key */
    if (lib->SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) != 1)
        return bad_file(lib, "key file", key, "it has no private key in PEM without a passphrase",
                        err);
    tls->has_certificate = true;
    return RLOCK_OK;
}

static enum rlock_status make_context(struct tls_context *tls, struct rlock_error *err)
{
    const struct libssl *lib = &tls->lib;

    tls->context = lib->SSL_CTX_new(lib->TLS_client_method());
    if (tls->context == NULL ||
        lib->SSL_CTX_ctrl(tls->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) != 1)
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "OpenSSL can't use TLS 1.2 or later: look at its openssl.cnf");
    lib->SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    lib->SSL_CTX_ctrl(tls->context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    lib->SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    lib->SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    return RLOCK_OK;
}

enum rlock_status tls_context_new(struct tls_context **tls, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    struct tls_context *made = calloc(1, sizeof *made);
    enum rlock_status st;

    if (made == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    st = libssl_load(&made->lib, err);
    if (st == RLOCK_OK)
        st = make_context(made, err);
    if (st == RLOCK_OK)
        st = load_trust(made, config->tls_ca, err);
    if (st == RLOCK_OK)
        st = load_certificate(made, config->tls_cert, config->tls_key, err);
    if (st == RLOCK_OK && config->tls_name != NULL) {
        made->name = strdup(config->tls_name);
        st = made->name != NULL ? st : err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    if (st == RLOCK_OK)
        *tls = made;
    else
        tls_context_free(made);
    return st;
}

void tls_context_free(struct tls_context *tls)
{
    if (tls != NULL && tls->context != NULL)
        tls->lib.SSL_CTX_free(tls->context);
    if (tls != NULL)
        free(tls->name);
    free(tls);
}

/* ---- beginning a connection ---- */

/* OpenSSL calls this function when the server asks for a client certificate, which we may lack. */
static int note_certificate_request(SSL *ssl, void *context)
{
    struct tls_connection *connection = context;

    (void)ssl;
    connection->was_asked = true;
    return 1;
}

/* The host must be in the certificate's subjectAltName; its common name does not count. */
#define HOST_FLAGS (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

#define NAME_BYTES 256

/*
 * Copies the host without a zone (of an IPv6 address: fe80::1%eth0) and without a final dot, as a
 * certificate names hosts without them. False: the name is too long, or empty.
 */
static bool plain_name(const char *host, char name[NAME_BYTES])
{
    size_t n;

    if (snprintf(name, NAME_BYTES, "%s", host) >= NAME_BYTES)
        return false;
    name[strcspn(name, "%")] = '\0'; /* no host name contains a % */
    n = strlen(name);
    if (n > 1 && name[n - 1] == '.')
        name[n - 1] = '\0';
    return name[0] != '\0';
}

/* Tells OpenSSL the host name or address that the server's certificate must be for. */
static bool expect_host(const struct tls_connection *connection)
{
    const struct libssl *lib = connection->lib;
    char name[NAME_BYTES];

    if (!plain_name(connection->names[0], name))
        return false;
    if (url_is_number(name))
        return lib->X509_VERIFY_PARAM_set1_ip_asc(lib->SSL_get0_param(connection->ssl), name) == 1;
    lib->SSL_set_hostflags(connection->ssl, HOST_FLAGS);
    return lib->SSL_set1_host(connection->ssl, name) == 1;
}

/* Is the certificate for this host name or address? */
static bool is_for(const struct libssl *lib, X509 *certificate, const char *host)
{
    char name[NAME_BYTES];

    if (certificate == NULL || host == NULL || !plain_name(host, name))
        return false;
    if (url_is_number(name))
        return lib->X509_check_ip_asc(certificate, name, 0) == 1;
    return lib->X509_check_host(certificate, name, 0, HOST_FLAGS, NULL) == 1;
}

/*
 * The connection of the tls_handshake() that is running; else NULL. check_other_names() needs it,
 * because OpenSSL doesn't tell that function for which connection it is called.
 */
static _Thread_local const struct tls_connection *in_handshake;

/*
 * OpenSSL calls this function after it has checked the certificate against names[0]. If only the
 * name was wrong, this function accepts a certificate that is for another of `names`.
 */
static int check_other_names(int is_good, X509_STORE_CTX *context)
{
    const struct libssl *lib =
        in_handshake->lib; /* not NULL: OpenSSL checks certificates in the handshake only */
    int why = lib->X509_STORE_CTX_get_error(context);
    X509 *certificate = lib->X509_STORE_CTX_get_current_cert(context);

    if (is_good || (why != X509_V_ERR_HOSTNAME_MISMATCH && why != X509_V_ERR_IP_ADDRESS_MISMATCH))
        return is_good;
    for (size_t i = 1; i < TLS_NAMES && !is_good; i++)
        is_good = is_for(lib, certificate, in_handshake->names[i]);
    if (is_good)
        lib->X509_STORE_CTX_set_error(context, X509_V_OK);
    return is_good;
}

/* Sends the host name in the handshake (SNI), for servers that share an address. */
static bool send_name(const struct tls_connection *connection)
{
    char name[NAME_BYTES];
    size_t i;

    for (i = 0; i < TLS_NAMES; i++)
        if (connection->names[i] != NULL && plain_name(connection->names[i], name) &&
            !url_is_number(name))
            return connection->lib->SSL_ctrl(connection->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                             TLSEXT_NAMETYPE_host_name, name) == 1;
    return true;
}

enum rlock_status tls_connection_new(struct tls_context *tls, struct tls_connection **connection,
                                     const char *const names[TLS_NAMES], int fd,
                                     struct rlock_error *err)
{
    struct tls_connection *made = calloc(1, sizeof *made);

    if (made == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    if (tls == NULL) {
        free(made);
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "TLS: this connection was opened without settings for TLS");
    }
    *made = (struct tls_connection){.lib = &tls->lib, .fd = fd, .names = {tls->name}};
    if (tls->name == NULL)
        memcpy(made->names, names, sizeof made->names);
    made->has_certificate = tls->has_certificate;
    made->ssl = made->lib->SSL_new(tls->context);
    made->in = made->lib->BIO_new(made->lib->BIO_s_mem());
    made->out = made->lib->BIO_new(made->lib->BIO_s_mem());
    if (made->ssl == NULL || made->in == NULL || made->out == NULL) {
        made->lib->BIO_free(made->in);
        made->lib->BIO_free(made->out);
        tls_connection_free(made);
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    made->lib->SSL_set_bio(made->ssl, made->in, made->out);
    made->lib->SSL_set_connect_state(made->ssl);
    made->lib->SSL_set_cert_cb(made->ssl, note_certificate_request, made);
    made->lib->SSL_set_verify(made->ssl, SSL_VERIFY_PEER, check_other_names);
    if (!expect_host(made) || !send_name(made)) {
        tls_connection_free(made);
        return err_set(err, RLOCK_E_CONFIG, 0, "TLS: no certificate can name this host");
    }
    *connection = made;
    return RLOCK_OK;
}

void tls_connection_free(struct tls_connection *connection)
{
    if (connection == NULL)
        return;
    connection->lib->SSL_free(connection->ssl);
    free(connection);
}

static bool has_unsent(const struct tls_connection *connection)
{
    return connection->lib->BIO_ctrl(connection->out, BIO_CTRL_PENDING, 0, NULL) > 0;
}

short tls_events(const struct tls_connection *connection)
{
    return has_unsent(connection) ? POLLIN | POLLOUT : POLLIN;
}

/* ---- making error messages ---- */

static enum rlock_status bad_certificate(const struct tls_connection *connection, long why,
                                         struct rlock_error *err)
{
    const char *words;

    switch (why) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "TLS: the server's certificate is not for %.100s; if another name is right: "
                       "--tls-name NAME",
                       connection->names[0]);
    case X509_V_ERR_CERT_HAS_EXPIRED:
        words = "the server's certificate has expired";
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        words = "the server's certificate is self-signed, and not trusted here (--tls-ca)";
        break;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        words = "the server's certificate was signed by a CA that is not trusted here (--tls-ca)";
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        words = "the server's certificate was signed by a CA that is not trusted here (--tls-ca), "
                "or the server doesn't send its intermediate certificate";
        break;
    default:
        return err_set(err, RLOCK_E_CONFIG, 0, "TLS: the server's certificate: %s",
                       connection->lib->X509_verify_cert_error_string(why));
    }
    return err_set(err, RLOCK_E_CONFIG, 0, "TLS: %s", words);
}

static bool lacks_certificate(const struct tls_connection *connection)
{
    return connection->was_asked && !connection->has_certificate;
}

static enum rlock_status wants_certificate(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_CONFIG, 0,
                   "TLS: the server asks for a client certificate (--tls-cert)");
}

/*
 * Reports an alert, by which the server ended the connection. With TLS 1.3 our handshake succeeds
 * before the server has checked our certificate, so the server may refuse the certificate after the
 * first request was sent; but it doesn't read that request.
 */
static enum rlock_status alert_fault(const struct tls_connection *connection, int alert,
                                     const char *words, struct rlock_error *err)
{
    if (connection->has_heard)
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "TLS: the server ended the connection: %.80s",
                       words);
    switch (alert) {
    case SSL_AD_PROTOCOL_VERSION:
        return err_set(err, RLOCK_E_UNSUPPORTED, 0, "TLS: the server has no TLS 1.2 or later");
    case SSL_AD_BAD_RECORD_MAC: /* the network changed our bytes */
    case SSL_AD_INTERNAL_ERROR:
    case SSL_AD_USER_CANCELLED:
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "TLS: the server ended the handshake: %.80s",
                       words);
    default:
        if (lacks_certificate(connection) || alert == TLS13_AD_CERTIFICATE_REQUIRED)
            return wants_certificate(err);
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "TLS: the server refuses %s: %.80s; look at the server's log",
                       connection->was_asked ? "this client's certificate" : "this client", words);
    }
}

static enum rlock_status fault(const struct tls_connection *connection, struct rlock_error *err)
{
    unsigned long first = connection->lib->ERR_peek_error();
    const char *words = connection->lib->ERR_reason_error_string(first);
    int reason = ERR_GET_REASON(first);

    if (words == NULL)
        words = "OpenSSL gives no reason";
    if (reason > SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + 255)
        return alert_fault(connection, reason - SSL_AD_REASON_OFFSET, words, err);
    if (connection->is_up) /* the network changed or lost bytes */
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "TLS: %.80s", words);
    switch (reason) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return bad_certificate(connection, connection->lib->SSL_get_verify_result(connection->ssl),
                               err);
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_SSL_VERSION:
        return err_set(err, RLOCK_E_UNSUPPORTED, 0, "TLS: the server has no TLS 1.2 or later");
    case SSL_R_WRONG_VERSION_NUMBER:
        return err_set(err, RLOCK_E_PROTOCOL, 0,
                       "TLS: the server's answer is not TLS: use redis://, or its port for TLS");
    default:
        return err_set(err, RLOCK_E_PROTOCOL, 0, "TLS: the handshake failed: %.80s", words);
    }
}

/* ---- sending and receiving ---- */

/* Sends bytes that OpenSSL has written, until the kernel accepts no more. */
static enum rlock_status flush(struct tls_connection *connection, struct rlock_error *err)
{
    char sent[RECORD_BYTES];
    enum rlock_status st = RLOCK_OK;
    size_t done = 0;
    char *bytes;
    long n;

    while (st == RLOCK_OK &&
           (n = connection->lib->BIO_ctrl(connection->out, BIO_CTRL_INFO, 0, &bytes)) > 0) {
        st = socket_send(connection->fd, bytes, n < (long)sizeof sent ? (size_t)n : sizeof sent,
                         &done, err);
        if (st == RLOCK_OK)
            connection->lib->BIO_read(connection->out, sent,
                                      (int)done); /* removes the sent bytes from the buffer */
    }
    return st;
}

/* Receives bytes and passes them to OpenSSL. RLOCK_OK: at least one byte has come. */
static enum rlock_status fill(struct tls_connection *connection, struct rlock_error *err)
{
    char bytes[4096];
    enum rlock_status st;
    size_t n;

    st = socket_receive(connection->fd, bytes, sizeof bytes, &n, err);
    if (st == RLOCK_OK && connection->lib->BIO_write(connection->in, bytes, (int)n) != (int)n)
        st = err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    return st;
}

/*
 * Sends and receives what OpenSSL needs after a call that returned `result`. RLOCK_OK: new bytes
 * have come, and the caller calls the same function of OpenSSL again.
 */
static enum rlock_status exchange_bytes(struct tls_connection *connection, int result, int reads,
                                        struct rlock_error *err)
{
    struct rlock_error unsent = {.status = RLOCK_OK};
    enum rlock_status sent = flush(connection, &unsent);
    enum rlock_status st;

    switch (connection->lib->SSL_get_error(connection->ssl, result)) {
    case SSL_ERROR_WANT_READ: /* OpenSSL has read all bytes that were received */
        st = reads < READS_A_STEP ? fill(connection, err) : RLOCK_PENDING;
        break;
    case SSL_ERROR_ZERO_RETURN:
        st = err_set(err, RLOCK_E_UNREACHABLE, 0, "the server closed the connection");
        break;
    default:
        return fault(connection, err);
    }
    if (sent != RLOCK_OK && sent != RLOCK_PENDING && st == RLOCK_PENDING) {
        st = sent; /* sending failed, and the server has sent no alert that says why */
        if (err != NULL)
            *err = unsent;
    }
    if (st == RLOCK_E_UNREACHABLE && lacks_certificate(connection) && !connection->has_heard)
        return wants_certificate(err);
    if (st == RLOCK_E_UNREACHABLE && !connection->is_up)
        err_prefix(err, "TLS handshake");
    return st;
}

enum rlock_status tls_handshake(struct tls_connection *connection, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    int reads;

    for (reads = 0; st == RLOCK_OK && !connection->is_up; reads++) {
        int result;

        connection->lib->ERR_clear_error();
        in_handshake = connection;
        result = connection->lib->SSL_do_handshake(connection->ssl);
        in_handshake = NULL;
        if (result != 1)
            st = exchange_bytes(connection, result, reads, err);
        else if (connection->lib->SSL_get_verify_result(connection->ssl) != X509_V_OK)
            st = bad_certificate(connection,
                                 connection->lib->SSL_get_verify_result(connection->ssl), err);
        else
            connection->is_up = true; /* tls_write() sends what is left in `out` first */
    }
    return st;
}

enum rlock_status tls_write(struct tls_connection *connection, const char *bytes, size_t n,
                            size_t *done, struct rlock_error *err)
{
    struct rlock_error unsent = {.status = RLOCK_OK};
    enum rlock_status st;
    char heard;

    connection->lib->ERR_clear_error();
    if (connection->accepted == 0) {
        int result = connection->lib->SSL_write(connection->ssl, bytes,
                                                n < RECORD_BYTES ? (int)n : RECORD_BYTES);

        if (result <= 0)
            return fault(connection, err);
        connection->accepted = (size_t)result;
    }
    st = flush(connection, &unsent);
    if (st == RLOCK_OK) {
        *done = connection->accepted;
        connection->accepted = 0;
        return RLOCK_OK;
    }
    if (st == RLOCK_PENDING)
        return st;
    /* sending failed: look for an alert that the server sent before it closed the connection */
    st = tls_read(connection, &heard, 1, done, err);
    if (st != RLOCK_OK && st != RLOCK_PENDING)
        return st;
    return err_set(err, RLOCK_E_UNREACHABLE, 0, "%s", unsent.text);
}

enum rlock_status tls_read(struct tls_connection *connection, char *bytes, size_t n, size_t *done,
                           struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    int reads;

    for (reads = 0; st == RLOCK_OK; reads++) {
        int result;

        connection->lib->ERR_clear_error();
        result = connection->lib->SSL_read(connection->ssl, bytes,
                                           n < RECORD_BYTES ? (int)n : RECORD_BYTES);
        if (result > 0) {
            connection->has_heard = true;
            *done = (size_t)result;
            return RLOCK_OK;
        }
        st = exchange_bytes(connection, result, reads, err);
    }
    return st;
}
