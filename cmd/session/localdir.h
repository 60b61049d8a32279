/* SPDX-License-Identifier: MIT */
/* localdir: the directory of the private server, the same for all that one user runs. */
#ifndef LOCALDIR_H
#define LOCALDIR_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * localdir_open: open the directory, and make it if it isn't there. The umask is
 * changed during the call: other threads must create no files meanwhile.
 *
 *   fd  out, on RLOCK_OK only: close on exec
 *
 * Returns  RLOCK_OK or RLOCK_E_CONFIG (no directory that only this user can change).
 */
enum rlock_status localdir_open(int *fd, struct rlock_error *err);

/*
 * localdir_open_older: open the nth of the places where older versions of rlock
 * started this user's server. Nothing is made there.
 *
 *   nth  from 0
 *   fd   out; -1: there is no such directory, or others can write to it
 *
 * Returns  false if there is no nth place.
 */
bool localdir_open_older(size_t nth, int *fd);

/* localdir_is_same: do both descriptors stand for the same directory? */
bool localdir_is_same(int a, int b);

/* localdir_file: open one of its files, made if it isn't there. -1 with errno. */
int localdir_file(int dir, const char *name);

/* localdir_has: is the open `file` still the one that the directory has under `name`? */
bool localdir_has(int dir, const char *name, int file);

/* localdir_fail: set the fault and its text in `err`; returns `st`. */
enum rlock_status localdir_fail(struct rlock_error *err, enum rlock_status st, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));

/* Its files: the server's socket; flocks of all who use the server, and of who starts it. */
#define LOCALDIR_SOCKET "server.sock"
#define LOCALDIR_USERS "users"
#define LOCALDIR_START "start"

#endif
