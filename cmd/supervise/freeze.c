/* SPDX-License-Identifier: MIT */
/*
 * freeze: stop every thread of all descendants of this process, and let them run again.
 *
 * The guard freezes threads by ptrace(2) and not by SIGSTOP, because
 * - SIGCONT, which a shell sends for `fg`, does not wake a traced thread;
 * - a process that was stopped before the freeze is still stopped after the release;
 * - the kernel does not tell the parents in the tree that their children were stopped;
 * - if the tracer dies, the kernel kills the traced processes (PTRACE_O_EXITKILL);
 * - the kernel knows which threads are traced, so this file needs no list of them.
 *
 * A process that can't be traced can't be frozen: a process of another user, a process that forbids
 * it (PR_SET_DUMPABLE), a process under a debugger outside the tree. A debugger inside the tree,
 * such as the guard of another rlock, is frozen itself, and the threads that it has stopped stay
 * stopped.
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
#include <sys/wait.h>
#include <unistd.h>

#define WALKS_FAILED_MAX 100 /* freeze_release() ends after so many walks that were not complete */
#define WALK_PAUSE_MS 2      /* the pause after such a walk */
#define EMPTY_WALKS 3        /* the last walks before freeze_release() leaves a thread traced */

/* What one walk over all threads of the tree has found. */
struct pass {
    bool is_still; /* every thread is stopped or dead */
    int refused;   /* the errno for a thread that can't be stopped; 0: all can */
    size_t n_dead; /* how many threads are dead; more than before: a process has ended */
};

/*
 * A thread that has called vfork(2) sleeps in the kernel until its child's exec. If the child is
 * frozen, the thread can neither stop for ptrace(2) nor run, so it counts as frozen.
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

/* True if we trace the thread, and it is stopped: otherwise this ptrace(2) fails with ESRCH. */
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

/* Notes the state of a thread that we trace, and have told to stop in an earlier pass. */
static void note_traced(struct pass *pass, pid_t thread)
{
    if (!counts_as_dead(pass, proctree_state(thread)) && !waits_for_vfork(thread))
        pass->is_still = false;
}

/*
 * Notes the state of a thread that we can't trace. If another tracer has stopped the thread, and we
 * have frozen that tracer, the thread can't run, and counts as frozen.
 */
static void note_untraceable(struct pass *pass, pid_t thread, int failed)
{
    char state = proctree_state(thread);
    bool is_still = state == 't' || waits_for_vfork(thread);

    if (counts_as_dead(pass, state) || (is_still && is_frozen(proctree_tracer(thread))))
        return;
    pass->is_still = false;
    if (state != '\0')
        pass->refused = failed;
}

/*
 * Tell the thread to stop. With these options the kernel also lets us trace, and stops, each child
 * that the thread forks before it has stopped.
 */
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
        note_untraceable(pass, thread, failed);
    else if (failed == 0)
        pass->is_still = false;
    else
        note_traced(pass, thread);
}

static struct pass stop_all(struct proctree *tree)
{
    struct pass pass = {.is_still = true};

    if (!proctree_each_thread(tree, false, stop, &pass))
        pass = (struct pass){.refused = ENOMEM};
    return pass;
}

/*
 * One pass can miss a process:
 * 1. the pass reads the list of our own children;
 * 2. a process deeper in the tree ends, and its child becomes ours;
 * 3. the pass comes to where the dead process was, and does not find that child.
 * So there are two passes, and they count only if no process has ended between them.
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
    size_t n;     /* how many threads this walk has let go */
    bool is_late; /* this walk has met a stopped thread from not_after_ms on, and not let it go */
};

/*
 * The signal that stopped the thread, and that the thread is to get when it runs again. 0: the
 * thread stopped because of PTRACE_INTERRUPT.
 */
static long pending_signal(const siginfo_t *info)
{
    return (info->si_code & 0xff) == SIGTRAP && info->si_code >> 8 > 0 ? 0 : info->si_signo;
}

static void let_go(pid_t thread, void *context)
{
    struct release *release = context;
    siginfo_t info;
    long number = 0;

    if (rlock_clock_ms() >= release->not_after_ms) {
        release->is_late = release->is_late || is_frozen(thread);
        return;
    }
    if (ptrace(PTRACE_GETSIGINFO, thread, NULL, &info) == 0)
        number = pending_signal(&info);
    if (ptrace(PTRACE_DETACH, thread, NULL, number) == 0)
        release->n++;
}

bool freeze_release_one(pid_t thread, int64_t not_after_ms)
{
    struct release release = {.not_after_ms = not_after_ms};

    let_go(thread, &release);
    return !release.is_late;
}

/*
 * Releases children before their parents: when a released parent exits, its children become ours,
 * and a walk that looks for these children below that parent would miss them. If somebody has
 * killed a parent meanwhile, the walk has missed its children. So the last walk is one that has
 * released no thread.
 *
 * A walk may lack a descriptor or memory for a moment. The threads that the walk misses would stay
 * frozen for as long as the lease is renewed. So the last walk also has to be complete.
 *
 * A call that fails in a walk may make a stopped thread look like one that has ended. So this
 * function asks the kernel whether a thread is left, and then walks again. It doesn't walk until
 * none is left: a thread that has yet to stop can't be released. The guard does that later.
 */
bool freeze_release(struct proctree *tree, int64_t not_after_ms)
{
    struct release release;
    int n_failed = 0;
    int n_empty = 0;
    bool is_whole;

    do {
        release = (struct release){.not_after_ms = not_after_ms};
        is_whole = proctree_each_thread(tree, true, let_go, &release);
        if (!is_whole && ++n_failed < WALKS_FAILED_MAX)
            poll(NULL, 0, WALK_PAUSE_MS);
    } while (rlock_clock_ms() < not_after_ms &&
             (release.n > 0 || (!is_whole && n_failed < WALKS_FAILED_MAX) ||
              (is_whole && freeze_has_thread() && ++n_empty < EMPTY_WALKS)));
    return is_whole && release.n == 0 && !release.is_late;
}

/*
 * Asks the kernel, because a walk of /proc may lack a descriptor. waitid(2) fails with ECHILD if
 * there is no process to wait for. With __WCLONE those are the threads that we trace (since Linux
 * 4.7), and children whose end sends another signal than SIGCHLD, which we don't have. Without
 * WEXITED a dead thread does not count: it can't be released, and nothing can kill it.
 */
bool freeze_has_thread(void)
{
    const int options = WSTOPPED | WNOHANG | WNOWAIT | (int)__WCLONE;
    siginfo_t unused;

    return waitid(P_ALL, 0, &unused, options) == 0;
}
