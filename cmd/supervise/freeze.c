/* SPDX-License-Identifier: MIT */
/*
 * freeze: hold still all that runs below this process.
 *
 * By ptrace(2) and not by SIGSTOP: who is held this way goes on by no SIGCONT,
 * such as the shell sends for `fg`; a process that was stopped before stays
 * so when it is let go; no parent in the tree is told that its child stopped;
 * and if the holder dies the kernel kills what it held. Nothing has to be
 * remembered, so there is no limit to their number.
 *
 * What can't be traced can't be frozen: a process with other rights than ours,
 * or that has forbidden it (PR_SET_DUMPABLE), or that a debugger outside the
 * tree has. One inside, another guard for example, is held with what it holds.
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

struct pass {
    bool is_still;
    int refused;
    size_t n_dead; /* zombies: who left them may have left others, too */
};

/*
 * Who waits for the exec of its vfork child, which we hold, can't stop, and
 * can't run either before that child does.
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

/* Granted only for a thread that we hold and that has left its processor. */
static bool is_held(pid_t thread)
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

/* One that was told to stop before. It may have ended instead, and wait to be reaped. */
static void judge_ours(struct pass *pass, pid_t thread)
{
    if (!counts_as_dead(pass, proctree_state(thread)) && !waits_for_vfork(thread))
        pass->is_still = false;
}

/* One that we can't hold. Who traces it may be held by us, and it be still. */
static void judge_other(struct pass *pass, pid_t thread, int failed)
{
    char state = proctree_state(thread);
    bool is_still = state == 't' || waits_for_vfork(thread);

    if (counts_as_dead(pass, state) || (is_still && is_held(proctree_tracer(thread))))
        return;
    pass->is_still = false;
    if (state != '\0')
        pass->refused = failed;
}

/* What a thread forks before it stops is held from its first moment. */
static void stop(pid_t thread, void *context)
{
    const unsigned long options =
        PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    struct pass *pass = context;
    int failed;

    if (is_held(thread))
        return;
    failed = ptrace(PTRACE_SEIZE, thread, NULL, options) == 0 ? 0 : errno;
    if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0)
        judge_other(pass, thread, failed);
    else if (failed == 0)
        pass->is_still = false;
    else
        judge_ours(pass, thread);
}

static struct pass look(struct proctree *tree)
{
    struct pass pass = {.is_still = true};

    if (!proctree_each_thread(tree, false, stop, &pass))
        pass = (struct pass){.refused = ENOMEM};
    return pass;
}

/*
 * What a process leaves when it ends comes to us, perhaps after we looked
 * there: so two looks, and nobody may have ended in between.
 */
bool freeze_tree(struct proctree *tree, int *refused)
{
    struct pass first = look(tree);
    struct pass second;

    *refused = first.refused;
    if (!first.is_still)
        return false;
    second = look(tree);
    *refused = second.refused;
    return second.is_still && second.n_dead == first.n_dead;
}

struct release {
    int64_t not_after_ms;
    size_t n;
};

/* The signal that a stopped thread was about to be given; 0: it stopped for us. */
static long met_signal(const siginfo_t *info)
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
        number = met_signal(&info);
    if (ptrace(PTRACE_DETACH, thread, NULL, number) == 0)
        release->n++;
}

void freeze_release_one(pid_t thread, int64_t not_after_ms)
{
    let_go(thread, &(struct release){.not_after_ms = not_after_ms});
}

/* Parents last: while they are held, nobody below changes its place. */
void freeze_release(struct proctree *tree, int64_t not_after_ms)
{
    struct release release = {.not_after_ms = not_after_ms};

    do {
        release.n = 0;
        proctree_each_thread(tree, true, let_go, &release);
    } while (release.n > 0); /* unless somebody killed a parent just then */
}

void freeze_end(struct proctree *tree)
{
    int refused;
    int i;

    for (i = 0; i < END_ROUNDS && !freeze_tree(tree, &refused) && refused == 0; i++)
        poll(NULL, 0, END_ROUND_MS);
    freeze_release(tree, RLOCK_NEVER);
}
