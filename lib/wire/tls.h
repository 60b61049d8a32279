/* SPDX-License-Identifier: MIT */
/*
 * tls: speaks TLS over a connected socket, without blocking, and checks the server's certificate.
 *
 * A build without OpenSSL has tls_absent.c in place of tls.c: tls_context_new() then always fails.
 */
#ifndef TLS_H
#define TLS_H

#include "wire/socket.h"

#include <stdbool.h>

struct tls_context;    /* OpenSSL, the trusted CAs and our certificate, for all connections */
struct tls_connection; /* TLS over one socket */

/* tls_is_built: was the program built with TLS, so that tls_context_new() can succeed? */
bool tls_is_built(void);

/*
 * tls_context_new: load OpenSSL and the files tls_ca, tls_cert and tls_key of a configuration. No
 * file is read a second time, so renewals go on if somebody deletes the files. If tls_ca is a
 * folder, OpenSSL reads a CA's file when a server first needs that CA, and then keeps it in memory.
 *
 *   tls  out, on RLOCK_OK only; the caller frees it with tls_context_free()
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG or RLOCK_E_MEMORY.
 */
enum rlock_status tls_context_new(struct tls_context **tls, const struct rlock_config *config,
                                  struct rlock_error *err);
void tls_context_free(struct tls_context *tls); /* NULL is allowed */

#define TLS_NAMES 3 /* host names or addresses under which one server may be known */

/*
 * tls_connection_new: begin TLS on a socket that is connected to a server.
 *
 *   tls         borrowed until tls_connection_free(); NULL is a fault
 *   connection  out, on RLOCK_OK only; the caller frees it with tls_connection_free()
 *   names       host names or addresses of the server; unused entries are NULL. The server's
 *               certificate must be for one of them, or, if the configuration has a tls_name, for
 *               that name. Borrowed until tls_connection_free()
 *   fd          the socket; the caller closes it, after tls_connection_free()
 */
enum rlock_status tls_connection_new(struct tls_context *tls, struct tls_connection **connection,
                                     const char *const names[TLS_NAMES], int fd,
                                     struct rlock_error *err);
void tls_connection_free(struct tls_connection *connection); /* NULL is allowed */

/* tls_events: the poll(2) events after which to call the functions below again. */
short tls_events(const struct tls_connection *connection);

/*
 * tls_handshake: go on with the handshake, in which the server proves its identity. Call
 * tls_write() and tls_read() only after tls_handshake() has returned RLOCK_OK.
 *
 * Returns  RLOCK_OK, RLOCK_PENDING or a fault: RLOCK_E_CONFIG (certificates),
 *          RLOCK_E_UNSUPPORTED (too old), RLOCK_E_PROTOCOL, RLOCK_E_UNREACHABLE.
 */
enum rlock_status tls_handshake(struct tls_connection *connection, struct rlock_error *err);

/*
 * tls_write, tls_read: as socket_send() and socket_receive(). After RLOCK_PENDING the caller must
 * pass the same bytes to tls_write() again. `done` counts bytes that the kernel has accepted.
 */
enum rlock_status tls_write(struct tls_connection *connection, const char *bytes, size_t n,
                            size_t *done, struct rlock_error *err);
enum rlock_status tls_read(struct tls_connection *connection, char *bytes, size_t n, size_t *done,
                           struct rlock_error *err);

#endif
