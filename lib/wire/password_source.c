/* SPDX-License-Identifier: MIT */
/* password_source: the password for new connections, looked up anew for each. */
#include "wire/password_source.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

void login_open(struct login *login, struct rlock_password_source source, int64_t lookup_ms)
{
    *login = (struct login){.source = source, .lookup_ms = lookup_ms, .fd = -1};
}

bool login_has_source(const struct login *login)
{
    return login != NULL && login->source.ask != NULL;
}

static void clear(char **password)
{
    if (*password != NULL)
        explicit_bzero(*password, strlen(*password));
    free(*password);
    *password = NULL;
}

/* Tell the source when nothing of what it told is left in memory. */
static void tell_forgotten(const struct login *login)
{
    if (login->password == NULL && login->n_lent == 0 && login->source.forgotten != NULL)
        login->source.forgotten(login->source.context);
}

void login_close(struct login *login)
{
    clear(&login->password);
}

enum rlock_status login_wait(struct login *login, struct rlock_error *err)
{
    if (login->n_waiting == 0 && (login->fd < 0 || login->found != RLOCK_PENDING)) {
        login->found = RLOCK_PENDING;
        login->fd =
            login->source.ask(login->source.context, rlock_clock_ms() + login->lookup_ms, err);
        if (login->fd < 0)
            return err != NULL ? err->status : RLOCK_E_SYSTEM;
    }
    login->n_waiting++;
    return RLOCK_OK;
}

void login_leave(struct login *login)
{
    if (--login->n_waiting > 0 || login->password == NULL)
        return;
    clear(&login->password);
    tell_forgotten(login);
}

/* The end of a lookup. */
static void hear(struct login *login)
{
    char *text = malloc(RLOCK_PASSWORD_MAX + 1);

    if (text == NULL)
        login->found = err_set(&login->err, RLOCK_E_MEMORY, 0, "no memory");
    else
        login->found =
            login->source.take(login->source.context, text, RLOCK_PASSWORD_MAX + 1, &login->err);
    if (login->found != RLOCK_PENDING)
        login->fd = -1;
    if (login->found == RLOCK_OK && (login->password = strdup(text)) == NULL)
        login->found = err_set(&login->err, RLOCK_E_MEMORY, 0, "no memory");
    if (text != NULL)
        explicit_bzero(text, RLOCK_PASSWORD_MAX + 1);
    free(text);
}

enum rlock_status login_take(struct login *login, char **password, struct rlock_error *err)
{
    enum rlock_status st;

    if (login->found == RLOCK_PENDING)
        hear(login);
    st = login->found;
    if (st == RLOCK_PENDING)
        return st;
    if (st == RLOCK_OK && (*password = strdup(login->password)) == NULL)
        st = err_set(&login->err, RLOCK_E_MEMORY, 0, "no memory");
    else if (st == RLOCK_OK)
        login->n_lent++;
    if (st != RLOCK_OK && err != NULL)
        *err = login->err;
    login_leave(login);
    return st;
}

void login_forget(struct login *login, char **password)
{
    if (*password == NULL)
        return;
    clear(password);
    login->n_lent--;
    tell_forgotten(login);
}
