/* SPDX-License-Identifier: MIT */
/* child: how a process that rlock forks for itself begins: with a socket, in its own session. */
#ifndef CHILD_H
#define CHILD_H

#include <sys/types.h>

/*
 * child_fork: fork, with a socket pair of which parent and child keep one end each. A message
 * (SOCK_SEQPACKET) is received as a whole. When one process ends, recv(2) returns 0 in the other.
 *
 *   fd  out: this process's end, which closes on exec; -1 if no child was forked
 *
 * Returns  what fork(2) returns: 0 in the child, the child's pid in the parent, or -1 with errno.
 */
pid_t child_fork(int *fd);

/*
 * child_leave_session: in a process just forked, leave the session of rlock's caller: so the
 * terminal sends this process no signal. Close the descriptors that rlock was started with: a
 * reader of rlock's output would otherwise wait for the end of this process.
 *
 *   name       the process's name in ps(1)
 *   stderr_fd  what becomes its stderr; STDERR_FILENO: stderr stays; -1: /dev/null
 *
 * Returns 0, or an errno: the process may then still have a descriptor of rlock's caller.
 */
int child_leave_session(const char *name, int stderr_fd);

/*
 * child_reset_signals: in a process just forked, give all signals their default actions, and block
 * SIGCHLD only, which signalfd(2) and sigtimedwait(2) then receive.
 */
void child_reset_signals(void);

#endif
