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
 * rlock's caller, and has no descriptors but an empty standard input, stderr, and its end of a
 * socket to rlock. It exits by itself when recv(2) tells it that nobody has the other end any more.
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
    const char *limit;   /* the time until then, in words */
    int client_fd;       /* the command is also killed when the other end is closed; -1: never */
    char *output;        /* zeros; out: the first bytes that the command prints, and a NUL */
    size_t room;         /* of `output`; 0: the command writes to the helper's stdout */
};

#define HELPER_WHY_BYTES 128

/*
 * helper_run: in a helper, run a command and wait for its end, but not for that of the processes
 * that it leaves behind. The command has a session of its own; who kills the command, kills its
 * process group. Returns true if the command ended with status 0; else `why` says what happened.
 */
bool helper_run(const struct helper_command *command, char why[HELPER_WHY_BYTES]);

#endif
