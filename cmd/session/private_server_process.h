/* SPDX-License-Identifier: MIT */
/* private_server_process: the private server's process, from its start to its end. */
#ifndef PRIVATE_SERVER_PROCESS_H
#define PRIVATE_SERVER_PROCESS_H

#include <rlock.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * private_server_process_connect: connect to the server whose socket is in the directory `dir`. The
 * connection closes on exec, and becomes readable when the server has ended.
 *
 * Returns  a descriptor, or -1 with errno: EAGAIN (a server runs, but the backlog of its socket is
 * full), EPERM (a process of another user listens on the socket), or another errno: no server runs.
 */
int private_server_process_connect(int dir);

/* private_server_process_pid: the pid of the server that accepted `connection`; 0: unknown. */
pid_t private_server_process_pid(int connection);

/*
 * private_server_process_clients_max: how many connections the server can have, if its limit of
 * open files (RLIMIT_NOFILE) allows fewer than 1000; else 0.
 */
int64_t private_server_process_clients_max(int connection);

/*
 * private_server_process_start: start a server, and wait until it accepts connections. The caller
 * must hold a shared flock on PRIVATE_SERVER_USERS, as the server ends when no process holds one.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_E_UNREACHABLE (no server is installed, or it doesn't
 * start) or RLOCK_E_SYSTEM.
 */
enum rlock_status private_server_process_start(int dir, struct rlock_deadline deadline,
                                               struct rlock_error *err);

#endif
