/* SPDX-License-Identifier: MIT */
/*
 * freeze: stop every thread of all descendants of this process, and let them run again.
 *
 * By ptrace(2) and not by SIGSTOP, because
 * - SIGCONT, which a shell sends for `fg`, does not wake a traced thread;
 * - a process that was stopped before the freeze is still stopped after the release;
 * - no parent in the tree is told that its child was stopped;
 * - if the tracer dies the kernel kills what it traced (PTRACE_O_EXITKILL);
 * - the kernel knows what is traced, so nothing has to be remembered, however many there are.
 *
 * What can't be traced can't be frozen: a process of another user, a process that forbids it
 * (PR_SET_DUMPABLE), a process under a debugger outside the tree. A debugger inside the tree, such
 * as another guard, is frozen itself, and what it has stopped stays stopped.
 */
#include "supervise/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#define END_ROUNDS 100
#define END_ROUND_MS 2

/* One look at all threads of the tree. */
struct pass {
    bool is_still; /* no thread was seen that may run */
    int refused;   /* the errno of a thread that can't be stopped; 0: none */
    size_t n_dead; /* zombies; one more than before: its children became ours meanwhile */
};

/*
 * A vfork parent whose child is frozen cannot stop for us, as it sleeps until the child's exec, and
 * for the same reason cannot run: count it as frozen.
 */
static bool waits_for_vfork(pid_t thread)
{
    char path[64];
    char text[32] = "";
    long number;
    int fd;

    if (proctree_state(thread) != 'D')
        return false;
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, text, sizeof text - 1) <= 0)
        text[0] = '\0';
    close(fd);
    if (text[0] < '0' || text[0] > '9')
        return false;
    number = strtol(text, NULL, 10);
#ifdef SYS_vfork
    if (number == SYS_vfork)
        return true;
#endif
    return number == SYS_clone || number == SYS_clone3;
}

/* Is this thread stopped, and traced by us? The kernel grants the request for no other. */
static bool is_frozen(pid_t thread)
{
    unsigned long unused;

    return ptrace(PTRACE_GETEVENTMSG, thread, NULL, &unused) == 0;
}

static bool counts_as_dead(struct pass *pass, char state)
{
    if (state != 'Z' && state != 'X')
        return false;
    pass->n_dead++;
    return true;
}

/* A thread that we trace, and told to stop before. It may be a zombie by now instead. */
static void judge_ours(struct pass *pass, pid_t thread)
{
    if (!counts_as_dead(pass, proctree_state(thread)) && !waits_for_vfork(thread))
        pass->is_still = false;
}

/* A thread that we can't trace. If its tracer has stopped it and is frozen itself, it is still. */
static void judge_other(struct pass *pass, pid_t thread, int failed)
{
    char state = proctree_state(thread);
    bool is_still = state == 't' || waits_for_vfork(thread);

    if (counts_as_dead(pass, state) || (is_still && is_frozen(proctree_tracer(thread))))
        return;
    pass->is_still = false;
    if (state != '\0')
        pass->refused = failed;
}

/* By the options a child that a thread forks before it stops is traced from its start. */
static void stop(pid_t thread, void *context)
{
    const unsigned long options =
        PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    struct pass *pass = context;
    int failed;

    if (is_frozen(thread))
        return;
    failed = ptrace(PTRACE_SEIZE, thread, NULL, options) == 0 ? 0 : errno;
    if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0)
        judge_other(pass, thread, failed);
    else if (failed == 0)
        pass->is_still = false;
    else
        judge_ours(pass, thread);
}

static struct pass stop_all(struct proctree *tree)
{
    struct pass pass = {.is_still = true};

    if (!proctree_each_thread(tree, false, stop, &pass))
        pass = (struct pass){.refused = ENOMEM};
    return pass;
}

/*
 * One look can miss a process:
 * 1. we look at our own children;
 * 2. a process deeper in the tree ends, and its child becomes ours;
 * 3. we look where that child was.
 * So two looks, and no process may have ended between them.
 */
bool freeze_tree(struct proctree *tree, int *refused)
{
    struct pass first = stop_all(tree);
    struct pass second;

    *refused = first.refused;
    if (!first.is_still)
        return false;
    second = stop_all(tree);
    *refused = second.refused;
    return second.is_still && second.n_dead == first.n_dead;
}

struct release {
    int64_t not_after_ms;
    size_t n; /* threads that were let go */
};

/* The signal that a thread was about to get when it stopped; 0: it stopped because we asked. */
static long pending_signal(const siginfo_t *info)
{
    return (info->si_code & 0xff) == SIGTRAP && info->si_code >> 8 > 0 ? 0 : info->si_signo;
}

static void let_go(pid_t thread, void *context)
{
    struct release *release = context;
    siginfo_t info;
    long number = 0;

    if (rlock_clock_ms() >= release->not_after_ms)
        return;
    if (ptrace(PTRACE_GETSIGINFO, thread, NULL, &info) == 0)
        number = pending_signal(&info);
    if (ptrace(PTRACE_DETACH, thread, NULL, number) == 0)
        release->n++;
}

void freeze_release_one(pid_t thread, int64_t not_after_ms)
{
    let_go(thread, &(struct release){.not_after_ms = not_after_ms});
}

/* Parents last: as long as a parent is frozen, its children stay where they were found. */
void freeze_release(struct proctree *tree, int64_t not_after_ms)
{
    struct release release = {.not_after_ms = not_after_ms};

    do {
        release.n = 0;
        proctree_each_thread(tree, true, let_go, &release);
    } while (release.n > 0); /* again: if somebody killed a parent, its children have moved */
}

void freeze_end(struct proctree *tree)
{
    int refused;
    int i;

    for (i = 0; i < END_ROUNDS && !freeze_tree(tree, &refused) && refused == 0; i++)
        poll(NULL, 0, END_ROUND_MS);
    freeze_release(tree, RLOCK_NEVER);
}
