/* SPDX-License-Identifier: MIT */
/* child: how a child process of a test ends. */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

#include "tap.h"

#include <sys/wait.h>

#define CHILD_CANT_RUN 2 /* exit status: this system doesn't allow what the test needs */

/* Waits for a child. Returns its exit status; below 0: minus the signal that has ended it. */
static inline int child_status(pid_t pid)
{
    int status = 0;

    if (waitpid(pid, &status, 0) != pid)
        return -999;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Waits for a child that runs a part of a test: it has passed by the status 0. */
static inline void child_passes(pid_t pid, const char *name, const char *cant_run)
{
    int status = child_status(pid);

    if (status == CHILD_CANT_RUN)
        skip(name, cant_run);
    else
        is_int(status, 0, name);
}

#endif
