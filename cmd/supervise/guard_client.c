/* SPDX-License-Identifier: MIT */
/*
 * guard_client: starts the guard, exchanges messages with it, and replaces it when it fails.
 *
 * The main process is a subreaper: if the guard dies, the kernel makes the main process the parent
 * of the command, and the main process kills the command. If the main process dies, the guard kills
 * the command. So the command can't run on if only one process of rlock dies or is stopped.
 */
#include "supervise/guard_client.h"

#include "process/child.h"
#include "process/fds.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS 5
#define AWAIT_MS 100 /* how often guard_client_await() looks at the clock */
#define END_TRIES 20 /* how often to ask for the guard's exit status, every RETRY_MS */

/*
 * Spares the children that don't belong to the command: helpers, and those that this process had
 * before it became rlock by exec. rlock sends them no signal. While the command runs, rlock doesn't
 * reap them either: a process of the command could get the pid, and would be spared.
 */
static int note_inherited_children(struct guard_client *guard)
{
    siginfo_t any;

    if (guard->tree.place == NULL) {
        int failed = proctree_reserve(&guard->tree);

        if (failed)
            return failed;
    }
    if (guard->tree.root_fd >= 0) /* the tree of a bound process */
        return 0;
    if (waitid(P_ALL, 0, &any, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0) {
        fds_close(&guard->tree.children);
        proctree_set_root(&guard->tree);
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
    if (plan->bound != 0 && (!proctree_spare(&guard->tree, getpid()) || guard->tree.is_short))
        return EMFILE;
    if (plan->bound == 0)
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
    return failed;
}

/* Ask the kernel how the guard ended, without reaping it. False: the guard has not ended. */
static bool has_ended(const struct guard_client *guard, siginfo_t *how)
{
    how->si_pid = 0;
    return waitid(P_PID, (id_t)guard->pid, how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           how->si_pid != 0;
}

/*
 * Receive the guard's next message. After an unexpected error of the socket the guard may still
 * live, so ask the kernel whether the guard has ended.
 */
static int receive(const struct guard_client *guard, struct guard_news *news)
{
    ssize_t n = recv(guard->fd, news, sizeof *news, MSG_DONTWAIT);
    siginfo_t how;

    /*
     * If the guard has ended with unread requests in its socket, the first recv(2) fails with
     * ECONNRESET, and the next one returns the guard's last message.
     */
    if (n < 0 && errno == ECONNRESET)
        n = recv(guard->fd, news, sizeof *news, MSG_DONTWAIT);
    if (n == (ssize_t)sizeof *news)
        return 1;
    if (n >= 0 || errno == ECONNRESET)
        return -1;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    poll(NULL, 0, RETRY_MS);
    return has_ended(guard, &how) ? -1 : 0;
}

int guard_client_hear(struct guard_client *guard, struct guard_news *news)
{
    int heard = guard->fd < 0 ? 0 : receive(guard, news);

    guard->is_gone = heard < 0;
    return heard;
}

int guard_client_await(struct guard_client *guard, int64_t deadline_ms)
{
    struct pollfd socket = {.fd = guard->fd, .events = POLLIN};
    struct guard_news news;
    bool is_late = false;
    int heard;

    while ((heard = guard_client_hear(guard, &news)) == 0) {
        is_late = rlock_clock_ms() >= deadline_ms;
        if (is_late)
            kill(guard->pid, SIGKILL); /* the messages that it has sent tell whether it had begun */
        poll(&socket, 1, AWAIT_MS);
    }
    if (heard < 0)
        return is_late ? ETIMEDOUT : ECHILD;
    return news.kind == GUARD_NEWS_FAILED ? news.error : 0;
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

    /* when a process ends, the kernel closes its descriptors before waitid(2) can see the end */
    while (!has_ended(guard, &how) && guard->is_gone && tries++ < END_TRIES)
        poll(NULL, 0, RETRY_MS);
    if (how.si_pid == 0)
        snprintf(text, room, "%s",
                 guard->is_gone           ? "has closed its connection to rlock, but still runs"
                 : is_stopped(guard->pid) ? "does not answer: it is stopped"
                                          : "has neither answered nor ended the command in time");
    else if (how.si_code == CLD_EXITED)
        snprintf(text, room, "ended with status %d", how.si_status);
    else
        snprintf(text, room, "was ended by signal %d (%s)", how.si_status,
                 strsignal(how.si_status));
}

/*
 * False: the socket is full, as the guard hangs, or there is no memory. The request may then be
 * dropped: supervise_state.c notices that the guard doesn't answer, and asks again.
 */
static bool send_request(struct guard_client *guard, struct guard_request request)
{
    request.number = ++guard->asked;
    return send(guard->fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* If the guard was killed before the start, this function forks a new one. */
int guard_client_start(struct guard_client *guard, const struct guard_plan *plan,
                       const struct guard_request *start)
{
    int failed = guard_client_prepare(guard, plan);

    if (!failed && !send_request(guard, *start)) {
        guard_client_reap(guard);
        failed = guard_client_prepare(guard, plan);
        if (!failed && !send_request(guard, *start))
            failed = errno;
    }
    return failed;
}

void guard_client_stand_by(struct guard_client *guard)
{
    if (guard->pid != 0 && guard->tree.root == 0)
        proctree_set_root(&guard->tree);
}

void guard_client_extend(struct guard_client *guard, struct deadlines lease)
{
    send_request(guard, (struct guard_request){.kind = GUARD_REQUEST_EXTEND, .lease = lease});
}

void guard_client_signal(struct guard_client *guard, int number, bool from_terminal)
{
    send_request(guard,
                 (struct guard_request){.kind = GUARD_REQUEST_SIGNAL,
                                        .signal = number,
                                        .terminal_read_ms = from_terminal ? rlock_clock_ms() : 0});
}

void guard_client_end(struct guard_client *guard, int64_t kill_ms)
{
    send_request(guard,
                 (struct guard_request){.kind = GUARD_REQUEST_END, .lease = {.kill_ms = kill_ms}});
}

void guard_client_dismiss(struct guard_client *guard)
{
    fds_close(&guard->fd);
}

void guard_client_reap(struct guard_client *guard)
{
    if (guard->pid == 0)
        return;
    guard_client_dismiss(guard);
    kill(guard->pid, SIGKILL); /* the guard isn't reaped yet, so no other process has its pid */
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->pid = 0;
}

static void note_end(pid_t pid, int status, void *context)
{
    struct guard_client *guard = context;

    (void)status;
    if (pid == guard->pid)
        guard->pid = 0; /* reaped: another process may get the pid */
}

void guard_client_replace(struct guard_client *guard, guard_client_on_survivor *on_survivor,
                          void *context)
{
    guard_client_stand_by(guard);
    guard_client_dismiss(guard);
    if (guard->tree.has_spared && guard->tree.root_fd < 0)
        /* Before KILL, spare the children that spared processes have started since: when such a
         * process ends, its children become children of rlock. */
        proctree_spare_children(&guard->tree, false);
    while (proctree_kill(&guard->tree, note_end, guard)) {
        int64_t pause_ms = proctree_kill_again_ms(&guard->tree) - rlock_clock_ms();

        if (guard->tree.refused != 0 || pause_ms > 0)
            on_survivor(context, guard->tree.refused);
        if (pause_ms > 0)
            poll(NULL, 0, (int)pause_ms);
    }
    guard_client_reap(guard);
}
