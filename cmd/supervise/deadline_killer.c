/* SPDX-License-Identifier: MIT */
/*
 * deadline_killer: a process of its own that ends the bound process before the lease ends.
 *
 * `rlock acquire --bind-pid` leaves a renew daemon behind, which may be killed, or stopped for too
 * long. The daemon tells the deadline killer the lease's deadlines after each renewal, and the
 * killer acts by the last deadlines that it was told, whether the daemon lives or not. The killer
 * uses no network.
 *
 * The bound process is not the killer's child, so the kernel does not make the killer the parent of
 * the bound process's orphans. Therefore proctree.c remembers each process that it has once seen
 * below the bound process, and finds it again after its parent has ended.
 */
#include "supervise/deadline_killer.h"

#include "process/child.h"
#include "process/fds.h"
#include "process/timer.h"
#include "supervise/guard.h"

#include <errno.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEARD_WITHIN_MS 1000   /* how long report_why() waits for KILLER_END_BOUND */
#define LOOK_AGAIN_MS 20       /* between TERM and KILL: how often to look for new descendants */
#define GIVE_UP_MS 2000        /* how long after the first KILL to wait for the last process */
#define GIVE_UP_SHORT_MS 60000 /* the same while there is no descriptor to look for processes */
#define NO_TIMER_MS 100        /* without a timer: how often to look at the clock */

/* ---- binding, signalling and ending the bound process ---- */

static int open_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int signal_process(int fd, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

int bound_process_open(struct bound_process *bound, pid_t pid)
{
    *bound = (struct bound_process){.pid = pid, .fd = open_process(pid)};
    if (bound->fd < 0 || signal_process(bound->fd, 0) != 0)
        return errno;
    return bound_process_has_ended(bound) ? ESRCH : proctree_reserve(&bound->tree);
}

const char *bound_process_refusal(pid_t pid)
{
    if (pid == 1)
        return "all processes of this machine or container would end with process 1; start the "
               "work in a shell of its own";
    if (pid == getpid())
        return "it is this rlock, which exits soon; $$ in a shell is the pid of rlock if the shell "
               "runs rlock by exec";
    if ((proctree_flags(pid) & PROCTREE_KERNEL_THREAD) != 0)
        return "it is a thread of the kernel, which nobody can end";
    return NULL;
}

bool bound_process_has_ended(const struct bound_process *bound)
{
    struct pollfd process = {.fd = bound->fd, .events = POLLIN};

    return poll(&process, 1, 0) > 0;
}

void bound_process_signal(const struct bound_process *bound, int number)
{
    signal_process(bound->fd, number);
}

/*
 * The descendants get a signal before the bound process does. When the bound process has ended, the
 * kernel has given its children to another parent, and a walk finds only the descendants that an
 * earlier walk has seen.
 */
static void signal_descendants(struct bound_process *bound, int number, int64_t kill_ms)
{
    if (number == SIGTERM)
        proctree_term(&bound->tree, kill_ms);
    else
        proctree_kill(&bound->tree, NULL, NULL);
}

static void note_root(struct bound_process *bound, pid_t spared)
{
    proctree_set_root(&bound->tree, bound->pid);
    proctree_spare(&bound->tree, getpid());
    if (spared != 0)
        proctree_spare(&bound->tree, spared);
    /* if the bound process has ended, `tree` may have another process with its pid as the root */
    bound->is_noted = !bound->tree.is_short && !bound_process_has_ended(bound);
}

void bound_process_note(struct bound_process *bound, pid_t spared)
{
    if (!bound->is_noted)
        note_root(bound, spared);
    if (bound->is_noted)
        proctree_look(&bound->tree);
}

/*
 * If there is no descriptor free for a walk, wait for one until `kill_ms`: when the bound process
 * has ended by its TERM, its children would not be found any more.
 */
static void note_before_the_end(struct bound_process *bound, int64_t kill_ms, pid_t spared)
{
    bound_process_note(bound, spared);
    while ((!bound->is_noted || bound->tree.is_short) && !bound_process_has_ended(bound) &&
           rlock_clock_ms() < kill_ms) {
        poll(NULL, 0, LOOK_AGAIN_MS);
        bound_process_note(bound, spared);
    }
}

/* False: a process is left, or for lack of a descriptor the walk may have missed one. */
static bool have_all_ended(struct bound_process *bound)
{
    return proctree_look(&bound->tree) == 0 && !bound->tree.is_short &&
           bound_process_has_ended(bound);
}

/*
 * Counts from when KILL was sent, not from its deadline: this process may have been stopped, or the
 * machine suspended, until long after the deadline.
 */
static int64_t give_up_ms(const struct bound_process *bound)
{
    return bound->ending.kill_ms + (bound->tree.is_short ? GIVE_UP_SHORT_MS : GIVE_UP_MS);
}

/* Sends KILL to the bound process. Returns its pid if the kernel refuses that; else 0. */
static pid_t kill_process(const struct bound_process *bound)
{
    return signal_process(bound->fd, SIGKILL) != 0 && errno == EPERM ? bound->pid : 0;
}

pid_t bound_process_end(struct bound_process *bound, int64_t kill_ms, pid_t spared)
{
    int number = SIGTERM;
    pid_t refused = 0; /* the bound process, if the kernel refuses our KILL to it */

    note_before_the_end(bound, kill_ms, spared);
    if (!bound->is_noted) { /* its descendants can't be found, or not any more */
        if (bound_process_has_ended(bound)) {
            bound->ending.ended_ms = rlock_clock_ms();
        } else {
            bound->ending.kill_ms = rlock_clock_ms();
            refused = kill_process(bound);
        }
        return refused;
    }
    if (rlock_clock_ms() < kill_ms) { /* after the deadline for KILL, TERM would only delay KILL */
        bound->ending.term_ms = rlock_clock_ms();
        signal_descendants(bound, SIGTERM, kill_ms);
        signal_process(bound->fd, SIGTERM);
    }
    while (!have_all_ended(bound)) {
        if (number == SIGKILL && rlock_clock_ms() >= give_up_ms(bound))
            return refused != 0 ? refused : bound->tree.refused;
        if (rlock_clock_ms() >= kill_ms) {
            if (number != SIGKILL)
                bound->ending.kill_ms = rlock_clock_ms();
            number = SIGKILL;
            refused = kill_process(bound);
        }
        if (number != SIGKILL || bound->tree.is_short)
            poll(NULL, 0, LOOK_AGAIN_MS);
        signal_descendants(bound, number, kill_ms);
    }
    bound->ending.ended_ms = rlock_clock_ms();
    return 0;
}

/* ---- in the deadline killer's own process ---- */

/* What the starter, which is the renew daemon, tells the killer. */
enum killer_order { KILLER_SET, KILLER_END_BOUND, KILLER_STOP };

struct killer_message {
    enum killer_order order;
    struct deadlines deadlines; /* not used with KILLER_STOP */
};

struct killer {
    struct bound_process bound;
    struct deadlines deadlines;
    int starter_fd; /* the socket to the starter; -1: the starter has closed its end, or is dead */
    pid_t starter;
    bool is_told;    /* KILLER_END_BOUND came last: the starter reports the reason */
    bool is_stopped; /* KILLER_STOP came: the killer exits, and the bound process lives on */
    const struct report *report;
};

/* Reads all messages that have come, because only the last one counts. */
static void listen_to_starter(struct killer *killer)
{
    struct killer_message message;
    ssize_t n = 0;

    while (killer->starter_fd >= 0 && !killer->is_stopped &&
           (n = recv(killer->starter_fd, &message, sizeof message, MSG_DONTWAIT)) ==
               (ssize_t)sizeof message) {
        killer->is_stopped = message.order == KILLER_STOP;
        if (killer->is_stopped)
            return;
        killer->is_told = message.order == KILLER_END_BOUND;
        killer->deadlines = message.deadlines;
    }
    if (killer->starter_fd >= 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))) {
        close(killer->starter_fd);
        killer->starter_fd = -1;
    }
}

/*
 * The killer reports only after the end of the bound process, because a report may block. At the
 * same deadline the starter may end the bound process and report that, and the starter knows better
 * why there was no renewal. So the killer waits a moment for KILLER_END_BOUND, and does not report
 * if it comes.
 */
static void report_why(struct killer *killer, const char *outcome)
{
    struct pollfd starter = {.fd = killer->starter_fd, .events = POLLIN};
    const char *why = "the process that renews the lease is stopped, or got no processor time";
    struct message message = {.what = EVENT_LOST};
    char steps[ENDING_BYTES];
    char hint[128 + ENDING_BYTES];

    if (killer->starter_fd >= 0 && poll(&starter, 1, HEARD_WITHIN_MS) > 0)
        listen_to_starter(killer);
    if (killer->is_told)
        return;
    if (killer->starter_fd < 0)
        why = "the process that renews the lease was killed";
    ending_text(steps, &killer->bound.ending);
    snprintf(hint, sizeof hint, "process %d and its descendants %s: %s", (int)killer->bound.pid,
             outcome, steps);
    message.why = why;
    message.hint = hint;
    message_add(&message,
                fact_text("cause", killer->starter_fd < 0 ? "renewer-killed" : "renewer-stopped"));
    message_add(&message, fact_number("process", killer->bound.pid));
    ending_add_facts(&message, &killer->bound.ending);
    report_say(killer->report, REPORT_FAILURE, message);
}

static void end_bound(struct killer *killer)
{
    /* if the starter is dead, another process may have got its pid, and must not be spared */
    bool starter_lives = getppid() == killer->starter;
    pid_t refused = bound_process_end(&killer->bound, killer->deadlines.kill_ms,
                                      starter_lives ? killer->starter : 0);

    report_why(killer, killer->bound.ending.ended_ms != 0 ? "were ended"
                                                          : "were told to end, but not all did");
    if (refused != 0)
        guard_say_refused(killer->report, refused, "that process runs on without the lock");
}

static _Noreturn void be_killer(struct killer *killer, int keep_fd)
{
    int timer = timer_open();
    struct pollfd watch[] = {{.fd = killer->starter_fd, .events = POLLIN},
                             {.fd = timer, .events = POLLIN},
                             {.fd = killer->bound.fd, .events = POLLIN}};

    prctl(PR_SET_NAME, "rlock-deadline");
    fds_keep((int[]){killer->starter_fd, timer, killer->bound.fd, keep_fd}, 4);
    for (;;) {
        listen_to_starter(killer);
        if (killer->is_stopped || bound_process_has_ended(&killer->bound))
            _exit(0);
        if (rlock_clock_ms() >= killer->deadlines.term_ms) {
            end_bound(killer);
            _exit(0);
        }
        timer_set(timer, killer->deadlines.term_ms);
        watch[0].fd = killer->starter_fd;
        poll(watch, sizeof watch / sizeof watch[0], timer < 0 ? NO_TIMER_MS : -1);
    }
}

/* ---- in the process that has started the deadline killer ---- */

int deadline_killer_start(struct deadline_killer *killer, const struct bound_process *bound,
                          struct deadlines deadlines, int keep_fd, const struct report *report)
{
    struct killer child = {
        .bound = *bound, .deadlines = deadlines, .starter = getpid(), .report = report};
    int fd;
    pid_t pid = child_fork(&fd);
    int failed = errno;

    if (pid == 0) {
        child.starter_fd = fd;
        be_killer(&child, keep_fd);
    }
    *killer = (struct deadline_killer){.pid = pid > 0 ? pid : 0, .fd = fd};
    return pid < 0 ? failed : 0;
}

static bool tell(const struct deadline_killer *killer, struct killer_message message)
{
    return killer->fd >= 0 && send(killer->fd, &message, sizeof message,
                                   MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof message;
}

bool deadline_killer_set(const struct deadline_killer *killer, struct deadlines deadlines)
{
    return tell(killer, (struct killer_message){KILLER_SET, deadlines});
}

bool deadline_killer_end_bound(const struct deadline_killer *killer, struct deadlines deadlines)
{
    return tell(killer, (struct killer_message){KILLER_END_BOUND, deadlines});
}

void deadline_killer_stop(struct deadline_killer *killer)
{
    tell(killer, (struct killer_message){.order = KILLER_STOP});
    if (killer->fd >= 0)
        close(killer->fd);
    killer->fd = -1;
}
