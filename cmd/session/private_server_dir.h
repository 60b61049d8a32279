/* SPDX-License-Identifier: MIT */
/* private_server_dir: the directory of the private server, the same for all that one user runs. */
#ifndef PRIVATE_SERVER_DIR_H
#define PRIVATE_SERVER_DIR_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * private_server_dir_open: open the directory, and make it if it isn't there. The umask is
 * changed during the call: other threads must create no files meanwhile.
 *
 *   fd  out, on RLOCK_OK only: close on exec
 *
 * Returns  RLOCK_OK or RLOCK_E_CONFIG (no directory that only this user can change).
 */
enum rlock_status private_server_dir_open(int *fd, struct rlock_error *err);

/*
 * private_server_dir_open_older: open the nth of the places where older versions of rlock
 * started this user's server. Nothing is made there.
 *
 *   nth  from 0
 *   fd   out; -1: there is no such directory, or others can write to it
 *
 * Returns  false if there is no nth place.
 */
bool private_server_dir_open_older(size_t nth, int *fd);

/* private_server_dir_is_same: do both descriptors stand for the same directory? */
bool private_server_dir_is_same(int a, int b);

/* private_server_dir_open_file: open one of its files, made if it isn't there. -1 with errno. */
int private_server_dir_open_file(int dir, const char *name);

/* private_server_dir_has: is the open `file` still the one that the directory has under `name`? */
bool private_server_dir_has(int dir, const char *name, int file);

/* Its files: the server's socket; flocks of all who use the server, and of who starts it. */
#define PRIVATE_SERVER_SOCKET "server.sock"
#define PRIVATE_SERVER_USERS "users"
#define PRIVATE_SERVER_START "start"

#endif
