/* SPDX-License-Identifier: MIT */
/* child: how a process that rlock forks for itself begins: with a socket, in its own session. */
#include "process/child.h"

#include "process/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

pid_t child_fork(int *fd)
{
    int pair[2];
    int failed;
    pid_t pid;

    *fd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    pid = fork();
    failed = errno;
    close(pair[pid == 0 ? 0 : 1]);
    if (pid < 0)
        close(pair[0]);
    else
        *fd = pair[pid == 0 ? 1 : 0];
    errno = failed;
    return pid;
}

int child_leave_session(const char *name, int stderr_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int failed = null < 0 ? errno : 0;
    int fd;

    prctl(PR_SET_NAME, name);
    setsid();
    for (fd = 0; fd <= STDERR_FILENO && failed == 0; fd++)
        if (dup2(fd == STDERR_FILENO && stderr_fd >= 0 ? stderr_fd : null, fd) < 0)
            failed = errno;
    if (null >= 0)
        close(null);
    fds_drop(false, NULL, 0);
    return failed;
}

void child_reset_signals(void)
{
    sigset_t child;
    int number;

    for (number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
}
