/* SPDX-License-Identifier: MIT */
/* spawn: starts the command, with the signals and descriptors that rlock was started with. */
#ifndef SPAWN_H
#define SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spawn_plan {
    char *const *argv; /* execvpe(3) looks for argv[0] in PATH */
    char *const *envp;
    const sigset_t *mask; /* the signals that the command starts with as blocked */
    int cgroup_fd;        /* cgroup.procs of the command's cgroup; -1: the command stays in ours */
    bool ignore_child;    /* the command starts with SIGCHLD ignored, as rlock did */
    int64_t not_after_ms; /* on rlock_clock_ms(): later than this the command must not start */
};

/* spawn() sets `*error` to this value if `not_after_ms` came before the exec. */
#define SPAWN_TOO_LATE (-1)

/*
 * spawn: start the command, and wait for its exec. Returns the command's pid; or 0, and sets
 * `*error` to an errno or to SPAWN_TOO_LATE. `*is_exec_error`: true if execvpe(3) set that errno,
 * false if an earlier call did. If the calling process dies, the kernel kills the command (but not
 * its descendants). Allocates no memory.
 */
pid_t spawn(const struct spawn_plan *plan, bool *is_exec_error, int *error);

#endif
