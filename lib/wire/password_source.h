/* SPDX-License-Identifier: MIT */
/* password_source: the password for new connections, looked up anew for each. */
#ifndef PASSWORD_SOURCE_H
#define PASSWORD_SOURCE_H

#include "base/err.h"
#include "rlock_admin.h"

#include <stdbool.h>

/*
 * One for all servers of a kind: connections that begin at the same time share
 * one lookup, so that a command is not run once for each of them.
 */
struct password_source {
    struct rlock_password_source callbacks; /* without `ask`: nothing is looked up */
    int64_t lookup_ms;                      /* the longest that a lookup may take */
    int fd;                                 /* of the lookup that is under way; -1: none is */
    size_t n_waiting;                       /* connections that wait for its end */
    enum rlock_status found;                /* RLOCK_PENDING: not yet */
    struct rlock_error err;                 /* why nothing was found */
    char *password;                         /* what was found, while others wait for it */
    size_t n_lent;                          /* copies that connections have */
};

/* password_source_init: the callbacks are copied; NULL: nothing is looked up. */
void password_source_init(struct password_source *source,
                          const struct rlock_password_source *callbacks, int64_t lookup_ms);
void password_source_fini(struct password_source *source);

/* password_source_is_set: may the next lookup find another password than the last? NULL: no. */
bool password_source_is_set(const struct password_source *source);

/* password_source_request: wait for a password, which a lookup under way may bring, too. */
enum rlock_status password_source_request(struct password_source *source, struct rlock_error *err);

/* password_source_abandon: wait no longer. */
void password_source_abandon(struct password_source *source);

/*
 * password_source_take: RLOCK_OK with a copy, to be given back by password_source_give_back(),
 * RLOCK_PENDING, or a fault. Any result but RLOCK_PENDING ends the wait.
 */
enum rlock_status password_source_take(struct password_source *source, char **password,
                                       struct rlock_error *err);

/* password_source_give_back: clear and free a copy. */
void password_source_give_back(struct password_source *source, char **password);

#endif
