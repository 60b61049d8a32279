/* SPDX-License-Identifier: MIT */
/*
 * renew_daemon: a process that stays behind, and renews a lease until another process ends.
 *
 * `rlock acquire --bind-pid PID` prints a token and exits, and the daemon renews the lease as long
 * as the process PID, the bound process, runs:
 *
 * 1. The server grants the lease to `rlock acquire`, which forks the daemon.
 * 2. The daemon leaves the session and the terminal, starts its deadline killer, and reports that
 *    it is ready.
 * 3. `rlock acquire` prints the token.
 * 4. `rlock acquire` sends RENEW_DAEMON_BEGIN, and the daemon begins to renew. If `rlock acquire`
 *    ends without having sent that, the daemon releases the lease, as the token may not have been
 *    printed.
 *
 * When the lease is lost, the daemon ends the bound process. If the daemon itself is killed or
 * stopped, the deadline killer, a process of its own, ends the bound process before the lease ends.
 *
 * `rlock hold --renew` forks the same daemon without a bound process. The daemon renews the lease
 * until the end of the hold, or until a signal ends the daemon, and then releases the lease.
 *
 * If another rlock releases the lease by its token, the lock is not lost. That release leaves a
 * note on the server, and the reply to the next renewal says so.
 */
#include "supervise/renew_daemon.h"

#include "output/outfile.h"
#include "process/child.h"
#include "process/fds.h"
#include "process/timer.h"
#include "supervise/deadline_killer.h"
#include "supervise/guard.h"
#include "supervise/renewer_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS 20
#define SYSLOG_SOCKET "/dev/log" /* where syslog(3) sends its messages */
#define RELEASE_MS 10000         /* how long the daemon tries to release the lease */

/*
 * What `rlock acquire` sends to the daemon. The daemon sends one int to `rlock acquire`: 0 when it
 * is ready, or the errno for which it could not start.
 */
enum renew_daemon_order { RENEW_DAEMON_BEGIN, RENEW_DAEMON_CANCEL };

/* What has become of the lease. */
enum lease_state {
    LEASE_RENEWED,    /* the daemon renews the lease, and the bound process runs */
    LEASE_NOT_NEEDED, /* the bound process or the time of the hold has ended */
    LEASE_RELEASED,   /* another rlock released the lease by its token */
    LEASE_LOST,       /* another owner has the lock, or may have it */
    LEASE_SERVER_GONE /* the private server has ended with the lock: nothing can be released */
};

struct renewing {
    const struct session *session;
    struct private_server *private_server; /* the private server of `session` */
    const struct rlock_grant *grant;
    const struct renew_daemon_log *log;
    struct report report;
    struct bound_process bound;
    struct deadline_killer killer;
    struct renewer_client renewer;
    int timer;
    int64_t hold_ends_ms;    /* when a hold ends, on rlock_clock_ms(); RLOCK_NEVER: no hold */
    int64_t expires_ms;      /* the lease's end, by the last renewal that was confirmed */
    int64_t killer_retry_ms; /* when to start a deadline killer, if none runs */
    bool ends_bound; /* when the lease is lost, end the bound process; false: --on-lost ignore */
    enum lease_state lease;
    struct rlock_loss loss; /* LEASE_LOST: why, and who has the lock now or broke it */
};

static struct deadlines deadlines_of(const struct renewing *r)
{
    return deadlines_of_lease(r->expires_ms, r->grant->timing.kill_margin_ms,
                              r->grant->timing.grace_ms);
}

static bool is_hold(const struct renewing *r)
{
    return r->hold_ends_ms != RLOCK_NEVER;
}

static bool is_due(const struct renewing *r)
{
    return r->ends_bound && rlock_clock_ms() >= deadlines_of(r).term_ms;
}

/* ---- losing or releasing the lease ---- */

/*
 * Returns the deadlines of an end that begins now: TERM is due now, KILL after the grace period, or
 * when the lease's KILL is due, if that is earlier.
 */
static struct deadlines deadlines_from_now(const struct renewing *r)
{
    struct deadlines deadlines = deadlines_of(r);

    deadlines.term_ms = rlock_clock_ms();
    if (deadlines.term_ms + r->grant->timing.grace_ms < deadlines.kill_ms)
        deadlines.kill_ms = deadlines.term_ms + r->grant->timing.grace_ms;
    return deadlines;
}

/*
 * Report that the lease is lost. `ending` says when the bound process got or gets TERM and KILL;
 * all zero: the bound process runs on.
 */
static void say_lost(const struct renewing *r, const char *why, struct ending ending)
{
    struct message message = {.what = EVENT_LOST, .why = why};
    char steps[ENDING_BYTES];
    char name[32];
    char hint[160 + ENDING_BYTES];

    proctree_name(r->bound.pid, name);
    ending_text(steps, &ending);
    if (is_hold(r))
        snprintf(hint, sizeof hint, "the hold is over");
    else if (!r->ends_bound)
        snprintf(hint, sizeof hint, "process %d goes on (--on-lost ignore)", (int)r->bound.pid);
    else if (ending.ended_ms == 0)
        snprintf(hint, sizeof hint,
                 "process %d (%s) and its descendants are being ended: %s unless they end before",
                 (int)r->bound.pid, name, steps);
    else
        snprintf(hint, sizeof hint, "process %d and its descendants were ended: %s",
                 (int)r->bound.pid, steps);
    message.hint = hint;
    message_add(&message, fact_text("cause", r->loss.cause == RLOCK_LOSS_HELD     ? "held"
                                             : r->loss.cause == RLOCK_LOSS_BROKEN ? "broken"
                                                                                  : "not-renewed"));
    if (r->loss.cause == RLOCK_LOSS_HELD)
        message_add(&message, fact_party("holder", &r->loss.by, "held_ms"));
    else if (r->loss.cause == RLOCK_LOSS_BROKEN)
        message_add(&message, fact_party("broken_by", &r->loss.by, NULL));
    if (!is_hold(r))
        message_add(&message, fact_number("process", r->bound.pid));
    ending_add_facts(&message, &ending);
    report_say(&r->report, REPORT_FAILURE, message);
}

/* The deadline killer has ended the bound process: report when. */
static void say_ended(const struct renewing *r)
{
    struct ending ending = {.ended_ms = r->bound.ending.ended_ms};
    struct message message = {.what = EVENT_ENDED};
    char steps[ENDING_BYTES];
    char why[64 + ENDING_BYTES];

    ending_text(steps, &ending);
    snprintf(why, sizeof why, "process %d and its descendants %s", (int)r->bound.pid, steps);
    message.why = why;
    message_add(&message, fact_number("process", r->bound.pid));
    ending_add_facts(&message, &ending);
    report_say(&r->report, REPORT_NOTICE, message);
}

/*
 * Wait until the deadline killer has ended the bound process. Somebody may kill the killer, and
 * then the daemon has to end the descendants of the bound process. So while the daemon waits, it
 * notes the descendants again and again: /proc doesn't tell the descendants of a process that has
 * ended.
 */
static void wait_for_killer(struct renewing *r, int64_t deadline_ms)
{
    struct pollfd ended = {.fd = r->killer.fd, .events = POLLIN};

    do
        bound_process_note(&r->bound, 0);
    while (rlock_clock_ms() < deadline_ms && poll(&ended, 1, RETRY_MS) == 0);
}

/*
 * The lease is lost: the deadline killer ends the bound process, or the daemon does if the killer
 * is gone or fails. TERM is sent before the message is written, as writing may block for 200 ms.
 */
static void lose(struct renewing *r, const char *why)
{
    struct deadlines deadlines = deadlines_from_now(r);
    pid_t refused = 0;
    bool is_ending;

    if (r->ends_bound) /* note the tree before the killer ends a process: see wait_for_killer() */
        bound_process_note(&r->bound, 0);
    is_ending = r->ends_bound && deadline_killer_end_bound(&r->killer, deadlines);
    r->lease = LEASE_LOST;
    if (is_ending)
        say_lost(r, why, (struct ending){deadlines.term_ms, deadlines.kill_ms, 0});
    else if (!r->ends_bound)
        say_lost(r, why, (struct ending){0, 0, 0});
    if (is_ending)
        wait_for_killer(r, deadlines.kill_ms + r->grant->timing.kill_margin_ms / 2);
    if (r->ends_bound)
        refused = bound_process_end(&r->bound, deadlines.kill_ms, 0);
    if (is_ending && r->bound.ending.ended_ms != 0)
        say_ended(r);
    else if (r->ends_bound && !is_ending)
        say_lost(r, why, r->bound.ending);
    if (refused != 0 && !is_ending) /* if is_ending, the killer reports the refusal */
        guard_say_refused(&r->report, refused, "that process runs on without the lock");
}

static void lose_by_time(struct renewing *r)
{
    char why[640];

    renewer_client_overdue_text(&r->renewer, "", why, sizeof why);
    lose(r, why);
}

/*
 * Release the lease. If the lease is lost, another owner may hold the lock by now, so wait only
 * `reply_ms` for the reply.
 */
static void release(struct renewing *r)
{
    struct rlock_deadline deadline = {rlock_clock_ms() + RELEASE_MS, -1};

    renewer_client_stop(&r->renewer);
    if (r->lease == LEASE_RELEASED || r->lease == LEASE_SERVER_GONE)
        return;
    if (r->expires_ms < deadline.at_ms)
        deadline.at_ms = r->expires_ms;
    if (r->lease == LEASE_LOST)
        deadline.at_ms = rlock_clock_ms() + r->grant->timing.reply_ms;
    (void)!rlock_release(r->session->lock, deadline, RLOCK_ENDS_FREE, 0, NULL);
}

/* ---- starting and replacing the deadline killer ---- */

static int start_killer(struct renewing *r)
{
    return r->ends_bound ? deadline_killer_start(&r->killer, &r->bound, deadlines_of(r),
                                                 r->session->private_server.users_fd, &r->report)
                         : 0;
}

static bool needs_killer(const struct renewing *r)
{
    return r->ends_bound && r->killer.fd < 0;
}

/*
 * Start a deadline killer, as the last one was killed or could not be started. The daemon must not
 * fork while the renewer's thread runs, so it stops the thread first; renew_until_end() starts the
 * thread again.
 */
static void replace_killer(struct renewing *r)
{
    r->killer_retry_ms = rlock_clock_ms() + r->grant->timing.reply_ms;
    deadline_killer_stop(&r->killer);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    if (bound_process_has_ended(&r->bound))
        return;
    renewer_client_stop(&r->renewer);
    start_killer(r);
}

/* ---- events while the daemon renews the lease ---- */

static void take_events(struct renewing *r)
{
    struct rlock_event event;

    while (r->lease == LEASE_RENEWED && renewer_client_next_event(&r->renewer, &event)) {
        switch (event.kind) {
        case RLOCK_KEPT_RENEWED:
        case RLOCK_KEPT_RESTORED:
            r->expires_ms = event.expires_ms;
            deadline_killer_set(&r->killer, deadlines_of(r));
            break;
        case RLOCK_KEPT_RELEASED:
            r->lease = LEASE_RELEASED;
            report_say(&r->report, is_hold(r) ? REPORT_NOTICE : REPORT_STEP,
                       (struct message){.what = EVENT_RELEASED,
                                        .why = "another process released the lock by its token"});
            break;
        case RLOCK_KEPT_LOST:
            r->loss = event.loss;
            lose(r, event.text);
            break;
        case RLOCK_KEPT_TROUBLE:
            break;
        }
        renewer_client_report(&r->renewer, &event);
    }
}

/* Report that a hold is over, and let the daemon release the lock. */
static void end_hold(struct renewing *r, const char *why)
{
    r->lease = LEASE_NOT_NEEDED;
    report_say(&r->report, REPORT_NOTICE, (struct message){.what = EVENT_ENDED, .why = why});
}

/*
 * Pass each signal that would end the daemon on to the bound process: a user who ends the daemon
 * wants to end the work under the lease. Without a bound process the signal ends the hold.
 */
static void take_signals(struct renewing *r)
{
    struct signal_seen seen;

    while (signals_take(&r->session->signals, &seen))
        if (seen.action == SIGNAL_ENDS && !is_hold(r))
            bound_process_signal(&r->bound, seen.number);
        else if (seen.action == SIGNAL_ENDS && r->lease == LEASE_RENEWED)
            end_hold(r, "a signal has ended the hold");
}

/*
 * The bound process has ended. After the deadline for TERM the deadline killer has ended it, and
 * the lease counts as lost; before that deadline the process has ended by itself.
 */
static void note_bound_ended(struct renewing *r)
{
    char why[64];

    if (is_due(r)) {
        lose_by_time(r);
        return;
    }
    r->lease = LEASE_NOT_NEEDED;
    snprintf(why, sizeof why, "process %d has ended", (int)r->bound.pid);
    report_say(&r->report, REPORT_STEP,
               (struct message){.what = EVENT_ENDED,
                                .why = why,
                                .facts = {fact_number("process", r->bound.pid)}});
}

static int64_t next_deadline_ms(const struct renewing *r)
{
    int64_t term_ms = r->ends_bound ? deadlines_of(r).term_ms : RLOCK_NEVER;

    if (r->renewer.events < 0) /* the renewer could not be started: when to try again */
        return rlock_clock_ms() + r->grant->timing.reply_ms;
    if (is_hold(r))
        return r->hold_ends_ms;
    return needs_killer(r) && r->killer_retry_ms < term_ms ? r->killer_retry_ms : term_ms;
}

static void renew_until_end(struct renewing *r)
{
    enum { BOUND, RENEWER, KILLER, SIGNALS, TIMER, SERVER, WATCHED };
    struct pollfd watch[WATCHED] = {[BOUND] = {.fd = r->bound.fd, .events = POLLIN},
                                    [RENEWER] = {.fd = -1, .events = POLLIN},
                                    [KILLER] = {.fd = -1, .events = POLLIN},
                                    [SIGNALS] = {.fd = r->session->signals.fd, .events = POLLIN},
                                    [TIMER] = {.fd = r->timer, .events = POLLIN},
                                    [SERVER] = {.fd = -1, .events = POLLIN}};

    while (r->lease == LEASE_RENEWED) {
        if (r->renewer.events < 0)
            (void)!renewer_client_start(&r->renewer, NULL);
        timer_set(r->timer, next_deadline_ms(r));
        watch[RENEWER].fd = r->renewer.events;
        watch[KILLER].fd = r->killer.fd;
        watch[SERVER].fd = r->private_server->alive_fd;
        poll(watch, WATCHED, -1);
        if (watch[BOUND].revents != 0) {
            note_bound_ended(r);
            break;
        }
        if (watch[RENEWER].revents != 0)
            take_events(r);
        if (r->lease == LEASE_RENEWED && watch[SERVER].revents != 0 &&
            private_server_has_ended(r->private_server)) {
            lose(r, "the private server has ended, and with it the lock");
            r->lease = LEASE_SERVER_GONE;
        }
        if (watch[SIGNALS].revents != 0)
            take_signals(r);
        if (r->lease == LEASE_RENEWED && is_due(r))
            lose_by_time(r);
        if (r->lease == LEASE_RENEWED && rlock_clock_ms() >= r->hold_ends_ms)
            end_hold(r, "the time of the hold is over");
        if (r->lease == LEASE_RENEWED &&
            (watch[KILLER].revents != 0 ||
             (needs_killer(r) && rlock_clock_ms() >= r->killer_retry_ms)))
            replace_killer(r);
    }
}

/* ---- in the new process: becoming the daemon ---- */

/*
 * Become a daemon: leave the session and the working directory, and close the descriptors that
 * `rlock acquire` was started with. A process that reads the output of `rlock acquire` would
 * otherwise wait for the daemon's end.
 */
static int detach(const struct renew_daemon_log *log)
{
    int keeps_stderr = log->to == REPORT_TO_LOG && log->fd < 0 && report_keeps_stderr();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd;

    prctl(PR_SET_NAME, "rlock-renewd");
    if (null < 0 || setsid() < 0 || chdir("/") != 0)
        return errno;
    for (fd = STDIN_FILENO; fd <= STDERR_FILENO - keeps_stderr; fd++)
        if (dup2(fd == STDERR_FILENO && log->fd >= 0 ? log->fd : null, fd) < 0)
            return errno;
    close(null);
    if (log->fd >= 0)
        close(log->fd);
    fds_drop_inherited();
    return 0;
}

static _Noreturn void be_daemon(struct renewing *r, int program_fd)
{
    enum renew_daemon_order order = RENEW_DAEMON_CANCEL;
    int failed = detach(r->log);
    ssize_t n;

    r->timer = timer_open();
    if (failed == 0)
        failed = r->timer < 0 ? errno : start_killer(r);
    (void)!send(program_fd, &failed, sizeof failed, MSG_NOSIGNAL);
    n = failed == 0 ? recv(program_fd, &order, sizeof order, 0) : 0;
    close(program_fd);
    if (n > 0 && order == RENEW_DAEMON_BEGIN) {
        session_quiet_helpers(r->session);
        renew_until_end(r);
    }
    deadline_killer_stop(&r->killer);
    if (failed == 0 && (n <= 0 || order == RENEW_DAEMON_BEGIN))
        release(r);
    if (n > 0 && order == RENEW_DAEMON_BEGIN)
        holds_remove(&r->session->holds, r->grant->token);
    _exit(0);
}

/* ---- in the process that starts the daemon ---- */

enum exit_reason renew_daemon_open_log(struct renew_daemon_log *log, const struct session *session)
{
    const struct report *report = &session->report;
    const char *path = session->options->log;
    char why[300];
    int failed = 0;

    if (path == NULL)
        return REASON_GRANTED;
    if (strcmp(path, "-") == 0)
        return report_fault(report, REASON_USAGE,
                            "log: standard output is kept for the result: name another file", 0);
    if (strcmp(path, "syslog") == 0) {
        log->to = REPORT_TO_SYSLOG;
        return access(SYSLOG_SOCKET, W_OK) == 0
                   ? REASON_GRANTED
                   : report_fault(report, REASON_MISCONFIGURED, "log: syslog: " SYSLOG_SOCKET,
                                  errno);
    }
    log->fd = outfile_open(path, &failed);
    if (log->fd >= 0)
        return REASON_GRANTED;
    snprintf(why, sizeof why, "log: %.150s: %s", path, outfile_error(failed));
    return report_fault(report, REASON_MISCONFIGURED, why, 0);
}

int renew_daemon_start(struct renew_daemon *daemon, struct session *session,
                       const struct rlock_grant *grant, const struct bound_process *bound,
                       const struct renew_daemon_log *log, int64_t hold_ends_ms)
{
    struct renewing r = {.session = session,
                         .private_server = &session->private_server,
                         .grant = grant,
                         .report = session->report,
                         .log = log,
                         .bound = *bound,
                         .killer = {.fd = -1},
                         .hold_ends_ms = hold_ends_ms,
                         .expires_ms = grant->expires_ms,
                         .ends_bound =
                             bound->fd >= 0 && session->options->on_lost != ON_LOST_IGNORE};
    int fd;
    int failed = 0;

    report_redirect(&r.report, log->to);
    renewer_client_init(&r.renewer, session->lock, &r.report);
    daemon->pid = child_fork(&fd);
    if (daemon->pid == 0)
        be_daemon(&r, fd);
    if (daemon->pid < 0)
        return errno;
    daemon->fd = fd;
    if (recv(daemon->fd, &failed, sizeof failed, 0) <= 0)
        failed = ECHILD;
    if (failed != 0)
        renew_daemon_cancel(daemon);
    return failed;
}

bool renew_daemon_begin(const struct renew_daemon *daemon)
{
    enum renew_daemon_order order = RENEW_DAEMON_BEGIN;
    bool is_sent = send(daemon->fd, &order, sizeof order, MSG_NOSIGNAL) == sizeof order;

    if (is_sent)
        close(daemon->fd);
    return is_sent;
}

void renew_daemon_cancel(const struct renew_daemon *daemon)
{
    enum renew_daemon_order order = RENEW_DAEMON_CANCEL;

    (void)!send(daemon->fd, &order, sizeof order, MSG_NOSIGNAL);
    close(daemon->fd);
    while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
