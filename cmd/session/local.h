/* SPDX-License-Identifier: MIT */
/* local: a private server on a Unix socket, for locks on one machine. */
#ifndef LOCAL_H
#define LOCAL_H

#include <rlock.h>
#include <stdbool.h>

#define LOCAL_URL "local:"

/* The use of a local server; it ends when the last user has closed its own. */
struct local {
    int fd;    /* holds the server, and keeps others from starting another; -1: none in use */
    int alive; /* a connection, readable when the server has ended; -1: that isn't known */
    int door;  /* its directory while it is in use, else nothing: where the URL leads through */
    int64_t clients; /* it can serve so few connections; 0: enough, or we didn't start it */
    char url[64];    /* unix://... */
};

#define LOCAL_NONE                         \
    {                                      \
        .fd = -1, .alive = -1, .door = -1, \
    }

/*
 * local_open: make sure that the server runs, and take part in its use. The
 * first of several to come starts it, the others wait for it.
 *
 *   until     for how long to wait while others still use a server that has ended
 *   start_ms  how long a server may take to start
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_BUSY (that wait is over),
 *          RLOCK_E_UNREACHABLE (no server is installed, or it doesn't start),
 *          RLOCK_E_CONFIG (no safe place for its socket) or RLOCK_E_SYSTEM.
 */
enum rlock_status local_open(struct local *local, struct rlock_deadline deadline, int64_t start_ms,
                             struct rlock_error *err);

/*
 * local_has_ended: has the server of this use ended, and all locks with it? Told
 * once. To be asked when `alive` is readable, which is not the same: a
 * connection may end alone, and is made anew.
 */
bool local_has_ended(struct local *local);

/*
 * local_reopen: for who waits for a lock and has none: if the server has ended,
 * take part in the use of the next one, under the same URL, unless others still
 * use the one that has ended.
 */
void local_reopen(struct local *local, int stop_fd, int64_t start_ms);

void local_close(struct local *local);

#endif
