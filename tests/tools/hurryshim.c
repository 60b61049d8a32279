/* SPDX-License-Identifier: MIT */
/*
 * hurryshim: lets a process wait for a signal for 50 ms at the most.
 *
 * usage: LD_PRELOAD=hurryshim.so COMMAND
 *
 * The parent of the private server (`-u local:`) waits for a signal for up to an hour, and then
 * touches the server's files, so that no program that cleans up /tmp removes them. With hurryshim
 * the parent touches the files every 50 ms, and a test needn't wait for an hour.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                 const struct timespec *restrict timeout)
{
    struct timespec soon = {.tv_nsec = 50000000};

    (void)timeout;
    return (int)syscall(SYS_rt_sigtimedwait, set, info, &soon, (size_t)8);
}
