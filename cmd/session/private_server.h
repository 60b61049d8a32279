/* SPDX-License-Identifier: MIT */
/* private_server: a private server on a Unix socket, for locks on one machine. */
#ifndef PRIVATE_SERVER_H
#define PRIVATE_SERVER_H

#include <rlock.h>
#include <stdbool.h>

/*
 * What this process holds open while it uses the private server. The server ends when no process
 * uses it any more. Only private_server.c writes the fields.
 */
struct private_server {
    /* File with our shared flock; while any process has such a flock, the server runs; -1: none. */
    int users_fd;
    /* Readable when the server has ended; -1: the caller was told of the end, or uses no server. */
    int alive_fd;
    /* The server's directory, which `url` names; /dev/null: the server has ended. */
    int dir_fd;
    /* unix:///proc/self/fd/<dir_fd>/<socket> */
    char url[64];
};

#define PRIVATE_SERVER_NONE                           \
    {                                                 \
        .users_fd = -1, .alive_fd = -1, .dir_fd = -1, \
    }

/*
 * private_server_open: become a user of the server, and start the server if none runs. If several
 * processes call this at the same time, one of them starts the server and the others wait.
 *
 *   deadline  how long to wait for processes that still use a server that has ended
 *   start_ms  how long a server may take to start
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED (by the deadline's descriptor), RLOCK_BUSY (the deadline is
 * over), RLOCK_E_UNREACHABLE (no server is installed, or it doesn't start), RLOCK_E_CONFIG (the
 * directory for the socket is missing or unsafe) or RLOCK_E_SYSTEM.
 */
enum rlock_status private_server_open(struct private_server *server, struct rlock_deadline deadline,
                                      int64_t start_ms, struct rlock_error *err);

/*
 * private_server_has_ended: has the server ended, and with it all of its locks? Blocks for up to
 * 100 ms, as a connection to the server may break a moment earlier. Returns true only once.
 */
bool private_server_has_ended(struct private_server *server);

/*
 * private_server_reopen: if the server has ended, become a user of the next server, which has the
 * same URL. Only for a process that holds no lock. If other processes still use the server that has
 * ended, users_fd is -1 afterwards, and the caller has to call this function again later.
 */
void private_server_reopen(struct private_server *server, int stop_fd, int64_t start_ms);

/* private_server_close: stop using the server. */
void private_server_close(struct private_server *server);

#endif
