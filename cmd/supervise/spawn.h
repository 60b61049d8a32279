/* SPDX-License-Identifier: MIT */
/* spawn: start the command as if rlock had never been there. */
#ifndef SPAWN_H
#define SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spawn_plan {
    char *const *argv; /* argv[0] is looked for in PATH */
    char *const *envp;
    const sigset_t *mask;
    int cgroup_fd;        /* cgroup.procs of the cgroup that it is started in; -1: ours */
    bool ignore_child;    /* SIGCHLD */
    int64_t not_after_ms; /* on rlock_clock_ms(): never start it later */
};

/* What went wrong besides errno's of fork and exec. */
#define SPAWN_TOO_LATE (-1)

/*
 * spawn: start the command. Returns its pid, or 0 with `*failed` an errno or
 * SPAWN_TOO_LATE; `*forked` tells exec's errno from that
 * of what comes before it. The command dies
 * with the calling process. Allocates nothing.
 */
pid_t spawn(const struct spawn_plan *plan, bool *forked, int *failed);

#endif
