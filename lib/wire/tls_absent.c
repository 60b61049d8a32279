/* SPDX-License-Identifier: MIT */
/* tls_absent: the functions of tls.h for a build without OpenSSL: every TLS connection fails. */
#include "base/err.h"
#include "wire/tls.h"

bool tls_is_built(void)
{
    return false;
}

enum rlock_status tls_context_new(struct tls_context **tls, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    (void)tls;
    (void)config;
    return err_set(err, RLOCK_E_CONFIG, 0, "rediss://: this rlock was built without TLS");
}

void tls_context_free(struct tls_context *tls)
{
    (void)tls;
}

enum rlock_status tls_connection_new(struct tls_context *tls, struct tls_connection **connection,
                                     const char *const names[TLS_NAMES], int fd,
                                     struct rlock_error *err)
{
    (void)connection;
    (void)names;
    (void)fd;
    return tls_context_new(&tls, NULL, err);
}

void tls_connection_free(struct tls_connection *connection)
{
    (void)connection;
}

short tls_events(const struct tls_connection *connection)
{
    (void)connection;
    return 0;
}

enum rlock_status tls_handshake(struct tls_connection *connection, struct rlock_error *err)
{
    (void)connection;
    return tls_context_new(NULL, NULL, err);
}

enum rlock_status tls_write(struct tls_connection *connection, const char *bytes, size_t n,
                            size_t *done, struct rlock_error *err)
{
    (void)bytes;
    (void)n;
    (void)done;
    return tls_handshake(connection, err);
}

enum rlock_status tls_read(struct tls_connection *connection, char *bytes, size_t n, size_t *done,
                           struct rlock_error *err)
{
    (void)bytes;
    (void)n;
    (void)done;
    return tls_handshake(connection, err);
}
