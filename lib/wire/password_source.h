/* SPDX-License-Identifier: MIT */
/* password_source: looks a password up once for all connections that need it at the same time. */
#ifndef PASSWORD_SOURCE_H
#define PASSWORD_SOURCE_H

#include "rlock_admin.h"

#include <stdbool.h>

/*
 * A password may change while rlock runs, so each new connection looks it up by the callbacks of
 * the configuration, which may run a command. A quorum connects to all its members at the same
 * time: the connections share one lookup, so that the command runs once and not for each member.
 */
struct password_source {
    struct rlock_password_source
        callbacks;            /* the configuration's; with `ask` NULL nothing is looked up */
    int64_t lookup_ms;        /* how long a lookup may take */
    int lookup_fd;            /* readable when the lookup has ended; -1: no lookup is running */
    size_t n_waiting;         /* connections that wait for the lookup's result */
    enum rlock_status result; /* of the newest lookup; RLOCK_PENDING while it runs */
    struct rlock_error err;   /* why the newest lookup failed */
    char *password;           /* what the lookup found, while connections wait for it; else NULL */
};

/*
 * password_source_init: copies `callbacks`, and borrows their context. If `callbacks` is NULL, the
 * source looks nothing up.
 */
void password_source_init(struct password_source *source,
                          const struct rlock_password_source *callbacks, int64_t lookup_ms);
void password_source_fini(struct password_source *source);

/* password_source_is_set: does `source` look passwords up? False if `source` is NULL. */
bool password_source_is_set(const struct password_source *source);

/*
 * password_source_request: register one connection that needs a password. Starts a lookup, unless
 * one is running, or has ended and others wait for its result; doesn't block. After RLOCK_OK call
 * password_source_take() until it no longer returns RLOCK_PENDING, or password_source_abandon().
 */
enum rlock_status password_source_request(struct password_source *source, struct rlock_error *err);

/*
 * password_source_fd: a descriptor that becomes readable when the lookup has ended. -1: the lookup
 * has ended already, and password_source_take() returns its result.
 */
int password_source_fd(const struct password_source *source);

/*
 * password_source_take: hand the result of the lookup to one connection that waits for it.
 *
 *   password  out, on RLOCK_OK only: a copy; the caller frees it by secret_free()
 *
 * Returns  RLOCK_OK, RLOCK_PENDING (the lookup is running), or the fault that ended the lookup.
 */
enum rlock_status password_source_take(struct password_source *source, char **password,
                                       struct rlock_error *err);

/* password_source_abandon: one connection no longer waits. The lookup goes on. */
void password_source_abandon(struct password_source *source);

/* password_source_clear_password: overwrite the password, in a process that won't connect. */
void password_source_clear_password(struct password_source *source);

#endif
