/* SPDX-License-Identifier: MIT */
/* password_source: one lookup of a password for all connections that need it at the same time. */
#ifndef PASSWORD_SOURCE_H
#define PASSWORD_SOURCE_H

#include "rlock_admin.h"

#include <stdbool.h>

/*
 * A password that may change is looked up for each new connection, by the callbacks of the
 * configuration, which may run a command. A quorum connects to all its members at once: they share
 * one lookup, so that the command isn't run for each of them.
 */
struct password_source {
    struct rlock_password_source callbacks; /* ask is NULL: nothing is looked up */
    int64_t lookup_ms;                      /* the longest that a lookup may take */
    int lookup_fd;            /* readable when the running lookup has ended; -1: none runs */
    size_t n_waiting;         /* connections that wait for its result */
    enum rlock_status result; /* of the newest lookup; RLOCK_PENDING: it still runs */
    struct rlock_error err;   /* why it failed */
    char *password;           /* what it found, while connections wait for it; else NULL */
    size_t n_copies;          /* of passwords, that connections have and have not given back */
    size_t n_found;           /* passwords whose forgotten() is still due */
};

/* password_source_init: `callbacks` are copied, their context is borrowed; NULL: none. */
void password_source_init(struct password_source *source,
                          const struct rlock_password_source *callbacks, int64_t lookup_ms);
void password_source_fini(struct password_source *source);

/* password_source_is_set: is anything looked up at all? NULL: no. */
bool password_source_is_set(const struct password_source *source);

/*
 * password_source_request: let a connection wait for a password. Joins the running lookup, or
 * starts one; doesn't block. Each RLOCK_OK is to be followed by one password_source_take() that
 * doesn't return RLOCK_PENDING, or by one password_source_abandon().
 */
enum rlock_status password_source_request(struct password_source *source, struct rlock_error *err);

/* password_source_fd: is readable when password_source_take() has a result; -1: it has one now. */
int password_source_fd(const struct password_source *source);

/*
 * password_source_take: the result of the lookup for one connection that waits for it.
 *
 *   password  out, on RLOCK_OK only: a copy; give back with password_source_give_back()
 *
 * Returns  RLOCK_OK, RLOCK_PENDING, or the fault that ended the lookup.
 */
enum rlock_status password_source_take(struct password_source *source, char **password,
                                       struct rlock_error *err);

/* password_source_abandon: a connection waits no longer. The lookup goes on for the others. */
void password_source_abandon(struct password_source *source);

/* password_source_give_back: clear and free a copy, and set it to NULL; NULL is allowed. */
void password_source_give_back(struct password_source *source, char **password);

/* password_source_clear_password: overwrite the password: for a process that connects no more. */
void password_source_clear_password(struct password_source *source);

#endif
