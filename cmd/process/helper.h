/* SPDX-License-Identifier: MIT */
/* helper: a process that runs short shell commands for rlock, each with a time limit. */
#ifndef HELPER_H
#define HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * helper_fork: fork a helper. The caller must have no threads. The helper has left the session of
 * rlock's caller. Its only descriptors are stderr, its end of a socket to rlock, and /dev/null as
 * stdin and stdout. When recv(2) returns 0, nobody has the other end, and the helper has to exit.
 *
 *   fd    out: this process's end of the socket, as for child_fork()
 *   name  the helper's name in ps(1)
 *
 * Returns  what fork(2) returns.
 */
pid_t helper_fork(int *fd, const char *name);

struct helper_command {
    const char *text;    /* the helper runs it by /bin/sh -c, with its own environment */
    int64_t deadline_ms; /* on rlock_clock_ms(): the helper then kills the command */
    const char *limit;   /* in words, for `why`: how long the command may run */
    int client_fd;       /* a socket: when its other end is closed, the command is killed; or -1 */
    char *output;        /* filled with zeros; out: the first bytes that the command prints */
    size_t room;         /* of `output`; 0: the command writes to the helper's stdout */
};

#define HELPER_WHY_BYTES 128

/*
 * helper_run: in a helper, run a command and wait for its end, but not for the end of processes
 * that the command leaves behind. The command has a session of its own; at the deadline the helper
 * kills the command's process group. False: it didn't end with status 0; `why` says what happened.
 */
bool helper_run(const struct helper_command *command, char why[HELPER_WHY_BYTES]);

#endif
