/* SPDX-License-Identifier: MIT */
/* child: a child process with a socket between it and its parent. */
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

#endif
