/* SPDX-License-Identifier: MIT */
/* local: a private server on a Unix socket, for locks on one machine. */
#ifndef LOCAL_H
#define LOCAL_H

#include <rlock.h>
#include <stdbool.h>

#define LOCAL_URL "local:"

/*
 * One process's use of the private server, which ends when its last user has closed its own.
 * Written by local.c only.
 */
struct local {
    int users_fd; /* a shared flock: the server stays, and no other is started; -1: not in use */
    int alive_fd; /* an idle connection, readable when the server has ended; -1: there is none */
    int dir_fd;   /* the server's directory, through which `url` leads; /dev/null: not in use */
    int64_t clients_max; /* connections that the server can have, where those are few; else 0 */
    char url[64];        /* unix://... */
};

#define LOCAL_NONE                                    \
    {                                                 \
        .users_fd = -1, .alive_fd = -1, .dir_fd = -1, \
    }

/*
 * local_open: start the server if it doesn't run, and take part in its use. Of several processes
 * that come at the same time one starts the server, and the others wait for it.
 *
 *   deadline  how long to wait while others still use a server that has ended
 *   start_ms  how long a server may take to start
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_BUSY (the deadline is over),
 *          RLOCK_E_UNREACHABLE (no server is installed, or it doesn't start),
 *          RLOCK_E_CONFIG (no safe place for its socket) or RLOCK_E_SYSTEM.
 */
enum rlock_status local_open(struct local *local, struct rlock_deadline deadline, int64_t start_ms,
                             struct rlock_error *err);

/*
 * local_has_ended: has the server ended, and have all locks with it? True once. To be asked when
 * `alive_fd` is readable: a server that runs may have closed this one connection, and then it is
 * opened again.
 */
bool local_has_ended(struct local *local);

/*
 * local_reopen: for a process that waits for a lock and holds none. If the server has ended, take
 * part in the use of the next one, under the same URL. Where others still use the server that has
 * ended, nothing is in use afterwards, and the caller tries again later.
 */
void local_reopen(struct local *local, int stop_fd, int64_t start_ms);

void local_close(struct local *local);

#endif
