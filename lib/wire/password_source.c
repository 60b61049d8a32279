/* SPDX-License-Identifier: MIT */
/* password_source: looks a password up once for all connections that need it at the same time. */
#include "wire/password_source.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/secret.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

void password_source_init(struct password_source *source,
                          const struct rlock_password_source *callbacks, int64_t lookup_ms)
{
    *source = (struct password_source){.lookup_ms = lookup_ms, .lookup_fd = -1};
    if (callbacks != NULL)
        source->callbacks = *callbacks;
}

bool password_source_is_set(const struct password_source *source)
{
    return source != NULL && source->callbacks.ask != NULL;
}

void password_source_fini(struct password_source *source)
{
    secret_free(source->password);
    source->password = NULL;
}

enum rlock_status password_source_request(struct password_source *source, struct rlock_error *err)
{
    bool is_running = source->lookup_fd >= 0 && source->result == RLOCK_PENDING;

    if (source->n_waiting == 0 && !is_running) {
        source->result = RLOCK_PENDING;
        source->lookup_fd = source->callbacks.ask(source->callbacks.context,
                                                  rlock_clock_ms() + source->lookup_ms, err);
        if (source->lookup_fd < 0)
            return err != NULL ? err->status : RLOCK_E_SYSTEM;
    }
    source->n_waiting++;
    return RLOCK_OK;
}

int password_source_fd(const struct password_source *source)
{
    return source->lookup_fd;
}

void password_source_abandon(struct password_source *source)
{
    if (--source->n_waiting == 0)
        password_source_fini(source);
}

static bool is_readable(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

/* Keeps the password, or the fault, that the lookup has ended with. */
static void read_result(struct password_source *source)
{
    const struct rlock_password_source *callbacks = &source->callbacks;

    source->lookup_fd = -1;
    source->password = calloc(1, RLOCK_PASSWORD_MAX + 2);
    if (source->password == NULL)
        source->result = err_set(&source->err, RLOCK_E_MEMORY, 0, "no memory");
    else
        source->result = callbacks->take(callbacks->context, source->password,
                                         RLOCK_PASSWORD_MAX + 1, &source->err);
}

enum rlock_status password_source_take(struct password_source *source, char **password,
                                       struct rlock_error *err)
{
    enum rlock_status st;

    if (source->result == RLOCK_PENDING && !is_readable(source->lookup_fd))
        return RLOCK_PENDING;
    if (source->result == RLOCK_PENDING)
        read_result(source);
    st = source->result;
    if (st == RLOCK_OK && (*password = strdup(source->password)) == NULL)
        st = err_set(&source->err, RLOCK_E_MEMORY, 0, "no memory");
    if (st != RLOCK_OK && err != NULL)
        *err = source->err;
    password_source_abandon(source); /* this connection no longer waits */
    return st;
}

void password_source_clear_password(struct password_source *source)
{
    secret_clear(source->password);
}
