/* SPDX-License-Identifier: MIT */
/* private_server_process: the private server's process, from its start to its end. */
#ifndef PRIVATE_SERVER_PROCESS_H
#define PRIVATE_SERVER_PROCESS_H

#include <rlock.h>
#include <stdbool.h>

/* The files in the server's directory. */
#define PRIVATE_SERVER_SOCKET "server.sock" /* the server's Unix socket */
#define PRIVATE_SERVER_USERS "users"        /* each process that uses the server holds a flock */

/*
 * private_server_process_find: find the server whose socket is in the directory `dir`. Returns a
 * descriptor that becomes readable when the server has ended; or -1 with errno: EAGAIN (a server
 * runs, but the backlog of its socket is full), EPERM (a process of another user listens on the
 * socket), or another errno: no server runs.
 */
int private_server_process_find(int dir);

/* private_server_process_open_users: open PRIVATE_SERVER_USERS, or create it. -1 with errno. */
int private_server_process_open_users(int dir);

/* private_server_process_is_installed: is a server found in `path`, the value of PATH, or NULL? */
bool private_server_process_is_installed(const char *path);

/*
 * private_server_process_start: start a server, and wait until it accepts connections. The caller
 * must hold the exclusive flock on PRIVATE_SERVER_USERS, and afterwards make it a shared one: when
 * no process holds a flock, the server ends.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_E_UNREACHABLE (no server is installed, or it doesn't
 * start) or RLOCK_E_SYSTEM.
 */
enum rlock_status private_server_process_start(int dir, struct rlock_deadline deadline,
                                               struct rlock_error *err);

#endif
