/* SPDX-License-Identifier: MIT */
/*
 * guard_client: the process above the command, as the program sees it.
 *
 * The program is the subreaper above the guard: when the guard dies its
 * children become the program's, which ends them. So no single process of
 * rlock's can die or be stopped and leave the tree running.
 */
#include "supervise/guard_client.h"

#include "process/child.h"

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
#define AGAIN_REFUSED_MS 100 /* while a process refuses KILL: it may still start others */
#define KILL_FAST_MS 2000    /* without a pause; what survives for longer takes its time */

/*
 * The program that called exec on rlock may have left children, which are none of the command's:
 * they are spared, and not reaped, so that no other process gets their pids.
 */
static int note_inherited_children(struct guard_client *guard)
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
    int fd;
    int failed;

    if (guard->pid != 0)
        return 0;
    failed = note_inherited_children(guard);
    if (failed)
        return failed;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard->is_gone = false;
    proctree_set_cgroup(&guard->tree, plan->cgroup);
    guard->pid = child_fork(&fd);
    if (guard->pid == 0)
        guard_run(plan, &guard->tree, fd);
    failed = guard->pid < 0 ? errno : 0;
    guard->fd = fd;
    if (failed)
        guard->pid = 0;
    if (guard->tree.root == 0)
        proctree_set_root(&guard->tree, getpid());
    return failed;
}

/* How the guard ended; it is not reaped. False: it has not ended. */
static bool has_ended(const struct guard_client *guard, siginfo_t *how)
{
    how->si_pid = 0;
    return waitid(P_PID, (id_t)guard->pid, how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           how->si_pid != 0;
}

/* One error of the socket is no sign that the guard is dead: its end is asked of the kernel. */
static int hear(const struct guard_client *guard, struct guard_news *news)
{
    ssize_t n = recv(guard->fd, news, sizeof *news, MSG_DONTWAIT);
    siginfo_t how;

    /*
     * A guard that ended before it read all of ours: ECONNRESET comes once, before its last news.
     */
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

    /* the kernel closes a dying process's descriptors a moment before it can be waited for */
    while (!has_ended(guard, &how) && guard->is_gone && tries++ < FATE_TRIES)
        poll(NULL, 0, HEAR_AGAIN_MS);
    if (how.si_pid == 0)
        snprintf(text, room, "%s",
                 guard->is_gone           ? "closed its socket, but has not ended"
                 : is_stopped(guard->pid) ? "does not answer: it is stopped"
                                          : "did not answer in time");
    else if (how.si_code == CLD_EXITED)
        snprintf(text, room, "ended with status %d", how.si_status);
    else
        snprintf(text, room, "was ended by signal %d (%s)", how.si_status,
                 strsignal(how.si_status));
}

/*
 * False: the socket is full, as the guard doesn't read. Then it doesn't agree to anything, either.
 */
static bool send_request(const struct guard_client *guard, struct guard_request request)
{
    return send(guard->fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* A guard that was killed while it waited for the start is replaced. */
int guard_client_start(struct guard_client *guard, const struct guard_plan *plan,
                       const struct guard_request *start)
{
    int failed = guard_client_prepare(guard, plan);

    if (failed || send_request(guard, *start))
        return failed;
    guard_client_reap(guard);
    failed = guard_client_prepare(guard, plan);
    if (!failed && !send_request(guard, *start))
        failed = errno;
    return failed;
}

void guard_client_extend(const struct guard_client *guard, struct deadlines lease)
{
    send_request(guard, (struct guard_request){.kind = GUARD_REQUEST_EXTEND, .lease = lease});
}

void guard_client_signal(const struct guard_client *guard, int number, bool from_terminal)
{
    send_request(guard,
                 (struct guard_request){.kind = GUARD_REQUEST_SIGNAL,
                                        .signal = number,
                                        .terminal_sent_ms = from_terminal ? rlock_clock_ms() : 0});
}

void guard_client_end(const struct guard_client *guard, int64_t kill_ms)
{
    send_request(guard,
                 (struct guard_request){.kind = GUARD_REQUEST_END, .lease = {.kill_ms = kill_ms}});
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
    kill(guard->pid, SIGKILL); /* its pid is its own: only we and note_end() reap it */
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->pid = 0;
}

static void note_end(pid_t pid, int status, void *context)
{
    struct guard_client *guard = context;

    (void)status;
    if (pid == guard->pid)
        guard->pid = 0; /* from now on the pid may be another process's */
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

    kill(guard->pid, SIGKILL); /* its pid: it was not reaped; without /proc the tree is unknown */
    guard_client_dismiss(guard);
    if (guard->tree.has_spared)
        /* now, before the processes that end leave us their children */
        proctree_spare_children(&guard->tree, false);
    while (proctree_kill(&guard->tree, at_once_ms(fast_ms), note_end, guard)) {
        bool is_slow = rlock_clock_ms() >= fast_ms;

        if (guard->tree.refused != 0 || is_slow)
            survives(context, guard->tree.refused);
        if (is_slow)
            poll(NULL, 0, guard->tree.refused != 0 ? AGAIN_REFUSED_MS : KILL_AGAIN_MS);
    }
    guard_client_reap(guard);
}
