/* SPDX-License-Identifier: MIT */
/* spawn: starts the command, with the signals and descriptors that rlock was started with. */
#ifndef SPAWN_H
#define SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spawn_plan {
    char *const *argv; /* argv[0] is looked for in PATH */
    char *const *envp;
    const sigset_t *mask; /* of blocked signals */
    int cgroup_fd;     /* cgroup.procs of the cgroup that the command is started in; -1: our own */
    bool ignore_child; /* SIGCHLD was ignored when rlock was started */
    int64_t not_after_ms; /* on rlock_clock_ms(): the lease ends; the command is not started */
};

/* `*error`, when it was `not_after_ms` before the exec. */
#define SPAWN_TOO_LATE (-1)

/*
 * spawn: start the command, and wait for its exec. Returns its pid, or 0 with `*error` an errno or
 * SPAWN_TOO_LATE; `*is_exec_error` is true if that errno is exec's, and false if a call
 * before it failed. If the calling process dies, the kernel kills the command. Allocates nothing.
 */
pid_t spawn(const struct spawn_plan *plan, bool *is_exec_error, int *error);

#endif
