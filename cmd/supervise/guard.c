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

struct ward {
    const struct ward_plan *plan;
    pid_t program;
    struct tree *tree;
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
    bool is_alone;     /* the program is gone */
    bool is_deaf;      /* the socket failed last time, and the program isn't gone */
    bool is_frozen;    /* or is being frozen */
    int64_t still_ms;  /* since when all of it is, as the program is told; 0: it isn't */
    bool is_in_doubt;  /* one of it has ended since it was looked at */
    int refused;       /* the errno of one that can't be frozen; 0: none */
    pid_t refused_pid; /* one that can't be ended, as was told; 0: none */
    bool refused_kill;
};

static void tell(const struct ward *ward, struct ward_news news)
{
    (void)!send(ward->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- who can't be ended ---- */

void ward_say_refused(const struct report *report, pid_t pid, const char *hint)
{
    char name[32];
    char why[128];

    bound_name(pid, name);
    snprintf(why, sizeof why, "pid %d (%s): %s", (int)pid, name, strerror(EPERM));
    report_say(report, REPORT_FAILURE,
               (struct message){.what = "can't be ended", .why = why, .hint = hint});
}

/* Once for each; and once more when it comes to KILL, as the program waits for no end then. */
static void tell_refused(struct ward *ward, bool was_kill)
{
    pid_t pid = ward->tree->refused;

    if (pid == 0 || (pid == ward->refused_pid && was_kill == ward->refused_kill))
        return;
    ward->refused_pid = pid;
    ward->refused_kill = was_kill;
    if (ward->is_alone)
        ward_say_refused(ward->plan->report, pid, "the lock is free when its ttl ends");
    else
        tell(ward, (struct ward_news){.says = WARD_REFUSED, .pid = pid, .was_kill = was_kill});
}

/* ---- what must end ---- */

/* Everything below us; without /proc it is the command that is known. */
static void signal_tree(const struct ward *ward, int number)
{
    if (tree_signal(ward->tree, number) == 0 && !ward->has_ended)
        kill(ward->command, number);
}

static void term(struct ward *ward)
{
    if (ward->is_termed)
        return;
    ward->is_termed = true;
    if (tree_term(ward->tree) == 0 && !ward->has_ended)
        kill(ward->command, SIGTERM);
    tell_refused(ward, false);
}

static void end_by(struct ward *ward, int64_t kill_ms)
{
    if (ward->is_frozen)
        kill_ms = 0; /* TERM would be no use to it */
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

/* A child of ours, the command or an orphan of its tree. */
static void note_end(pid_t pid, int status, void *context)
{
    struct ward *ward = context;

    ward->is_in_doubt = true;
    if (pid != ward->command)
        return;
    ward->status = status;
    ward->has_ended = true;
}

/*
 * A few at once: each wait for one of some thousand that were frozen makes the kernel look at all
 * of them, and to have waited for all of them would be too late to say that they are.
 */
static void reap(struct ward *ward)
{
    struct signalfd_siginfo seen;
    int n = 0;
    int status;
    pid_t pid;

    while (read(ward->children, &seen, sizeof seen) > 0)
        continue;
    for (pid = 1; pid > 0 && n < REAPED_AT_ONCE; n++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid <= 0)
            break;
        if (WIFSTOPPED(status)) {
            if (!ward->is_frozen) /* asked to before the release, and stopped after it */
                freeze_release_one(pid, ward->lease.term_ms);
            continue;
        }
        note_end(pid, status, ward);
    }
    ward->childless = pid < 0;
    ward->has_more = pid > 0;
    /* what a signal ended did not leave the rest of its tree behind on purpose */
    if (ward->has_ended && WIFSIGNALED(ward->status) && !ward->childless && !ward->is_termed)
        end_by(ward, rlock_clock_ms() + ward->grace_ms);
}

static void freeze(struct ward *ward)
{
    int refused;

    ward->is_frozen = true;
    if (ward->still_ms != 0 && !ward->is_in_doubt)
        return;
    if (!freeze_tree(ward->tree, &refused)) {
        if (refused != 0)
            ward->refused = refused;
        return;
    }
    ward->is_in_doubt = false;
    if (ward->still_ms != 0)
        return;
    if (rlock_clock_ms() >= ward->lease.kill_ms)
        return; /* too late to be believed: we may have been stopped meanwhile */
    ward->still_ms = rlock_clock_ms();
    tell(ward, (struct ward_news){.says = WARD_PAUSED, .still_ms = ward->still_ms});
}

/* The lease's end is near. What was to end anyway isn't frozen any more. */
static void lapse(struct ward *ward)
{
    if (ward->plan->pauses && (ward->is_frozen || !ward->is_termed)) {
        freeze(ward);
        return;
    }
    ward->by_lease = true;
    term(ward);
}

/* Nothing of a frozen tree runs, so no end of a lease can be too late for it. */
static bool is_overdue(const struct ward *ward)
{
    return ward->still_ms == 0 && rlock_clock_ms() >= ward->lease.kill_ms;
}

static void end_tree(struct ward *ward)
{
    ward->is_termed = true;
    if (ward->killed_ms == 0)
        ward->killed_ms = rlock_clock_ms();
    if (!ward->has_ended)
        kill(ward->command, SIGKILL); /* all that is known where there is no /proc */
    tree_kill(ward->tree, rlock_clock_ms() + KILL_AT_ONCE_MS, note_end, ward);
    tell_refused(ward, true);
}

static void judge(struct ward *ward)
{
    int64_t now = rlock_clock_ms();

    if (now >= ward->lease.term_ms) {
        lapse(ward);
    } else if (ward->is_frozen && !ward->is_termed) {
        freeze_release(ward->tree, ward->lease.term_ms);
        ward->is_frozen = false;
    }
    if (is_overdue(ward))
        ward->by_lease = true;
    if (ward->is_alone || is_overdue(ward) || now >= ward->kill_ms)
        end_tree(ward);
}

/* ---- what the program says ---- */

static void extend(struct ward *ward, struct deadlines lease)
{
    if (ward->by_lease)
        return; /* too late: the tree is ending */
    if (ward->still_ms != 0 && (ward->is_termed || rlock_clock_ms() >= lease.term_ms)) {
        tell(ward, (struct ward_news){.says = WARD_PAUSED, .still_ms = ward->still_ms});
        return;
    }
    ward->lease = lease;
    ward->still_ms = 0; /* it goes on soon, and once we agree the program counts with that */
    tell(ward, (struct ward_news){.says = WARD_AGREES, .lease = lease});
}

static bool asks_for_the_end(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

static void pass_on(struct ward *ward, const struct ward_word *word)
{
    if (ward->is_frozen && asks_for_the_end(word->signal)) {
        end_by(ward, 0); /* it can't answer, and may not run until it can */
        return;
    }
    if (word->to_all_ms > ward->started_ms)
        return; /* the command was of the job by then, and has it */
    if (ward->has_ended)
        signal_tree(ward, word->signal);
    else if (kill(ward->command, word->signal) != 0 && errno == EPERM) /* not reaped yet: its pid */
        ward->tree->refused = ward->command;
    if (asks_for_the_end(word->signal))
        tell_refused(ward, false);
}

static void obey(struct ward *ward, const struct ward_word *word)
{
    switch (word->order) {
    case WARD_START:
        break;
    case WARD_EXTEND:
        extend(ward, word->lease);
        break;
    case WARD_SIGNAL:
        pass_on(ward, word);
        break;
    case WARD_END:
        end_by(ward, word->lease.kill_ms);
        break;
    }
}

/*
 * A socket that fails once is no sign of the program's death, for which the tree would be killed:
 * as long as the program is our parent we listen again. What it has to say meanwhile is late, and
 * without word of a renewal the tree ends by the lease that we know.
 */
static void listen_to_program(struct ward *ward)
{
    struct ward_word word;
    ssize_t n;

    while ((n = recv(ward->fd, &word, sizeof word, MSG_DONTWAIT)) == (ssize_t)sizeof word)
        obey(ward, &word);
    ward->is_deaf = n < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNRESET;
    if (n == 0 || (n < 0 && errno == ECONNRESET) || (ward->is_deaf && getppid() != ward->program))
        ward->is_alone = true;
}

/* ---- waiting ---- */

static bool is_unsettled(const struct ward *ward)
{
    return ward->is_frozen && (ward->still_ms == 0 || ward->is_in_doubt);
}

static int64_t earliest(const struct ward *ward)
{
    int64_t at = ward->is_termed || ward->is_frozen ? RLOCK_NEVER : ward->lease.term_ms;

    if (ward->still_ms == 0 && ward->lease.kill_ms < at)
        at = ward->lease.kill_ms;
    if (ward->kill_ms < at)
        at = ward->kill_ms;
    if (ward->has_more)
        return 0;
    if (ward->killed_ms != 0 && rlock_clock_ms() < ward->killed_ms + KILL_FAST_MS)
        return 0;
    if (ward->is_alone || ward->is_deaf || at <= rlock_clock_ms() || is_unsettled(ward))
        at = rlock_clock_ms() + (ward->refused_kill ? AGAIN_REFUSED_MS : AGAIN_MS);
    return at;
}

static void wait_for_something(const struct ward *ward)
{
    struct pollfd watch[] = {
        {.fd = ward->is_alone || ward->is_deaf ? -1 : ward->fd, .events = POLLIN},
        {.fd = ward->children, .events = POLLIN},
        {.fd = ward->timer, .events = POLLIN}};

    int64_t at = earliest(ward);

    timer_set(ward->timer, at);
    poll(watch, sizeof watch / sizeof watch[0], at == 0 ? 0 : -1);
}

/* ---- the life of a guard ---- */

/* A process that is killed closes its descriptors a moment before it stops being our parent. */
static bool program_lives(const struct ward *ward)
{
    return (tree_flags(ward->program) & TREE_EXITING) == 0 && getppid() == ward->program;
}

/* The program's last words, where it can't say them. */
static void speak(const struct ward *ward)
{
    struct pollfd program = {.fd = ward->fd, .events = POLLIN};

    if (ward->is_alone && program_lives(ward))
        return; /* it closed the socket itself: it knows */
    if (ward->is_alone)
        report_say(ward->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = ward->refused_kill
                                               ? "rlock was killed while the command ran"
                                               : "rlock was killed, so the command was ended",
                                    .hint = "the lock is free when its ttl ends"});
    else if (ward->by_lease && poll(&program, 1, HEARD_WITHIN_MS) == 0)
        report_say(ward->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = "rlock was stopped for too long, or did not get to run, "
                                           "so the command was ended before the lease"});
}

/*
 * What the program opened is not the guard's: a copy would keep its connection
 * alive. What it was started with is the command's.
 */
static void settle(struct ward *ward)
{
    const struct ward_plan *plan = ward->plan;
    sigset_t all;
    sigset_t child;

    prctl(PR_SET_NAME, "rlock-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    descriptors_drop_ours((int[]){ward->fd, plan->keep_fd}, 2);
    tree_set_root(ward->tree, getpid());
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ward->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    ward->timer = timer_open();
    ward->failed = ward->children < 0 || ward->timer < 0 ? errno : 0;
    if (plan->keys == NULL ||
        !environment_make(&ward->environment, environ, plan->keys, plan->keeps_secrets))
        ward->failed = ENOMEM;
    if (plan->lock != NULL)
        rlock_forget_passwords(plan->lock);
    if (!plan->keeps_secrets)
        secret_is_forgotten();
}

static void wait_for_start(const struct ward *ward, struct ward_word *word)
{
    ssize_t n;

    while ((n = recv(ward->fd, word, sizeof *word, 0)) < 0 && getppid() == ward->program)
        if (errno != EINTR)
            poll(NULL, 0, AGAIN_MS);
    if (n != (ssize_t)sizeof *word)
        _exit(0);
}

static void start(struct ward *ward, const struct ward_word *word)
{
    const struct ward_plan *plan = ward->plan;
    struct ward_news news = {.says = WARD_FAILED, .failed = ward->failed};
    struct spawn_plan command = plan->spawn;

    ward->lease = word->lease;
    ward->grace_ms = word->grant.timing.grace_ms;
    command.not_after_ms = word->not_after_ms;
    if (!news.failed && !environment_grant(&ward->environment, &word->grant, plan->has_slot))
        news.failed = ENOMEM;
    command.envp = ward->environment.all;
    if (!news.failed)
        ward->command = spawn(&command, &news.forked, &news.failed);
    environment_forget(environ); /* of what was to be passed on */
    secret_is_forgotten();
    ward->started_ms = rlock_clock_ms();
    if (ward->command == 0) {
        tell(ward, news);
        _exit(0);
    }
    descriptors_keep(
        (int[]){ward->fd, plan->keep_fd, ward->children, ward->timer, ward->tree->children}, 5);
    /*
     * Out of the job: a KILL for the whole process group leaves someone to clean up. And out of
     * the session, or the group would have had a link to it in us, and with the command lose it:
     * where one of it is stopped, all of it gets HUP for that, see setpgid(2).
     */
    setsid();
}

/* To end takes time, and what the program does next is not to share a processor with that. */
static void wait_for_dismissal(const struct ward *ward)
{
    struct ward_word word;

    while (recv(ward->fd, &word, sizeof word, 0) > 0)
        continue;
}

_Noreturn void ward_run(const struct ward_plan *plan, struct tree *tree, int fd)
{
    struct ward ward = {
        .plan = plan, .program = getppid(), .tree = tree, .fd = fd, .kill_ms = RLOCK_NEVER};
    struct ward_word word;

    settle(&ward);
    wait_for_start(&ward, &word);
    start(&ward, &word);
    while (!is_done(&ward)) {
        wait_for_something(&ward);
        listen_to_program(&ward);
        reap(&ward);
        if (!is_done(&ward))
            judge(&ward);
    }
    if (ward.is_frozen)
        freeze_end(tree); /* what the command left behind on purpose */
    tell(&ward, (struct ward_news){.says = WARD_DONE,
                                   .status = ward.status,
                                   .still_ms = ward.still_ms ? ward.still_ms : rlock_clock_ms(),
                                   .by_lease = ward.by_lease,
                                   .is_alone = ward.is_alone,
                                   .refused = ward.refused});
    speak(&ward);
    wait_for_dismissal(&ward);
    _exit(0);
}
