/* SPDX-License-Identifier: MIT */
/*
 * guard_client: the process above the command, as the program sees it.
 *
 * The program is the subreaper above the guard: when the guard dies its
 * children become the program's, which ends them. So no single process of
 * rlock's can die or be stopped and leave the tree running.
 */
#include "supervise/guard_client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AT_ONCE_MS 20
#define KILL_AGAIN_MS 5
#define HEAR_AGAIN_MS 5
#define FATE_TRIES 20
#define AGAIN_REFUSED_MS 100 /* for one that we may not end: it may leave others that we may */
#define KILL_FAST_MS 2000    /* what lives after so long of KILL can't be ended, or not yet */

/*
 * Whoever called exec on us may have left us children of its own: none of ours to end. They are not
 * reaped, so that their numbers stay theirs.
 */
static int note_others(struct guard_client *guard)
{
    siginfo_t any;

    if (guard->tree.place == NULL) {
        int failed = proctree_reserve(&guard->tree);

        if (failed)
            return failed;
    }
    if (waitid(P_ALL, 0, &any, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0) {
        if (guard->tree.children >= 0)
            close(guard->tree.children);
        proctree_set_root(&guard->tree, getpid());
        if (!proctree_spare_children(&guard->tree, true))
            return ENOMEM;
    }
    return 0;
}

int guard_client_prepare(struct guard_client *guard, const struct guard_plan *plan)
{
    int pair[2];
    int failed;

    if (guard->pid != 0)
        return 0;
    failed = note_others(guard);
    if (failed)
        return failed;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    guard->tree.cgroup = plan->cgroup;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard->is_gone = false;
    guard->pid = fork();
    if (guard->pid == 0) {
        close(pair[0]);
        guard_run(plan, &guard->tree, pair[1]);
    }
    failed = guard->pid < 0 ? errno : 0;
    close(pair[1]);
    guard->fd = pair[0];
    if (failed) {
        guard->pid = 0;
        close(pair[0]);
    }
    if (guard->tree.root == 0)
        proctree_set_root(&guard->tree, getpid());
    return failed;
}

/* How the guard ended, which stays to be reaped. False: it hasn't. */
static bool has_ended(const struct guard_client *guard, siginfo_t *how)
{
    how->si_pid = 0;
    return waitid(P_PID, (id_t)guard->pid, how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           how->si_pid != 0;
}

/* A socket that fails once is no sign of the guard's death. */
static int hear(const struct guard_client *guard, struct guard_news *news)
{
    ssize_t n = recv(guard->fd, news, sizeof *news, MSG_DONTWAIT);
    siginfo_t how;

    /* A guard that ends with a word of ours unread resets the pair: told once, before its news. */
    if (n < 0 && errno == ECONNRESET)
        n = recv(guard->fd, news, sizeof *news, MSG_DONTWAIT);
    if (n == (ssize_t)sizeof *news)
        return 1;
    if (n >= 0 || errno == ECONNRESET)
        return -1;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    poll(NULL, 0, HEAR_AGAIN_MS);
    return has_ended(guard, &how) ? -1 : 0;
}

int guard_client_hear(struct guard_client *guard, struct guard_news *news)
{
    int heard = hear(guard, news);

    guard->is_gone = heard < 0;
    return heard;
}

static bool is_stopped(pid_t pid)
{
    char state = proctree_state(pid);

    return state == 'T' || state == 't';
}

void guard_client_fate(const struct guard_client *guard, char *text, size_t room)
{
    siginfo_t how;
    int tries = 0;

    /* a process closes its descriptors a moment before it has ended */
    while (!has_ended(guard, &how) && guard->is_gone && tries++ < FATE_TRIES)
        poll(NULL, 0, HEAR_AGAIN_MS);
    if (how.si_pid == 0)
        snprintf(text, room, "%s",
                 guard->is_gone           ? "can't be heard any more"
                 : is_stopped(guard->pid) ? "does not answer: it is stopped"
                                          : "did not answer in time");
    else if (how.si_code == CLD_EXITED)
        snprintf(text, room, "ended with status %d", how.si_status);
    else
        snprintf(text, room, "was ended by signal %d (%s)", how.si_status,
                 strsignal(how.si_status));
}

/* A guard that doesn't read can't be told: then it doesn't agree, either. */
static bool say(const struct guard_client *guard, struct guard_word word)
{
    return send(guard->fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* One that was killed while it waited is replaced. */
int guard_client_start(struct guard_client *guard, const struct guard_plan *plan,
                       const struct guard_word *word)
{
    int failed = guard_client_prepare(guard, plan);

    if (failed || say(guard, *word))
        return failed;
    guard_client_reap(guard);
    failed = guard_client_prepare(guard, plan);
    if (!failed && !say(guard, *word))
        failed = errno;
    return failed;
}

void guard_client_extend(const struct guard_client *guard, struct deadlines lease)
{
    say(guard, (struct guard_word){.order = GUARD_EXTEND, .lease = lease});
}

void guard_client_signal(const struct guard_client *guard, int number, bool from_terminal)
{
    say(guard, (struct guard_word){.order = GUARD_SIGNAL,
                                   .signal = number,
                                   .to_all_ms = from_terminal ? rlock_clock_ms() : 0});
}

void guard_client_end(const struct guard_client *guard, int64_t kill_ms)
{
    say(guard, (struct guard_word){.order = GUARD_END, .lease = {.kill_ms = kill_ms}});
}

void guard_client_dismiss(struct guard_client *guard)
{
    if (guard->fd >= 0)
        close(guard->fd);
    guard->fd = -1;
}

void guard_client_reap(struct guard_client *guard)
{
    if (guard->pid == 0)
        return;
    guard_client_dismiss(guard);
    kill(guard->pid, SIGKILL); /* nobody but this function and note_end() reaps it */
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->pid = 0;
}

static void note_end(pid_t pid, int status, void *context)
{
    struct guard_client *guard = context;

    (void)status;
    if (pid == guard->pid)
        guard->pid = 0; /* the number may be another's from now on */
}

static int64_t at_once_ms(int64_t fast_ms)
{
    int64_t at_ms = rlock_clock_ms() + KILL_AT_ONCE_MS;

    return at_ms < fast_ms ? at_ms : fast_ms;
}

void guard_client_replace(struct guard_client *guard, guard_client_survives *survives,
                          void *context)
{
    int64_t fast_ms = rlock_clock_ms() + KILL_FAST_MS;

    kill(guard->pid, SIGKILL); /* not reaped yet; where there is no /proc it is all we know */
    guard_client_dismiss(guard);
    if (guard->tree.has_spared)
        proctree_spare_children(&guard->tree, false); /* before they leave anything to us */
    while (proctree_kill(&guard->tree, at_once_ms(fast_ms), note_end, guard)) {
        bool is_slow = rlock_clock_ms() >= fast_ms;

        if (guard->tree.refused != 0 || is_slow)
            survives(context, guard->tree.refused);
        if (is_slow)
            poll(NULL, 0, guard->tree.refused != 0 ? AGAIN_REFUSED_MS : KILL_AGAIN_MS);
    }
    guard_client_reap(guard);
}
