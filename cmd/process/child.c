/* SPDX-License-Identifier: MIT */
/* child: a child process with a socket between it and its parent. */
#include "process/child.h"

#include <errno.h>
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
