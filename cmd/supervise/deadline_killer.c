/* SPDX-License-Identifier: MIT */
/*
 * deadline_killer: a process of its own that ends the bound process before the lease's end.
 *
 * It has no network, and hears only until when the lease lasts. So the end of
 * the lease is kept also where the process that renews it was killed, or was
 * stopped for too long.
 */
#include "supervise/deadline_killer.h"

#include "process/fds.h"
#include "process/timer.h"

#include <errno.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEARD_WITHIN_MS 1000
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

struct deadline_killer_word {
    bool is_over; /* nothing is to be ended any more */
    struct deadline_killer_times times;
};

/* All that was said meanwhile, before acting on what was said earlier. */
static bool listen_to_keeper(int *fd, struct deadline_killer_times *times)
{
    struct deadline_killer_word word;
    ssize_t n;

    while (*fd >= 0 && (n = recv(*fd, &word, sizeof word, MSG_DONTWAIT)) == (ssize_t)sizeof word) {
        if (word.is_over)
            return false;
        *times = word.times;
    }
    if (*fd >= 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))) {
        close(*fd);
        *fd = -1;
    }
    return true;
}

/*
 * Only now, as to say something may take its time. The renewer may have come to the same end at the
 * same time, and then tells more of it than we know.
 */
static void say_why(const struct bound *bound, const struct report *report, int *fd,
                    struct deadline_killer_times *times)
{
    struct pollfd keeper = {.fd = *fd, .events = POLLIN};
    const char *why = "the process that renews its lease is stopped, or did not get to run";
    char hint[128];

    if (*fd >= 0 && poll(&keeper, 1, HEARD_WITHIN_MS) > 0)
        listen_to_keeper(fd, times);
    if (times->is_told)
        return;
    if (*fd < 0)
        why = "the process that renews its lease was killed";
    snprintf(hint, sizeof hint, "process %d and all below it were ended", (int)bound->pid);
    report_say(report, REPORT_FAILURE, (struct message){.what = "lost", .why = why, .hint = hint});
}

static _Noreturn void be_leash(struct bound *bound, struct deadline_killer_times times, int keep_fd,
                               int fd, const struct report *report)
{
    int timer = timer_open();
    struct pollfd watch[] = {{.fd = fd, .events = POLLIN},
                             {.fd = timer, .events = POLLIN},
                             {.fd = bound->fd, .events = POLLIN}};

    prctl(PR_SET_NAME, "rlock-leash");
    fds_keep((int[]){fd, timer, bound->fd, keep_fd}, 4);
    while (listen_to_keeper(&fd, &times)) {
        if (bound_has_ended(bound))
            break;
        if (rlock_clock_ms() >= times.term_ms) {
            bound_end(bound, times.kill_ms);
            say_why(bound, report, &fd, &times);
            break;
        }
        timer_set(timer, times.term_ms);
        watch[0].fd = fd;
        poll(watch, sizeof watch / sizeof watch[0], timer < 0 ? 100 : -1);
    }
    _exit(0);
}

int deadline_killer_start(struct deadline_killer *killer, const struct bound *bound,
                          struct deadline_killer_times times, int keep_fd,
                          const struct report *report)
{
    struct bound mine = *bound;
    int pair[2];
    int failed;

    *killer = (struct deadline_killer){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    mine.renew_daemon = getpid();
    killer->pid = fork();
    if (killer->pid == 0) {
        close(pair[0]);
        be_leash(&mine, times, keep_fd, pair[1], report);
    }
    close(pair[1]);
    killer->fd = pair[0];
    if (killer->pid > 0)
        return 0;
    failed = errno;
    close(killer->fd);
    *killer = (struct deadline_killer){.fd = -1};
    return failed;
}

static bool say(const struct deadline_killer *killer, struct deadline_killer_word word)
{
    return killer->fd >= 0 &&
           send(killer->fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof word;
}

bool deadline_killer_set(const struct deadline_killer *killer, struct deadline_killer_times times)
{
    return say(killer, (struct deadline_killer_word){.times = times});
}

void deadline_killer_drop(struct deadline_killer *killer)
{
    say(killer, (struct deadline_killer_word){.is_over = true});
    if (killer->fd >= 0)
        close(killer->fd);
    killer->fd = -1;
}
