/* SPDX-License-Identifier: MIT */
/*
 * tls: TLS over a connected socket, never blocking; the server's certificate and name are checked.
 *
 * A build without OpenSSL has tls_absent.c in place of tls.c: tls_context_new() then always fails.
 */
#ifndef TLS_H
#define TLS_H

#include "wire/socket.h"

#include <stdbool.h>

struct tls_context;    /* OpenSSL, the CAs that are trusted, our certificate: for all connections */
struct tls_connection; /* one connection */

/* tls_is_built: can tls_context_new succeed at all? */
bool tls_is_built(void);

/*
 * tls_context_new: load OpenSSL and the files tls_ca, tls_cert and tls_key of a
 * configuration. They are not read again, so that a lock is renewed also when
 * they are deleted meanwhile; of a folder tls_ca, those certificates are kept
 * that were needed before.
 *
 *   tls  out, on RLOCK_OK only; give back with tls_context_free()
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG or RLOCK_E_MEMORY.
 */
enum rlock_status tls_context_new(struct tls_context **tls, const struct rlock_config *config,
                                  struct rlock_error *err);
void tls_context_free(struct tls_context *tls); /* NULL is allowed */

#define TLS_NAMES 3

/*
 * tls_connection_new: begin TLS on a socket that is connected to a server.
 *
 *   tls         borrowed until tls_connection_free(); NULL is a fault
 *   connection  out, on RLOCK_OK only; give back with tls_connection_free()
 *   names       names or addresses of the server, NULL where there are fewer: its certificate must
 *               be for one of them, or for the tls_name of the configuration, if there is one.
 *               Borrowed until tls_connection_free()
 *   fd          of the socket: used until tls_connection_free(), and closed by the caller
 */
enum rlock_status tls_connection_new(struct tls_context *tls, struct tls_connection **connection,
                                     const char *const names[TLS_NAMES], int fd,
                                     struct rlock_error *err);
void tls_connection_free(struct tls_connection *connection); /* NULL is allowed */

/* tls_events: the poll(2) events that the three functions below wait for. */
short tls_events(const struct tls_connection *connection);

/*
 * tls_handshake: go on until the server has proven who it is. Until it has returned RLOCK_OK, call
 * neither tls_write() nor tls_read().
 *
 * Returns  RLOCK_OK, RLOCK_PENDING or a fault: RLOCK_E_CONFIG (certificates),
 *          RLOCK_E_UNSUPPORTED (too old), RLOCK_E_PROTOCOL, RLOCK_E_UNREACHABLE.
 */
enum rlock_status tls_handshake(struct tls_connection *connection, struct rlock_error *err);

/*
 * tls_write, tls_read: as socket_send() and socket_receive(). After RLOCK_PENDING
 * tls_write wants the same bytes again; what it counts as done has been taken
 * by the kernel.
 */
enum rlock_status tls_write(struct tls_connection *connection, const char *bytes, size_t n,
                            size_t *done, struct rlock_error *err);
enum rlock_status tls_read(struct tls_connection *connection, char *bytes, size_t n, size_t *done,
                           struct rlock_error *err);

#endif
