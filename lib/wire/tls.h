/* SPDX-License-Identifier: MIT */
/*
 * tls: TLS over a connected socket, never blocking; the server's certificate and name are checked.
 *
 * In a build without OpenSSL notls.c stands for it: tls_context_new then always fails.
 */
#ifndef TLS_H
#define TLS_H

#include "wire/socket.h"

#include <stdbool.h>

struct tls_context; /* the library, who is trusted and who we are: for any number of connections */
struct tls_connection; /* one connection */

/* tls_is_built: can tls_context_new succeed at all? */
bool tls_is_built(void);

/*
 * tls_context_new: load the library and the files tls_ca, tls_cert and tls_key of a
 * configuration. They are not looked at again: a lock is renewed also when
 * they have gone meanwhile. Of a folder tls_ca those are kept that have been
 * needed.
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
 * tls_connection_new: begin over a socket that is connected to a server.
 *
 *   tls     NULL is a fault
 *   line    out, on RLOCK_OK only; give back with tls_connection_free()
 *   names   names or addresses, NULL where there are fewer; the server must prove to have one of
 *           them, or the tls_name of the configuration, if there is one. Borrowed until
 *           tls_connection_free()
 *   fd      of the socket: used until tls_connection_free(), and closed by the caller
 */
enum rlock_status tls_connection_new(struct tls_context *tls, struct tls_connection **line,
                                     const char *const names[TLS_NAMES], int fd,
                                     struct rlock_error *err);
void tls_connection_free(struct tls_connection *line); /* NULL is allowed */

/* tls_events: the poll events that any of the next three waits for. */
short tls_events(const struct tls_connection *line);

/*
 * tls_handshake: go on until the server has proven who it is. Before
 * RLOCK_OK nothing else may be called.
 *
 * Returns  RLOCK_OK, RLOCK_PENDING or a fault: RLOCK_E_CONFIG (certificates),
 *          RLOCK_E_UNSUPPORTED (too old), RLOCK_E_PROTOCOL, RLOCK_E_UNREACHABLE.
 */
enum rlock_status tls_handshake(struct tls_connection *line, struct rlock_error *err);

/*
 * tls_write, tls_read: as socket_send() and socket_receive(). After RLOCK_PENDING
 * tls_write wants the same bytes again; what it counts as done has been taken
 * by the kernel.
 */
enum rlock_status tls_write(struct tls_connection *line, const char *bytes, size_t n, size_t *done,
                            struct rlock_error *err);
enum rlock_status tls_read(struct tls_connection *line, char *bytes, size_t n, size_t *done,
                           struct rlock_error *err);

#endif
