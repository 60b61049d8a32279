/* SPDX-License-Identifier: MIT */
/*
 * spawn: start the command as if rlock had never been there.
 *
 * vfork, since copying page tables to throw them away is most of the cost of
 * a fork: between it and exec the child runs in our memory, so it writes
 * nothing but its own variables, and errno comes back by a pipe that exec
 * closes.
 */
#include "supervise/spawn.h"

#include "supervise/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <rlock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the child's words to its parent: an errno of exec is positive, of cgroup_enter() negative. */
#define FROM_CGROUP(failed) (-1 - (failed))

/* In the child. The lease is looked at here, as late as can be: by the process that execs. */
static void become(const struct spawn_plan *plan, pid_t parent, int tell)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    ssize_t written;
    int failed;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before we asked to be told */
        _exit(127);
    if (plan->ignore_child)
        sigaction(SIGCHLD, &ignored, NULL);
    sigprocmask(SIG_SETMASK, plan->mask, NULL);
    failed = plan->cgroup_fd >= 0 ? cgroup_enter(plan->cgroup_fd) : 0;
    if (failed != 0) {
        failed = FROM_CGROUP(failed);
    } else if (rlock_clock_ms() < plan->not_after_ms) {
        execvpe(plan->argv[0], plan->argv, plan->envp);
        failed = errno;
    } else {
        failed = SPAWN_TOO_LATE;
    }
    written = write(tell, &failed, sizeof failed);
    (void)written;
    _exit(127);
}

pid_t spawn(const struct spawn_plan *plan, bool *forked, int *failed)
{
    pid_t parent = getpid();
    pid_t child;
    int tell[2];

    *failed = 0;
    *forked = false;
    if (pipe2(tell, O_CLOEXEC) != 0) {
        *failed = errno;
        return 0;
    }
    child = vfork();
    if (child == 0)
        become(plan, parent, tell[1]);
    if (child < 0)
        *failed = errno;
    close(tell[1]);
    if (child > 0) {
        *forked = true;
        if (read(tell[0], failed, sizeof *failed) > 0) {
            waitpid(child, NULL, 0);
            child = 0;
            if (*failed < SPAWN_TOO_LATE) {
                *failed = FROM_CGROUP(*failed);
                *forked = false;
            }
        }
    }
    close(tell[0]);
    return child < 0 ? 0 : child;
}
