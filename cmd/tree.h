/* SPDX-License-Identifier: MIT */
/* tree: the descendants of a process, to be signalled as one. */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
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

/* tree_state: of a thread, as proc(5) has it: R, S, D, T, t, Z and so on; '\0': there is none. */
char tree_state(pid_t thread);

/* tree_tracer: the thread that traces this one, as a debugger does; 0: none. */
pid_t tree_tracer(pid_t thread);

/*
 * tree_each_thread: show each thread of each descendant of `root`. It comes
 * before its children are looked for; upwards, after all below its process
 * were shown. False: not all could be reached, as there is no /proc, or they
 * are too deep below.
 */
typedef void tree_see(pid_t thread, void *context);
bool tree_each_thread(pid_t root, bool upwards, tree_see *see, void *context);

#endif
