/* SPDX-License-Identifier: MIT */
/*
 * guard: inside the guard process: the command, its tree, their deadlines.
 *
 * The guard is the command's parent and the subreaper of all that comes of it.
 * It has no network, and from the start of the command on allocates nothing
 * and waits in one poll for its children, its timer and the program's word. It
 * ends the tree by itself when the lease's end comes near or the program is
 * gone, so that a program that hangs, is stopped or is killed can't keep a lost
 * lock alive.
 *
 * Where the tree is to be frozen instead, that has to be done and checked by
 * the time of KILL, else it is killed after all. What is frozen never runs
 * again without a lease: whoever wants its end, it ends by KILL.
 */
#include "supervise/guard.h"

#include "process/fds.h"
#include "process/secret.h"
#include "process/timer.h"
#include "supervise/bound.h"
#include "supervise/freeze.h"

#include <errno.h>
#include <poll.h>
#include <rlock_admin.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define REAPED_AT_ONCE 64
#define AGAIN_MS 5           /* for those that were forked while the others were frozen */
#define AGAIN_REFUSED_MS 100 /* for one that we may not end: it may leave others that we may */
#define KILL_AT_ONCE_MS 20   /* without a look at what the program says */
#define KILL_FAST_MS 2000    /* what lives after so long of KILL can't be ended, or not yet */
#define HEARD_WITHIN_MS 1000

struct guard {
    const struct guard_plan *plan;
    pid_t program;
    struct proctree *tree;
    int fd;
    int children; /* signalfd: SIGCHLD */
    int timer;
    int failed;                     /* the errno of what it can't do without; 0: none */
    struct environment environment; /* the command's */
    pid_t command;
    int64_t started_ms;
    int status;
    bool has_ended; /* the command */
    bool childless;
    bool has_more; /* of them there is news that was not yet looked at */
    struct deadlines lease;
    int64_t grace_ms;
    int64_t kill_ms;   /* of an end that is not the lease's; RLOCK_NEVER: none is wanted */
    int64_t killed_ms; /* since when; 0: it isn't */
    bool is_termed;
    bool by_lease;
    bool is_alone;           /* the program is gone */
    bool is_deaf;            /* the socket failed last time, and the program isn't gone */
    bool is_frozen;          /* or is being frozen */
    int64_t frozen_since_ms; /* since when all of it is, as the program is told; 0: it isn't */
    bool is_in_doubt;        /* one of it has ended since it was looked at */
    int refused;             /* the errno of one that can't be frozen; 0: none */
    pid_t refused_pid;       /* one that can't be ended, as was told; 0: none */
    bool refused_kill;
};

static void tell(const struct guard *guard, struct guard_news news)
{
    (void)!send(guard->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- who can't be ended ---- */

void guard_say_refused(const struct report *report, pid_t pid, const char *hint)
{
    char name[32];
    char why[128];

    bound_name(pid, name);
    snprintf(why, sizeof why, "pid %d (%s): %s", (int)pid, name, strerror(EPERM));
    report_say(report, REPORT_FAILURE,
               (struct message){.what = "can't be ended", .why = why, .hint = hint});
}

/* Once for each; and once more when it comes to KILL, as the program waits for no end then. */
static void tell_refused(struct guard *guard, bool was_kill)
{
    pid_t pid = guard->tree->refused;

    if (pid == 0 || (pid == guard->refused_pid && was_kill == guard->refused_kill))
        return;
    guard->refused_pid = pid;
    guard->refused_kill = was_kill;
    if (guard->is_alone)
        guard_say_refused(guard->plan->report, pid, "the lock is free when its ttl ends");
    else
        tell(guard, (struct guard_news){.says = GUARD_REFUSED, .pid = pid, .was_kill = was_kill});
}

/* ---- what must end ---- */

/* Everything below us; without /proc it is the command that is known. */
static void signal_tree(const struct guard *guard, int number)
{
    if (proctree_signal(guard->tree, number) == 0 && !guard->has_ended)
        kill(guard->command, number);
}

static void term(struct guard *guard)
{
    if (guard->is_termed)
        return;
    guard->is_termed = true;
    if (proctree_term(guard->tree) == 0 && !guard->has_ended)
        kill(guard->command, SIGTERM);
    tell_refused(guard, false);
}

static void end_by(struct guard *guard, int64_t kill_ms)
{
    if (guard->is_frozen)
        kill_ms = 0; /* TERM would be no use to it */
    if (kill_ms < guard->kill_ms)
        guard->kill_ms = kill_ms;
    term(guard);
}

static bool must_drain(const struct guard *guard)
{
    return guard->plan->wait_all || guard->is_termed || guard->is_alone;
}

static bool is_done(const struct guard *guard)
{
    return guard->has_ended && (guard->childless || !must_drain(guard));
}

/* A child of ours, the command or an orphan of its tree. */
static void note_end(pid_t pid, int status, void *context)
{
    struct guard *guard = context;

    guard->is_in_doubt = true;
    if (pid != guard->command)
        return;
    guard->status = status;
    guard->has_ended = true;
}

/*
 * A few at once: each wait for one of some thousand that were frozen makes the kernel look at all
 * of them, and to have waited for all of them would be too late to say that they are.
 */
static void reap(struct guard *guard)
{
    struct signalfd_siginfo seen;
    int n = 0;
    int status;
    pid_t pid;

    while (read(guard->children, &seen, sizeof seen) > 0)
        continue;
    for (pid = 1; pid > 0 && n < REAPED_AT_ONCE; n++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid <= 0)
            break;
        if (WIFSTOPPED(status)) {
            if (!guard->is_frozen) /* asked to before the release, and stopped after it */
                freeze_release_one(pid, guard->lease.term_ms);
            continue;
        }
        note_end(pid, status, guard);
    }
    guard->childless = pid < 0;
    guard->has_more = pid > 0;
    /* what a signal ended did not leave the rest of its tree behind on purpose */
    if (guard->has_ended && WIFSIGNALED(guard->status) && !guard->childless && !guard->is_termed)
        end_by(guard, rlock_clock_ms() + guard->grace_ms);
}

static void freeze(struct guard *guard)
{
    int refused;

    guard->is_frozen = true;
    if (guard->frozen_since_ms != 0 && !guard->is_in_doubt)
        return;
    if (!freeze_tree(guard->tree, &refused)) {
        if (refused != 0)
            guard->refused = refused;
        return;
    }
    guard->is_in_doubt = false;
    if (guard->frozen_since_ms != 0)
        return;
    if (rlock_clock_ms() >= guard->lease.kill_ms)
        return; /* too late to be believed: we may have been stopped meanwhile */
    guard->frozen_since_ms = rlock_clock_ms();
    tell(guard,
         (struct guard_news){.says = GUARD_PAUSED, .frozen_since_ms = guard->frozen_since_ms});
}

/* The lease's end is near. What was to end anyway isn't frozen any more. */
static void lapse(struct guard *guard)
{
    if (guard->plan->pauses && (guard->is_frozen || !guard->is_termed)) {
        freeze(guard);
        return;
    }
    guard->by_lease = true;
    term(guard);
}

/* Nothing of a frozen tree runs, so no end of a lease can be too late for it. */
static bool is_overdue(const struct guard *guard)
{
    return guard->frozen_since_ms == 0 && rlock_clock_ms() >= guard->lease.kill_ms;
}

static void end_tree(struct guard *guard)
{
    guard->is_termed = true;
    if (guard->killed_ms == 0)
        guard->killed_ms = rlock_clock_ms();
    if (!guard->has_ended)
        kill(guard->command, SIGKILL); /* all that is known where there is no /proc */
    proctree_kill(guard->tree, rlock_clock_ms() + KILL_AT_ONCE_MS, note_end, guard);
    tell_refused(guard, true);
}

static void judge(struct guard *guard)
{
    int64_t now = rlock_clock_ms();

    if (now >= guard->lease.term_ms) {
        lapse(guard);
    } else if (guard->is_frozen && !guard->is_termed) {
        freeze_release(guard->tree, guard->lease.term_ms);
        guard->is_frozen = false;
    }
    if (is_overdue(guard))
        guard->by_lease = true;
    if (guard->is_alone || is_overdue(guard) || now >= guard->kill_ms)
        end_tree(guard);
}

/* ---- what the program says ---- */

static void extend(struct guard *guard, struct deadlines lease)
{
    if (guard->by_lease)
        return; /* too late: the tree is ending */
    if (guard->frozen_since_ms != 0 && (guard->is_termed || rlock_clock_ms() >= lease.term_ms)) {
        tell(guard,
             (struct guard_news){.says = GUARD_PAUSED, .frozen_since_ms = guard->frozen_since_ms});
        return;
    }
    guard->lease = lease;
    guard->frozen_since_ms =
        0; /* it goes on soon, and once we agree the program counts with that */
    tell(guard, (struct guard_news){.says = GUARD_AGREES, .lease = lease});
}

static bool asks_for_the_end(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

static void pass_on(struct guard *guard, const struct guard_word *word)
{
    if (guard->is_frozen && asks_for_the_end(word->signal)) {
        end_by(guard, 0); /* it can't answer, and may not run until it can */
        return;
    }
    if (word->to_all_ms > guard->started_ms)
        return; /* the command was of the job by then, and has it */
    if (guard->has_ended)
        signal_tree(guard, word->signal);
    else if (kill(guard->command, word->signal) != 0 &&
             errno == EPERM) /* not reaped yet: its pid */
        guard->tree->refused = guard->command;
    if (asks_for_the_end(word->signal))
        tell_refused(guard, false);
}

static void obey(struct guard *guard, const struct guard_word *word)
{
    switch (word->order) {
    case GUARD_START:
        break;
    case GUARD_EXTEND:
        extend(guard, word->lease);
        break;
    case GUARD_SIGNAL:
        pass_on(guard, word);
        break;
    case GUARD_END:
        end_by(guard, word->lease.kill_ms);
        break;
    }
}

/*
 * A socket that fails once is no sign of the program's death, for which the tree would be killed:
 * as long as the program is our parent we listen again. What it has to say meanwhile is late, and
 * without word of a renewal the tree ends by the lease that we know.
 */
static void listen_to_program(struct guard *guard)
{
    struct guard_word word;
    ssize_t n;

    while ((n = recv(guard->fd, &word, sizeof word, MSG_DONTWAIT)) == (ssize_t)sizeof word)
        obey(guard, &word);
    guard->is_deaf = n < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNRESET;
    if (n == 0 || (n < 0 && errno == ECONNRESET) || (guard->is_deaf && getppid() != guard->program))
        guard->is_alone = true;
}

/* ---- waiting ---- */

static bool is_unsettled(const struct guard *guard)
{
    return guard->is_frozen && (guard->frozen_since_ms == 0 || guard->is_in_doubt);
}

static int64_t earliest(const struct guard *guard)
{
    int64_t at = guard->is_termed || guard->is_frozen ? RLOCK_NEVER : guard->lease.term_ms;

    if (guard->frozen_since_ms == 0 && guard->lease.kill_ms < at)
        at = guard->lease.kill_ms;
    if (guard->kill_ms < at)
        at = guard->kill_ms;
    if (guard->has_more)
        return 0;
    if (guard->killed_ms != 0 && rlock_clock_ms() < guard->killed_ms + KILL_FAST_MS)
        return 0;
    if (guard->is_alone || guard->is_deaf || at <= rlock_clock_ms() || is_unsettled(guard))
        at = rlock_clock_ms() + (guard->refused_kill ? AGAIN_REFUSED_MS : AGAIN_MS);
    return at;
}

static void wait_for_something(const struct guard *guard)
{
    struct pollfd watch[] = {
        {.fd = guard->is_alone || guard->is_deaf ? -1 : guard->fd, .events = POLLIN},
        {.fd = guard->children, .events = POLLIN},
        {.fd = guard->timer, .events = POLLIN}};

    int64_t at = earliest(guard);

    timer_set(guard->timer, at);
    poll(watch, sizeof watch / sizeof watch[0], at == 0 ? 0 : -1);
}

/* ---- the life of a guard ---- */

/* A process that is killed closes its descriptors a moment before it stops being our parent. */
static bool program_lives(const struct guard *guard)
{
    return (proctree_flags(guard->program) & PROCTREE_EXITING) == 0 && getppid() == guard->program;
}

/* The program's last words, where it can't say them. */
static void speak(const struct guard *guard)
{
    struct pollfd program = {.fd = guard->fd, .events = POLLIN};

    if (guard->is_alone && program_lives(guard))
        return; /* it closed the socket itself: it knows */
    if (guard->is_alone)
        report_say(guard->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = guard->refused_kill
                                               ? "rlock was killed while the command ran"
                                               : "rlock was killed, so the command was ended",
                                    .hint = "the lock is free when its ttl ends"});
    else if (guard->by_lease && poll(&program, 1, HEARD_WITHIN_MS) == 0)
        report_say(guard->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = "rlock was stopped for too long, or did not get to run, "
                                           "so the command was ended before the lease"});
}

/*
 * What the program opened is not the guard's: a copy would keep its connection
 * alive. What it was started with is the command's.
 */
static void settle(struct guard *guard)
{
    const struct guard_plan *plan = guard->plan;
    sigset_t all;
    sigset_t child;

    prctl(PR_SET_NAME, "rlock-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    fds_drop_ours((int[]){guard->fd, plan->keep_fd}, 2);
    proctree_set_root(guard->tree, getpid());
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    guard->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    guard->timer = timer_open();
    guard->failed = guard->children < 0 || guard->timer < 0 ? errno : 0;
    if (plan->keys == NULL ||
        !environment_make(&guard->environment, environ, plan->keys, plan->keeps_secrets))
        guard->failed = ENOMEM;
    if (plan->lock != NULL)
        rlock_forget_passwords(plan->lock);
    if (!plan->keeps_secrets)
        secret_is_forgotten();
}

static void wait_for_start(const struct guard *guard, struct guard_word *word)
{
    ssize_t n;

    while ((n = recv(guard->fd, word, sizeof *word, 0)) < 0 && getppid() == guard->program)
        if (errno != EINTR)
            poll(NULL, 0, AGAIN_MS);
    if (n != (ssize_t)sizeof *word)
        _exit(0);
}

static void start(struct guard *guard, const struct guard_word *word)
{
    const struct guard_plan *plan = guard->plan;
    struct guard_news news = {.says = GUARD_FAILED, .failed = guard->failed};
    struct spawn_plan command = plan->spawn;

    guard->lease = word->lease;
    guard->grace_ms = word->grant.timing.grace_ms;
    command.not_after_ms = word->not_after_ms;
    if (!news.failed && !environment_grant(&guard->environment, &word->grant, plan->has_slot))
        news.failed = ENOMEM;
    command.envp = guard->environment.all;
    if (!news.failed)
        guard->command = spawn(&command, &news.forked, &news.failed);
    environment_forget(environ); /* of what was to be passed on */
    secret_is_forgotten();
    guard->started_ms = rlock_clock_ms();
    if (guard->command == 0) {
        tell(guard, news);
        _exit(0);
    }
    fds_keep(
        (int[]){guard->fd, plan->keep_fd, guard->children, guard->timer, guard->tree->children}, 5);
    /*
     * Out of the job: a KILL for the whole process group leaves someone to clean up. And out of
     * the session, or the group would have had a link to it in us, and with the command lose it:
     * where one of it is stopped, all of it gets HUP for that, see setpgid(2).
     */
    setsid();
}

/* To end takes time, and what the program does next is not to share a processor with that. */
static void wait_for_dismissal(const struct guard *guard)
{
    struct guard_word word;

    while (recv(guard->fd, &word, sizeof word, 0) > 0)
        continue;
}

_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd)
{
    struct guard guard = {
        .plan = plan, .program = getppid(), .tree = tree, .fd = fd, .kill_ms = RLOCK_NEVER};
    struct guard_word word;

    settle(&guard);
    wait_for_start(&guard, &word);
    start(&guard, &word);
    while (!is_done(&guard)) {
        wait_for_something(&guard);
        listen_to_program(&guard);
        reap(&guard);
        if (!is_done(&guard))
            judge(&guard);
    }
    if (guard.is_frozen)
        freeze_end(tree); /* what the command left behind on purpose */
    tell(&guard,
         (struct guard_news){.says = GUARD_DONE,
                             .status = guard.status,
                             .frozen_since_ms =
                                 guard.frozen_since_ms ? guard.frozen_since_ms : rlock_clock_ms(),
                             .by_lease = guard.by_lease,
                             .is_alone = guard.is_alone,
                             .refused = guard.refused});
    speak(&guard);
    wait_for_dismissal(&guard);
    _exit(0);
}
