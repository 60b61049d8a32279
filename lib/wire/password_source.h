/* SPDX-License-Identifier: MIT */
/* password_source: the password for new connections, looked up anew for each. */
#ifndef PASSWORD_SOURCE_H
#define PASSWORD_SOURCE_H

#include "rlock.h"

#include <stdbool.h>

/*
 * One for all servers of a kind: connections that begin at the same time share
 * one lookup, so that a command is not run once for each of them.
 */
struct login {
    struct rlock_password_source source; /* without `ask`: nothing is looked up */
    int64_t lookup_ms;                   /* the longest that a lookup may take */
    int fd;                              /* of the lookup that is under way; -1: none is */
    size_t n_waiting;                    /* connections that wait for its end */
    enum rlock_status found;             /* RLOCK_PENDING: not yet */
    struct rlock_error err;              /* why nothing was found */
    char *password;                      /* what was found, while others wait for it */
    size_t n_lent;                       /* copies that connections have */
};

void login_open(struct login *login, struct rlock_password_source source, int64_t lookup_ms);
void login_close(struct login *login);

/* login_has_source: may the next lookup find another password than the last? NULL: no. */
bool login_has_source(const struct login *login);

/* login_wait: begin to wait for a password; a lookup that is under way serves for this one, too. */
enum rlock_status login_wait(struct login *login, struct rlock_error *err);

/* login_leave: wait no longer. */
void login_leave(struct login *login);

/*
 * login_take: RLOCK_OK with a copy, to be given back by login_forget(), RLOCK_PENDING, or a
 * fault. Any result but RLOCK_PENDING ends the wait, as login_leave() does.
 */
enum rlock_status login_take(struct login *login, char **password, struct rlock_error *err);

/* login_forget: clear and free a copy. */
void login_forget(struct login *login, char **password);

#endif
