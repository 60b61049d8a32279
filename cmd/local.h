/* SPDX-License-Identifier: MIT */
/* local: a private server on a Unix socket, for locks on one machine. */
#ifndef LOCAL_H
#define LOCAL_H

#include <limits.h>
#include <rlock.h>

#define LOCAL_URL "local:"

/* The use of a local server; it ends when the last user has closed its own. */
struct local {
    int fd; /* holds the server; close on exec; -1: none in use */
    char url[PATH_MAX];
};

#define LOCAL_NONE \
    {              \
        .fd = -1   \
    }

/*
 * local_open: make sure that the server runs, and take part in its use. The
 * first of several to come starts it, the others wait for it.
 *
 * Returns  RLOCK_OK (`url` is unix://...), RLOCK_STOPPED, RLOCK_E_UNREACHABLE
 *          (no server is installed, or it doesn't start), RLOCK_E_CONFIG (no
 *          safe place for its socket) or RLOCK_E_SYSTEM.
 */
enum rlock_status local_open(struct local *local, struct rlock_until until,
                             struct rlock_error *err);
void local_close(struct local *local);

#endif
