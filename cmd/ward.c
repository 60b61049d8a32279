/* SPDX-License-Identifier: MIT */
/*
 * ward: inside the guard process: the command, its tree, their deadlines.
 *
 * The guard is the command's parent and the subreaper of all that comes of it.
 * It has no network, allocates nothing, and waits in one poll for its
 * children, its timer and the program's word. It ends the tree by itself when
 * the lease's end comes near or the program is gone, so that a program that
 * hangs, is stopped or is killed can't keep a lost lock alive.
 */
#include "ward.h"

#include "descriptors.h"
#include "timer.h"
#include "tree.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AGAIN_MS 10 /* for those that were forked while the others were killed */
#define HEARD_WITHIN_MS 1000

struct ward {
    const struct ward_plan *plan;
    int fd;
    int children; /* signalfd: SIGCHLD */
    int timer;
    pid_t command;
    int64_t started_ms;
    int status;
    bool has_ended; /* the command */
    bool childless;
    struct deadlines lease;
    int64_t kill_ms; /* of an end that is not the lease's; RLOCK_NEVER: none is wanted */
    bool is_termed;
    bool by_lease;
    bool is_alone; /* the program is gone */
};

static void tell(const struct ward *ward, struct ward_news news)
{
    (void)!send(ward->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- what must end ---- */

/* Everything below us; without /proc it is the command that is known. */
static void signal_tree(const struct ward *ward, int number)
{
    if (tree_signal(getpid(), number, NULL, 0) == 0 && !ward->has_ended)
        kill(ward->command, number);
}

static void term(struct ward *ward)
{
    if (ward->is_termed)
        return;
    ward->is_termed = true;
    signal_tree(ward, SIGTERM);
}

static void end_by(struct ward *ward, int64_t kill_ms)
{
    if (kill_ms < ward->kill_ms)
        ward->kill_ms = kill_ms;
    term(ward);
}

static bool must_drain(const struct ward *ward)
{
    return ward->plan->wait_all || ward->is_termed || ward->is_alone;
}

static bool is_done(const struct ward *ward)
{
    return ward->has_ended && (ward->childless || !must_drain(ward));
}

static void reap(struct ward *ward)
{
    struct signalfd_siginfo seen;
    int status;
    pid_t pid;

    while (read(ward->children, &seen, sizeof seen) > 0)
        continue;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != ward->command)
            continue; /* an orphan of the tree */
        ward->status = status;
        ward->has_ended = true;
    }
    ward->childless = pid < 0;
    /* what a signal ended did not leave the rest of its tree behind on purpose */
    if (ward->has_ended && WIFSIGNALED(ward->status) && !ward->childless && !ward->is_termed)
        end_by(ward, rlock_clock_ms() + ward->plan->grace_ms);
}

static void judge(struct ward *ward)
{
    int64_t now = rlock_clock_ms();

    if (now >= ward->lease.term_ms) {
        ward->by_lease = true;
        term(ward);
    }
    if (ward->is_alone || now >= ward->lease.kill_ms || now >= ward->kill_ms) {
        ward->is_termed = true;
        signal_tree(ward, SIGKILL);
    }
}

/* ---- what the program says ---- */

static void obey(struct ward *ward, const struct ward_word *word)
{
    switch (word->order) {
    case WARD_EXTEND:
        if (ward->by_lease)
            break; /* too late: the tree is ending */
        ward->lease = word->lease;
        tell(ward, (struct ward_news){.says = WARD_AGREES, .lease = word->lease});
        break;
    case WARD_SIGNAL:
        if (word->to_all_ms > ward->started_ms)
            break; /* the command was of the job by then, and has it */
        if (ward->has_ended)
            signal_tree(ward, word->signal);
        else
            kill(ward->command, word->signal); /* not reaped yet, so still its pid */
        break;
    case WARD_END:
        end_by(ward, word->lease.kill_ms);
        break;
    }
}

static void listen_to_program(struct ward *ward)
{
    struct ward_word word;
    ssize_t n;

    while ((n = recv(ward->fd, &word, sizeof word, MSG_DONTWAIT)) == (ssize_t)sizeof word)
        obey(ward, &word);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        ward->is_alone = true;
}

/* ---- waiting ---- */

static int64_t earliest(const struct ward *ward)
{
    int64_t at = ward->is_termed ? RLOCK_NEVER : ward->lease.term_ms;

    if (ward->lease.kill_ms < at)
        at = ward->lease.kill_ms;
    if (ward->kill_ms < at)
        at = ward->kill_ms;
    if (ward->is_alone || at <= rlock_clock_ms())
        at = rlock_clock_ms() + KILL_AGAIN_MS;
    return at;
}

static void wait_for_something(const struct ward *ward)
{
    struct pollfd watch[] = {{.fd = ward->is_alone ? -1 : ward->fd, .events = POLLIN},
                             {.fd = ward->children, .events = POLLIN},
                             {.fd = ward->timer, .events = POLLIN}};

    timer_set(ward->timer, earliest(ward));
    poll(watch, sizeof watch / sizeof watch[0], -1);
}

/* ---- the life of a guard ---- */

/* The program's last words, where it can't say them. */
static void speak(const struct ward *ward)
{
    struct pollfd program = {.fd = ward->fd, .events = POLLIN};

    if (ward->is_alone)
        report_say(ward->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = "rlock was killed, so the command was ended",
                                    .hint = "the lock is free when its ttl ends"});
    else if (ward->by_lease && poll(&program, 1, HEARD_WITHIN_MS) == 0)
        report_say(ward->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = "rlock was stopped for too long, so the command was "
                                           "ended before the lease"});
}

static void start(struct ward *ward)
{
    struct ward_news news = {.says = WARD_FAILED};
    sigset_t all;
    sigset_t child;

    prctl(PR_SET_NAME, "rlock-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ward->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    ward->timer = timer_open();
    if (ward->children < 0 || ward->timer < 0)
        news.failed = errno;
    else
        ward->command = spawn(&ward->plan->spawn, &news.forked, &news.failed);
    ward->started_ms = rlock_clock_ms();
    if (ward->command == 0) {
        tell(ward, news);
        _exit(0);
    }
    /* what the program opened is not the guard's: a copy would keep its connection alive */
    descriptors_keep((int[]){ward->fd, ward->plan->keep_fd, ward->children, ward->timer}, 4);
    /* out of the job: a KILL for the whole process group leaves someone to clean up */
    setpgid(0, 0);
}

_Noreturn void ward_run(const struct ward_plan *plan, int fd)
{
    struct ward ward = {.plan = plan, .fd = fd, .lease = plan->lease, .kill_ms = RLOCK_NEVER};

    start(&ward);
    while (!is_done(&ward)) {
        wait_for_something(&ward);
        listen_to_program(&ward);
        reap(&ward);
        if (!is_done(&ward))
            judge(&ward);
    }
    tell(&ward, (struct ward_news){.says = WARD_DONE,
                                   .status = ward.status,
                                   .ended_ms = rlock_clock_ms(),
                                   .by_lease = ward.by_lease});
    speak(&ward);
    _exit(0);
}
