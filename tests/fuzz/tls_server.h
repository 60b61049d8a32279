/* SPDX-License-Identifier: MIT */
/*
 * tls_server: a TLS server of OpenSSL in memory, with certificates that it makes itself.
 *
 * Both ends are in one process, and no socket is between them: the target takes the server's bytes
 * out of it, changes them if it likes, and passes them on.
 */
#ifndef TLS_SERVER_H
#define TLS_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* The server's certificates. */
enum tls_server_certificate {
    TLS_SERVER_GOOD,        /* for the host "h" and the address 127.0.0.1 */
    TLS_SERVER_OTHER_HOST,  /* for the host "other" */
    TLS_SERVER_EXPIRED,     /* for "h" */
    TLS_SERVER_EARLY,       /* for "h", valid from tomorrow on */
    TLS_SERVER_SELF_SIGNED, /* for "h" */
    TLS_SERVER_UNTRUSTED,   /* for "h", by a CA that is not in the file of trusted CAs */
    TLS_SERVER_CHAIN, /* as TLS_SERVER_UNTRUSTED, with the untrusted CA's certificate sent, too */
    TLS_SERVER_CERTIFICATES
};

enum tls_server_file {
    TLS_FILE_EMPTY,
    TLS_FILE_CA,         /* the trusted CA */
    TLS_FILE_CLIENT,     /* a client certificate by that CA, and its key */
    TLS_FILE_KEY,        /* the key of another certificate */
    TLS_FILE_LOCKED_KEY, /* a key with a passphrase */
    TLS_FILES
};

/* Does the server ask for the client's certificate? */
enum tls_server_asks { TLS_SERVER_ASKS_NOT, TLS_SERVER_ASKS, TLS_SERVER_REQUIRES };

struct tls_server;

/* tls_server_prepare: make keys, certificates and the files. */
void tls_server_prepare(void);

/* tls_server_file: the name of a file in memory, which it has while the process lives. */
const char *tls_server_file(enum tls_server_file which);

/*
 * tls_server_new: start a server.
 *
 *   is_old  the server has no TLS 1.3, only 1.2
 */
struct tls_server *tls_server_new(enum tls_server_certificate certificate, bool is_old,
                                  enum tls_server_asks asks);
void tls_server_free(struct tls_server *server);

/* tls_server_hear: pass bytes of the client to the server, and let the server go on. */
void tls_server_hear(struct tls_server *server, const char *bytes, size_t n);

/* tls_server_take: move at most `room` bytes that the server has to send into `bytes`. */
size_t tls_server_take(struct tls_server *server, char *bytes, size_t room);

/* tls_server_write: let the server send n bytes of data, if its handshake has succeeded. */
bool tls_server_write(struct tls_server *server, const char *bytes, size_t n);

/* tls_server_shutdown: let the server send the alert close_notify. */
void tls_server_shutdown(struct tls_server *server);

#endif
