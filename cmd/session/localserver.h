/* SPDX-License-Identifier: MIT */
/* localserver: the private server's process, from its start to its end. */
#ifndef LOCALSERVER_H
#define LOCALSERVER_H

#include <rlock.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * localserver_call: connect to the server of a directory. The connection is
 * close on exec, and readable once the server has ended.
 *
 * Returns  a descriptor, or -1 with errno: EAGAIN (a server is there, but it
 *          takes no connection now), EPERM (another user's), or none is there.
 */
int localserver_call(int dir);

/* localserver_pid: the server's, by a connection to it; 0: unknown. */
pid_t localserver_pid(int connection);

/* localserver_clients: how many connections it can serve, where those are few; else 0. */
int64_t localserver_clients(int connection);

/*
 * localserver_start: start one, and wait until it takes connections. It ends
 * when nobody holds a shared flock on LOCALDIR_USERS any more; the caller does.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_E_UNREACHABLE (no server is
 *          installed, or it doesn't start) or RLOCK_E_SYSTEM.
 */
enum rlock_status localserver_start(int dir, struct rlock_deadline deadline,
                                    struct rlock_error *err);

#endif
