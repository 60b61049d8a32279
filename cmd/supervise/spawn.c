/* SPDX-License-Identifier: MIT */
/*
 * spawn: starts the command, with the signals and descriptors that rlock was started with.
 *
 * spawn() uses vfork(2), because most of the time of a fork(2) goes into a copy of the page tables,
 * which the exec throws away. Until its exec the child runs in the parent's memory, so the child
 * writes to its own variables only. The child writes the errno of a failed exec to a pipe, which a
 * successful exec closes.
 */
#include "supervise/spawn.h"

#include "supervise/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <rlock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The child writes one number to the pipe: the errno of exec, which is positive; or SPAWN_TOO_LATE,
 * which is -1; or the errno of cgroup_enter() in this form, which is below -1.
 */
#define FROM_CGROUP(failed) (-1 - (failed))

/*
 * Runs in the child, and does not return. The child checks the lease directly before the exec,
 * because the guard may have been stopped at any point before, for longer than the lease lasts.
 */
static void exec_command(const struct spawn_plan *plan, pid_t parent, int error_fd)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    ssize_t written;
    int failed;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl() */
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
    written = write(error_fd, &failed, sizeof failed);
    (void)written;
    _exit(127);
}

pid_t spawn(const struct spawn_plan *plan, bool *is_exec_error, int *error)
{
    pid_t parent = getpid();
    pid_t child;
    int error_pipe[2];

    *error = 0;
    *is_exec_error = false;
    if (pipe2(error_pipe, O_CLOEXEC) != 0) {
        *error = errno;
        return 0;
    }
    child = vfork();
    if (child == 0)
        exec_command(plan, parent, error_pipe[1]);
    if (child < 0)
        *error = errno;
    close(error_pipe[1]);
    if (child > 0) {
        *is_exec_error = true;
        if (read(error_pipe[0], error, sizeof *error) > 0) {
            waitpid(child, NULL, 0);
            child = 0;
            if (*error < SPAWN_TOO_LATE) {
                *error = FROM_CGROUP(*error);
                *is_exec_error = false;
            }
        }
    }
    close(error_pipe[0]);
    return child < 0 ? 0 : child;
}
