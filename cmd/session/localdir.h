/* SPDX-License-Identifier: MIT */
/* localdir: the directory of the private server, the same for all that one user runs. */
#ifndef LOCALDIR_H
#define LOCALDIR_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * localdir_open: open the directory, and make it if it isn't there. Changes
 * the umask, and has put it back when it returns.
 *
 *   fd  out, on RLOCK_OK only: close on exec
 *
 * Returns  RLOCK_OK or RLOCK_E_CONFIG (no directory that only this user can change).
 */
enum rlock_status localdir_open(int *fd, struct rlock_error *err);

/*
 * localdir_open_older: the nth place that a server of this user's may have been
 * started in, when that was the user's directory. Nothing is made there.
 *
 *   fd  out: -1: there is no such directory, or it isn't this user's alone
 *
 * Returns  false if there is no nth place.
 */
bool localdir_open_older(size_t nth, int *fd);

/* localdir_is_same: are two descriptors one directory? */
bool localdir_is_same(int a, int b);

/* localdir_file: open one of its files, made if it isn't there. -1 with errno. */
int localdir_file(int dir, const char *name);

/* localdir_has: is an open file the one that the directory has under that name? */
bool localdir_has(int dir, const char *name, int file);

/* localdir_fail: set the fault and its text in `err`; returns `st`. */
enum rlock_status localdir_fail(struct rlock_error *err, enum rlock_status st, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));

/* Its files: the server's socket, and what is locked by who uses and who starts the server. */
#define LOCALDIR_SOCKET "server.sock"
#define LOCALDIR_USERS "users"
#define LOCALDIR_START "start"

#endif
