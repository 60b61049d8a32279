/* SPDX-License-Identifier: MIT */
/* child: a child process with a socket between it and its parent. */
#ifndef CHILD_H
#define CHILD_H

#include <sys/types.h>

/*
 * child_fork: fork, with a pair of sockets of which each process keeps one end. A message is
 * received whole or not at all, and the end of either process reads as the end of messages for the
 * other.
 *
 *   fd  out: this process's end, close on exec; -1 where there is no child
 *
 * Returns  as fork(2): 0 in the child, the child's pid in the parent, or -1 with errno.
 */
pid_t child_fork(int *fd);

#endif
