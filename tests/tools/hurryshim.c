/* SPDX-License-Identifier: MIT */
/*
 * hurryshim: lets a process wait for no signal.
 *
 * usage: LD_PRELOAD=hurryshim.so COMMAND
 *
 * The keeper of the private server (`-u local:`) waits for a signal for 0.1 s at a time, and after
 * an hour touches the server's files, so that no program that cleans up /tmp removes them. With
 * hurryshim that hour passes at once, and a test needn't wait for it.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                 const struct timespec *restrict timeout)
{
    struct timespec soon = {.tv_nsec = 0};

    (void)timeout;
    return (int)syscall(SYS_rt_sigtimedwait, set, info, &soon, (size_t)8);
}
