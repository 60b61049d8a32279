/* SPDX-License-Identifier: MIT */
/* private_server: a private server on a Unix socket, for locks on one machine. */
#ifndef PRIVATE_SERVER_H
#define PRIVATE_SERVER_H

#include <rlock.h>
#include <stdbool.h>

#define PRIVATE_SERVER_URL "local:"

/*
 * One process's use of the private server, which ends when its last user has closed its own.
 * Written by private_server.c only.
 */
struct private_server {
    int users_fd; /* a shared flock: the server stays, and no other is started; -1: not in use */
    int alive_fd; /* an idle connection, readable when the server has ended; -1: there is none */
    int dir_fd;   /* the server's directory, through which `url` leads; /dev/null: not in use */
    int64_t clients_max; /* connections that the server can have, where those are few; else 0 */
    char url[64];        /* unix://... */
};

#define PRIVATE_SERVER_NONE                           \
    {                                                 \
        .users_fd = -1, .alive_fd = -1, .dir_fd = -1, \
    }

/*
 * private_server_open: start the server if it doesn't run, and take part in its use. Of several processes
 * that come at the same time one starts the server, and the others wait for it.
 *
 *   deadline  how long to wait while others still use a server that has ended
 *   start_ms  how long a server may take to start
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_BUSY (the deadline is over),
 *          RLOCK_E_UNREACHABLE (no server is installed, or it doesn't start),
 *          RLOCK_E_CONFIG (no safe place for its socket) or RLOCK_E_SYSTEM.
 */
enum rlock_status private_server_open(struct private_server *server, struct rlock_deadline deadline,
                                      int64_t start_ms, struct rlock_error *err);

/*
 * private_server_has_ended: has the server ended, and have all locks with it? True once. To be asked when
 * `alive_fd` is readable: a server that runs may have closed this one connection, and then it is
 * opened again.
 */
bool private_server_has_ended(struct private_server *server);

/*
 * private_server_reopen: for a process that waits for a lock and holds none. If the server has ended, take
 * part in the use of the next one, under the same URL. Where others still use the server that has
 * ended, nothing is in use afterwards, and the caller tries again later.
 */
void private_server_reopen(struct private_server *server, int stop_fd, int64_t start_ms);

void private_server_close(struct private_server *server);

#endif
