/* SPDX-License-Identifier: MIT */
/*
 * bound: the process that a lease is bound to, which is not our child, with all below it.
 *
 * Nobody gives us the children of those that end: each process that was once seen in the tree is
 * remembered (tree.c), so that it is found after its parent has ended.
 */
#include "supervise/bound.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20
#define KILL_AT_ONCE_MS 20
#define GIVE_UP_MS 2000 /* after KILL: what is left can't be ended */

static int open_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int signal_process(int fd, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

int bound_open(struct bound *bound, pid_t pid)
{
    *bound = (struct bound){.pid = pid, .fd = open_process(pid)};
    if (bound->fd < 0 || signal_process(bound->fd, 0) != 0)
        return errno;
    return bound_has_ended(bound) ? ESRCH : proctree_reserve(&bound->tree);
}

void bound_name(pid_t pid, char name[32])
{
    char path[32];
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, name, 31);
        close(fd);
    }
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

const char *bound_refusal(pid_t pid)
{
    if (pid == 1)
        return "everything else here would end with it; start the work in a shell of its own";
    if (pid == getpid())
        return "it is this rlock, which ends at once; a shell's own process is $$ where it doesn't "
               "exec rlock";
    if ((proctree_flags(pid) & PROCTREE_KERNEL_THREAD) != 0)
        return "it is a thread of the kernel, which nobody can end";
    return NULL;
}

bool bound_has_ended(const struct bound *bound)
{
    struct pollfd process = {.fd = bound->fd, .events = POLLIN};

    return poll(&process, 1, 0) > 0;
}

void bound_signal(const struct bound *bound, int number)
{
    signal_process(bound->fd, number);
}

/* Before the process is signalled: it could leave those below it behind. */
static void end_once(struct bound *bound, int number)
{
    if (number == SIGTERM)
        proctree_term(&bound->tree);
    else
        proctree_kill(&bound->tree, rlock_clock_ms() + KILL_AT_ONCE_MS, NULL, NULL);
}

void bound_end(struct bound *bound, int64_t kill_ms)
{
    int number = SIGTERM;

    proctree_set_root(&bound->tree, bound->pid);
    proctree_spare(&bound->tree, getpid());
    if (getppid() == bound->renew_daemon)
        proctree_spare(&bound->tree, bound->renew_daemon);
    if (bound_has_ended(bound)) /* then its number may be another's */
        return;
    if (rlock_clock_ms() < kill_ms) { /* else another of ours has sent TERM, and is too late */
        end_once(bound, SIGTERM);
        signal_process(bound->fd, SIGTERM);
    }
    while (proctree_look(&bound->tree) > 0 || !bound_has_ended(bound)) {
        if (rlock_clock_ms() >= kill_ms + GIVE_UP_MS)
            break;
        if (rlock_clock_ms() >= kill_ms) {
            number = SIGKILL;
            signal_process(bound->fd, SIGKILL);
        } else {
            poll(NULL, 0, LOOK_AGAIN_MS);
        }
        end_once(bound, number);
    }
}
