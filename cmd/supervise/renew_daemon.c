/* SPDX-License-Identifier: MIT */
/*
 * renew_daemon: a process that stays behind, and renews a lease until another process ends.
 *
 * The program that was granted the lease forks it, tells the token to whoever
 * asked for it, and leaves the lease to it with one word. Without that word
 * nobody knows the token: the lease is given back.
 *
 * It hears of the end of the process, of what the renewals say, and of the
 * deadline killer, which ends the process in time where this one is dead or stopped. A
 * lease that was released by its token from elsewhere is no lost one: the
 * release left word of it on the server, and the renewal finds that.
 */
#include "supervise/renew_daemon.h"

#include "process/fds.h"
#include "process/timer.h"
#include "supervise/deadline_killer.h"
#include "supervise/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20
#define RELEASE_MS 10000 /* the longest a release is tried: nobody waits for it */

/* From the program to the renew daemon; the other way it is an errno. */
enum renew_daemon_word { RENEW_DAEMON_BEGIN, RENEW_DAEMON_CANCEL };

struct renewing {
    const struct session *session;
    struct local *local; /* of that session */
    const struct rlock_grant *grant;
    struct report report;
    const struct renew_daemon_log *log;
    struct bound_process bound;
    struct deadline_killer killer;
    int events; /* of the renewals; -1: there are none */
    int timer;
    int64_t expires_ms;      /* of the lease */
    int64_t killer_again_ms; /* when to start a deadline killer again, after its fork failed */
    bool kills;
    bool is_over;
    bool is_lost;
    bool is_released;
    bool is_bereft;    /* the private server has ended, with all of its locks */
    char trouble[256]; /* why the last renewal failed; "": it didn't */
};

static void say(const struct renewing *a, enum report_level level, const char *what,
                const char *why)
{
    report_say(&a->report, level, (struct message){.what = what, .why = why});
}

static struct deadlines times_of(const struct renewing *a)
{
    int64_t kill_ms = a->expires_ms - a->grant->timing.kill_margin_ms;

    return (struct deadlines){.term_ms = kill_ms - a->grant->timing.grace_ms, .kill_ms = kill_ms};
}

/* ---- the end of the lease ---- */

/* When it ends that is to end now. Why is said by us. */
static struct deadlines times_of_end(const struct renewing *a)
{
    struct deadlines times = times_of(a);

    times.term_ms = rlock_clock_ms();
    if (times.term_ms + a->grant->timing.grace_ms < times.kill_ms)
        times.kill_ms = times.term_ms + a->grant->timing.grace_ms;
    return times;
}

static void say_lost(const struct renewing *a, const char *why)
{
    char name[32];
    char hint[160];

    proctree_name(a->bound.pid, name);
    if (a->kills && name[0] != '\0')
        snprintf(hint, sizeof hint, "process %d (%s) and all below it are being ended",
                 (int)a->bound.pid, name);
    else if (a->kills)
        snprintf(hint, sizeof hint, "process %d and all below it were ended", (int)a->bound.pid);
    else
        snprintf(hint, sizeof hint, "process %d goes on (--on-lost ignore)", (int)a->bound.pid);
    report_say(&a->report, REPORT_FAILURE,
               (struct message){.what = "lost", .why = why, .hint = hint});
}

/* If the killer is killed meanwhile, descendants of a process that it has ended are known here. */
static void wait_for_killer(struct renewing *a, int64_t until_ms)
{
    struct pollfd ended = {.fd = a->killer.fd, .events = POLLIN};

    do
        bound_process_note(&a->bound, 0);
    while (rlock_clock_ms() < until_ms && poll(&ended, 1, LOOK_AGAIN_MS) == 0);
}

/*
 * The deadline killer ends what is bound; where that doesn't, we do. What takes its time, such as a
 * log that nobody empties, comes after that was begun.
 */
static void lose(struct renewing *a, const char *why)
{
    struct deadlines times = times_of_end(a);
    pid_t refused = 0;
    bool is_ending;

    if (a->kills)
        bound_process_note(&a->bound, 0); /* before the killer begins */
    is_ending = a->kills && deadline_killer_end_bound(&a->killer, times);
    a->is_lost = true;
    a->is_over = true;
    if (is_ending || !a->kills)
        say_lost(a, why);
    if (is_ending)
        wait_for_killer(a, times.kill_ms + a->grant->timing.kill_margin_ms / 2);
    if (a->kills)
        refused = bound_process_end(&a->bound, times.kill_ms, 0);
    if (a->kills && !is_ending)
        say_lost(a, why);
    if (refused != 0 && !is_ending) /* else the deadline killer tells it */
        guard_say_refused(&a->report, refused, "it runs on without the lock");
}

static void lose_by_time(struct renewing *a)
{
    char why[320];

    snprintf(why, sizeof why, "no renewal was confirmed in time%s%s",
             a->trouble[0] != '\0' ? ": " : "", a->trouble);
    lose(a, why);
}

static void give_back(struct renewing *a)
{
    struct rlock_deadline deadline = {rlock_clock_ms() + RELEASE_MS, -1};

    rlock_unkeep(a->session->lock);
    if (a->expires_ms < deadline.at_ms)
        deadline.at_ms = a->expires_ms;
    if (a->is_lost)
        deadline.at_ms = rlock_clock_ms() + a->grant->timing.reply_ms;
    if (!a->is_released && !a->is_bereft)
        (void)!rlock_release(a->session->lock, deadline, RLOCK_ENDS_FREE, 0, NULL);
}

/* ---- while it lasts ---- */

static void keep(struct renewing *a)
{
    if (a->events < 0 && rlock_keep(a->session->lock, &a->events, NULL) != RLOCK_OK)
        a->events = -1;
}

static void take_events(struct renewing *a)
{
    struct rlock_event event;

    while (!a->is_over && read(a->events, &event, sizeof event) == (ssize_t)sizeof event)
        switch (event.kind) {
        case RLOCK_KEPT_RENEWED:
        case RLOCK_KEPT_RESTORED:
            a->expires_ms = event.expires_ms;
            deadline_killer_set(&a->killer, times_of(a));
            if (event.kind == RLOCK_KEPT_RESTORED)
                say(a, REPORT_NOTICE, "restored",
                    "the key had vanished and was put back: it was granted to no other rlock "
                    "since");
            else
                say(a, a->trouble[0] != '\0' ? REPORT_NOTICE : REPORT_STEP, "renewed", NULL);
            a->trouble[0] = '\0';
            break;
        case RLOCK_KEPT_RELEASED:
            a->is_released = true;
            a->is_over = true;
            say(a, REPORT_STEP, "released", "by its token, from elsewhere");
            break;
        case RLOCK_KEPT_LOST:
            lose(a, event.text);
            break;
        case RLOCK_KEPT_TROUBLE:
            snprintf(a->trouble, sizeof a->trouble, "%s", event.text);
            say(a, REPORT_NOTICE, "renewal-failed", event.text);
            break;
        }
}

/* As it is with a command: what is to end us is meant for that for which we are there. */
static void take_signals(const struct renewing *a)
{
    struct signal_seen seen;

    while (signals_take(&a->session->signals, &seen))
        if (seen.action == SIGNAL_ENDS)
            bound_process_signal(&a->bound, seen.number);
}

static int start_killer(struct renewing *a)
{
    return a->kills ? deadline_killer_start(&a->killer, &a->bound, times_of(a),
                                            a->session->local.users_fd, &a->report)
                    : 0;
}

/*
 * It was killed, or couldn't be started again after that: there is to be one again. Nothing may
 * fork beside a thread.
 */
static void replace_killer(struct renewing *a)
{
    a->killer_again_ms = rlock_clock_ms() + a->grant->timing.reply_ms;
    deadline_killer_stop(&a->killer);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    if (bound_process_has_ended(&a->bound))
        return;
    rlock_unkeep(a->session->lock);
    a->events = -1;
    start_killer(a);
}

static bool lacks_killer(const struct renewing *a)
{
    return a->kills && a->killer.fd < 0;
}

static int64_t next_look(const struct renewing *a)
{
    int64_t term_ms = a->kills ? times_of(a).term_ms : RLOCK_NEVER;

    if (a->events < 0)
        return rlock_clock_ms() + a->grant->timing.reply_ms;
    return lacks_killer(a) && a->killer_again_ms < term_ms ? a->killer_again_ms : term_ms;
}

/*
 * By itself, or by the deadline killer because time is over, which that did before we came to it.
 */
static void note_end(struct renewing *a)
{
    char why[64];

    a->is_over = true;
    if (a->kills && rlock_clock_ms() >= times_of(a).term_ms) {
        lose_by_time(a);
        return;
    }
    snprintf(why, sizeof why, "process %d has ended", (int)a->bound.pid);
    say(a, REPORT_STEP, "ended", why);
}

static void renew_until_end(struct renewing *a)
{
    struct pollfd watch[] = {
        {.fd = a->bound.fd, .events = POLLIN}, {.fd = -1, .events = POLLIN},
        {.fd = -1, .events = POLLIN},          {.fd = a->session->signals.fd, .events = POLLIN},
        {.fd = a->timer, .events = POLLIN},    {.fd = -1, .events = POLLIN}};

    while (!a->is_over) {
        keep(a);
        timer_set(a->timer, next_look(a));
        watch[1].fd = a->events;
        watch[2].fd = a->killer.fd;
        watch[5].fd = a->local->alive_fd;
        poll(watch, sizeof watch / sizeof watch[0], -1);
        if (watch[0].revents != 0) {
            note_end(a);
            break;
        }
        if (watch[1].revents != 0)
            take_events(a);
        if (!a->is_over && watch[5].revents != 0 && local_has_ended(a->local)) {
            a->is_bereft = true;
            lose(a, "the private server has ended, and with it the lock");
        }
        if (watch[3].revents != 0)
            take_signals(a);
        if (!a->is_over && a->kills && rlock_clock_ms() >= times_of(a).term_ms)
            lose_by_time(a);
        if (!a->is_over &&
            (watch[2].revents != 0 || (lacks_killer(a) && rlock_clock_ms() >= a->killer_again_ms)))
            replace_killer(a);
    }
}

/* ---- the process ---- */

/* Nobody who waits for our end, or for the end of what we were started with, waits for this one. */
static int detach(const struct renew_daemon_log *log)
{
    int keeps = log->to == REPORT_TO_LOG && log->fd < 0 && report_keeps_stderr();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd;

    prctl(PR_SET_NAME, "rlock-keeper");
    if (null < 0 || setsid() < 0 || chdir("/") != 0)
        return errno;
    for (fd = STDIN_FILENO; fd <= STDERR_FILENO - keeps; fd++)
        if (dup2(fd == STDERR_FILENO && log->fd >= 0 ? log->fd : null, fd) < 0)
            return errno;
    close(null);
    if (log->fd >= 0)
        close(log->fd);
    fds_drop_inherited();
    return 0;
}

static _Noreturn void be_daemon(struct renewing *a, int fd)
{
    enum renew_daemon_word word = RENEW_DAEMON_CANCEL;
    int failed = detach(a->log);
    ssize_t heard;

    a->timer = timer_open();
    if (failed == 0)
        failed = a->timer < 0 ? errno : start_killer(a);
    (void)!send(fd, &failed, sizeof failed, MSG_NOSIGNAL);
    heard = failed == 0 ? recv(fd, &word, sizeof word, 0) : 0;
    close(fd);
    if (heard > 0 && word == RENEW_DAEMON_BEGIN) {
        session_quiet_helpers(a->session);
        renew_until_end(a);
    }
    deadline_killer_stop(&a->killer);
    if (failed == 0 && (heard <= 0 || word == RENEW_DAEMON_BEGIN))
        give_back(a);
    _exit(0);
}

int renew_daemon_start(struct renew_daemon *daemon, struct session *session,
                       const struct rlock_grant *grant, const struct bound_process *bound,
                       const struct renew_daemon_log *log)
{
    struct renewing a = {.session = session,
                         .local = &session->local,
                         .grant = grant,
                         .report = session->report,
                         .log = log,
                         .bound = *bound,
                         .killer = {.fd = -1},
                         .events = -1,
                         .expires_ms = grant->expires_ms,
                         .kills = session->options->on_lost != ON_LOST_IGNORE};
    int failed = 0;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    a.report.to = log->to;
    daemon->fd = pair[0];
    daemon->pid = fork();
    if (daemon->pid == 0) {
        close(pair[0]);
        be_daemon(&a, pair[1]);
    }
    if (daemon->pid < 0)
        failed = errno;
    close(pair[1]);
    if (failed == 0 && recv(daemon->fd, &failed, sizeof failed, 0) <= 0)
        failed = ECHILD;
    if (failed != 0 && daemon->pid > 0)
        renew_daemon_cancel(daemon);
    else if (failed != 0)
        close(daemon->fd);
    return failed;
}

bool renew_daemon_begin(const struct renew_daemon *daemon)
{
    enum renew_daemon_word word = RENEW_DAEMON_BEGIN;
    bool good = send(daemon->fd, &word, sizeof word, MSG_NOSIGNAL) == sizeof word;

    if (good)
        close(daemon->fd);
    return good;
}

void renew_daemon_cancel(const struct renew_daemon *daemon)
{
    enum renew_daemon_word word = RENEW_DAEMON_CANCEL;

    (void)!send(daemon->fd, &word, sizeof word, MSG_NOSIGNAL);
    close(daemon->fd);
    while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
