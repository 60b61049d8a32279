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
    const sigset_t *mask; /* the signals that are blocked when the command starts */
    int cgroup_fd;        /* cgroup.procs of the command's cgroup; -1: the command stays in ours */
    bool ignore_child;    /* the command starts with SIGCHLD ignored, as rlock did */
    int64_t not_after_ms; /* on rlock_clock_ms(): later than this the command must not start */
};

/* The error of spawn() if `not_after_ms` came before the exec. */
#define SPAWN_TOO_LATE (-1)

struct spawned {
    pid_t pid;          /* the command's; 0: the command was not started */
    int64_t exec_ms;    /* on rlock_clock_ms(): just before the exec; 0: there was no exec */
    int error;          /* an errno, or SPAWN_TOO_LATE; 0: the command was started */
    bool is_exec_error; /* execvpe(3) set the errno; false: an earlier call did */
};

/*
 * spawn: start the command, and wait for its exec. If the calling process dies, the kernel kills
 * the command (but not its descendants). Allocates no memory.
 */
struct spawned spawn(const struct spawn_plan *plan);

#endif
