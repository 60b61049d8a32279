/* SPDX-License-Identifier: MIT */
/* private_server_process: the private server's process, from its start to its end. */
#ifndef PRIVATE_SERVER_PROCESS_H
#define PRIVATE_SERVER_PROCESS_H

#include <rlock.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * private_server_process_connect: connect to the server in the directory `dir`. The connection is close on
 * exec, and readable once the server has ended.
 *
 * Returns  a descriptor, or -1 with errno: EAGAIN (a server runs, but its backlog is full), EPERM
 *          (another user's process listens), or another one: there is no server.
 */
int private_server_process_connect(int dir);

/* private_server_process_pid: the pid of the server at the other end of a connection; 0: unknown. */
pid_t private_server_process_pid(int connection);

/*
 * private_server_process_clients_max: how many connections the server can have, where a limit on open files
 * makes those fewer than a thousand; else 0.
 */
int64_t private_server_process_clients_max(int connection);

/*
 * private_server_process_start: start a server, and wait until it takes connections. It ends when nobody holds
 * a shared flock on PRIVATE_SERVER_USERS any more, so the caller has to hold one.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_E_UNREACHABLE (no server is
 *          installed, or it doesn't start) or RLOCK_E_SYSTEM.
 */
enum rlock_status private_server_process_start(int dir, struct rlock_deadline deadline,
                                               struct rlock_error *err);

#endif
