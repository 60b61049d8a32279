/* SPDX-License-Identifier: MIT */
/* tree: the descendants of a process, to be signalled as one. */
#ifndef TREE_H
#define TREE_H

#include <stddef.h>
#include <sys/types.h>

#define TREE_CHILDREN_MAX 512

/*
 * tree_children: the children of a process, zombies included, as far as there
 * is room. Allocates nothing. Returns how many were stored.
 */
size_t tree_children(pid_t parent, pid_t *child, size_t room);

/*
 * tree_signal: send a signal to every descendant of `root`, whatever process
 * group or session it moved to, except to the branches that start with one of
 * `spared`. A process that forks meanwhile may get away: repeat until nothing
 * is left. Returns how many children of `root` there were, 0 also without /proc.
 */
size_t tree_signal(pid_t root, int signo, const pid_t *spared, size_t n_spared);

#endif
