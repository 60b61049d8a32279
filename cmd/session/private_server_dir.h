/* SPDX-License-Identifier: MIT */
/* private_server_dir: the directory of the private server, the same for all processes of a user. */
#ifndef PRIVATE_SERVER_DIR_H
#define PRIVATE_SERVER_DIR_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * private_server_dir_open: open the directory, and create it if it doesn't exist. The call changes
 * the umask while it runs, so no other thread may create a file at the same time.
 *
 *   fd  out, on RLOCK_OK only: the directory, which closes on exec
 *
 * Returns  RLOCK_OK or RLOCK_E_CONFIG (there is no directory that only this user can change).
 */
enum rlock_status private_server_dir_open(int *fd, struct rlock_error *err);

/* private_server_dir_open_file: open a file of the directory, or create it. -1 with errno. */
int private_server_dir_open_file(int dir, const char *name);

/* private_server_dir_has: is `name` in the directory still the file that `file` has open? */
bool private_server_dir_has(int dir, const char *name, int file);

/* The files in the directory. */
#define PRIVATE_SERVER_SOCKET "server.sock" /* the server's Unix socket */
#define PRIVATE_SERVER_USERS "users"        /* each process that uses the server holds a flock */
#define PRIVATE_SERVER_START "start"        /* the process that starts the server holds a flock */

#endif
