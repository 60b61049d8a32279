/* SPDX-License-Identifier: MIT */
/*
 * bound: the process that a lease is bound to, which is not our child, with all below it.
 *
 * Nobody gives us the children of those that end, so each process that was
 * once seen in the tree is remembered by a descriptor of its own: it is found
 * after its parent has ended, and its number can't become another's.
 */
#include "bound.h"

#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREY_MAX 512
#define LOOK_AGAIN_MS 20
#define GIVE_UP_MS 2000 /* after KILL: what is left can't be ended */

struct prey {
    const struct bound *bound;
    struct pollfd seen[PREY_MAX];
    pid_t pid[PREY_MAX];
    size_t n;
};

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
    return bound_has_ended(bound) ? ESRCH : 0;
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

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD of the kernel's include/linux/sched.h */

/* The flags of the process, the seventh word behind its name, which may hold any bytes. */
static bool is_kernel_thread(pid_t pid)
{
    char text[512];
    char path[32];
    const char *at;
    unsigned flags = 0;
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof text - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')');
    return at != NULL && sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           (flags & KERNEL_THREAD) != 0;
}

const char *bound_refusal(pid_t pid)
{
    if (pid == 1)
        return "everything else here would end with it; start the work in a shell of its own";
    if (pid == getpid())
        return "it is this rlock, which ends at once; a shell's own process is $$ where it doesn't "
               "exec rlock";
    return is_kernel_thread(pid) ? "it is a thread of the kernel, which nobody can end" : NULL;
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

static bool is_known(const struct prey *prey, pid_t pid)
{
    size_t i;

    for (i = 0; i < BOUND_SPARED; i++)
        if (prey->bound->spared[i] == pid)
            return true;
    for (i = 0; i < prey->n; i++)
        if (prey->pid[i] == pid)
            return true;
    return pid == getpid();
}

static void add(struct prey *prey, pid_t pid, int fd, int number)
{
    if (fd < 0) { /* too many are open: it can't be remembered */
        kill(pid, number);
        return;
    }
    signal_process(fd, number);
    prey->pid[prey->n] = pid;
    prey->seen[prey->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* The children of all that are known; they are found among these later in the same turn. */
static void gather(struct prey *prey, int number)
{
    pid_t child[TREE_CHILDREN_MAX];
    size_t i;
    size_t j;
    size_t n;

    for (i = 0; i < prey->n; i++) {
        n = tree_children(prey->pid[i], child, TREE_CHILDREN_MAX);
        for (j = 0; j < n && prey->n < PREY_MAX; j++)
            if (!is_known(prey, child[j]))
                add(prey, child[j], open_process(child[j]), number);
    }
}

/* Looks at all that are known for a moment, and forgets those that have ended. Is any left? */
static bool is_any_left(struct prey *prey)
{
    size_t left = 0;
    size_t i;

    if (poll(prey->seen, prey->n, 0) == 0)
        poll(NULL, 0, LOOK_AGAIN_MS);
    for (i = 0; i < prey->n; i++) {
        if (prey->seen[i].revents != 0) {
            close(prey->seen[i].fd);
            continue;
        }
        prey->pid[left] = prey->pid[i];
        prey->seen[left++] = prey->seen[i];
    }
    prey->n = left;
    return left > 0;
}

static void kill_all(const struct prey *prey)
{
    size_t i;

    for (i = 0; i < prey->n; i++)
        signal_process(prey->seen[i].fd, SIGKILL);
}

void bound_end(const struct bound *bound, int64_t kill_ms)
{
    struct prey prey = {.bound = bound};
    int number = SIGTERM;

    if (bound_has_ended(bound)) /* then its number may be another's */
        return;
    add(&prey, bound->pid, fcntl(bound->fd, F_DUPFD_CLOEXEC, 0), 0);
    gather(&prey, SIGTERM); /* before their parent can leave them behind */
    signal_process(bound->fd, SIGTERM);
    while (is_any_left(&prey)) {
        if (rlock_clock_ms() >= kill_ms + GIVE_UP_MS)
            break;
        if (rlock_clock_ms() >= kill_ms) {
            number = SIGKILL;
            kill_all(&prey);
        }
        gather(&prey, number);
    }
}
