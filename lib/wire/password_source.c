/* SPDX-License-Identifier: MIT */
/* password_source: the password for new connections, looked up anew for each. */
#include "wire/password_source.h"

#include "base/clock.h"
#include "base/err.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

void password_source_init(struct password_source *source,
                          const struct rlock_password_source *callbacks, int64_t lookup_ms)
{
    *source = (struct password_source){.lookup_ms = lookup_ms, .fd = -1};
    if (callbacks != NULL)
        source->callbacks = *callbacks;
}

bool password_source_is_set(const struct password_source *source)
{
    return source != NULL && source->callbacks.ask != NULL;
}

static void clear(char **password)
{
    if (*password != NULL)
        explicit_bzero(*password, strlen(*password));
    free(*password);
    *password = NULL;
}

/* Tell the source when nothing of what it told is left in memory. */
static void tell_forgotten(const struct password_source *source)
{
    if (source->password == NULL && source->n_lent == 0 && source->callbacks.forgotten != NULL)
        source->callbacks.forgotten(source->callbacks.context);
}

void password_source_fini(struct password_source *source)
{
    clear(&source->password);
}

enum rlock_status password_source_request(struct password_source *source, struct rlock_error *err)
{
    if (source->n_waiting == 0 && (source->fd < 0 || source->found != RLOCK_PENDING)) {
        source->found = RLOCK_PENDING;
        source->fd = source->callbacks.ask(source->callbacks.context,
                                           rlock_clock_ms() + source->lookup_ms, err);
        if (source->fd < 0)
            return err != NULL ? err->status : RLOCK_E_SYSTEM;
    }
    source->n_waiting++;
    return RLOCK_OK;
}

void password_source_abandon(struct password_source *source)
{
    if (--source->n_waiting > 0 || source->password == NULL)
        return;
    clear(&source->password);
    tell_forgotten(source);
}

static bool is_readable(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

/* The end of a lookup. */
static void hear(struct password_source *source)
{
    char *text = malloc(RLOCK_PASSWORD_MAX + 1);

    if (text == NULL)
        source->found = err_set(&source->err, RLOCK_E_MEMORY, 0, "no memory");
    else
        source->found = source->callbacks.take(source->callbacks.context, text,
                                               RLOCK_PASSWORD_MAX + 1, &source->err);
    source->fd = -1;
    if (source->found == RLOCK_OK && (source->password = strdup(text)) == NULL)
        source->found = err_set(&source->err, RLOCK_E_MEMORY, 0, "no memory");
    if (text != NULL)
        explicit_bzero(text, RLOCK_PASSWORD_MAX + 1);
    free(text);
}

enum rlock_status password_source_take(struct password_source *source, char **password,
                                       struct rlock_error *err)
{
    enum rlock_status st;

    if (source->found == RLOCK_PENDING && is_readable(source->fd))
        hear(source);
    st = source->found;
    if (st == RLOCK_PENDING)
        return st;
    if (st == RLOCK_OK && (*password = strdup(source->password)) == NULL)
        st = err_set(&source->err, RLOCK_E_MEMORY, 0, "no memory");
    else if (st == RLOCK_OK)
        source->n_lent++;
    if (st != RLOCK_OK && err != NULL)
        *err = source->err;
    password_source_abandon(source);
    return st;
}

void password_source_give_back(struct password_source *source, char **password)
{
    if (*password == NULL)
        return;
    clear(password);
    source->n_lent--;
    tell_forgotten(source);
}
