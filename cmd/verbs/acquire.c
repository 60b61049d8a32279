/* SPDX-License-Identifier: MIT */
/*
 * acquire: take a lock without a command, and print its token.
 *
 * If the token can't be printed, for whatever reason, rlock releases the lock: without the token
 * nobody could release it later.
 */
#include "cmd.h"

#include "base/clock.h"
#include "output/json.h"
#include "output/outfile.h"
#include "session/session.h"
#include "supervise/renew_daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RELEASE_MS 2000 /* how long to wait for the reply to a release */
#define TOKEN_LINE_BYTES 256
#define SYSLOG_SOCKET "/dev/log" /* where syslog(3) sends its messages */

struct acquire {
    struct session session;
    struct bound_process bound;
    struct renew_daemon_log log;
    struct rlock_grant grant;
    int64_t granted_at_ms;
};

static enum exit_reason fault(const struct acquire *a, enum exit_reason reason, const char *why,
                              int sys)
{
    return report_fault(&a->session.report, reason, why, sys);
}

/* ---- printing the token ---- */

/*
 * Wait until stdout has room for the token. A signal ends the wait, and so does the time at which
 * the lease can't be relied on any more.
 */
static enum exit_reason wait_for_room(struct acquire *a)
{
    struct pollfd fds[] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                           {.fd = a->session.signals.stop_fd, .events = POLLIN}};
    int64_t left_ms;

    while (fds[0].revents == 0) {
        if (session_is_interrupted(&a->session))
            return REASON_INTERRUPTED;
        left_ms = a->grant.expires_ms - a->grant.timing.kill_margin_ms - rlock_clock_ms();
        if (left_ms <= 0)
            return fault(a, REASON_LOST,
                         "the token could not be written to stdout before the lease ended", 0);
        poll(fds, 2, left_ms < 60000 ? (int)left_ms : 60000);
    }
    return REASON_GRANTED;
}

static enum exit_reason print_token(struct acquire *a)
{
    char text[TOKEN_LINE_BYTES];
    struct json json;
    enum exit_reason reason = wait_for_room(a);

    if (reason != REASON_GRANTED)
        return reason;
    if (a->session.report.json) {
        json_begin(&json, text, sizeof text);
        json_string(&json, "token", a->grant.token);
        json_unsigned(&json, "fence", a->grant.fence);
        json_number(&json, "expires_ms", a->grant.expires_ms - rlock_clock_ms());
        if (a->session.options->mode == RLOCK_SLOTS)
            json_number(&json, "slot", a->grant.slot);
        json_end(&json);
    } else {
        snprintf(text, sizeof text, "%s\n", a->grant.token);
    }
    return report_result(text) ? REASON_GRANTED : fault(a, REASON_SYSTEM, "standard output", errno);
}

/* ---- --bind-pid: the process that stays behind and renews ---- */

/*
 * Open the --log file before rlock asks for the lock, so that a failure can still be reported to
 * the caller. Later the renewing process has nobody to report to.
 */
static enum exit_reason open_log(struct acquire *a)
{
    const char *path = a->session.options->log;
    char why[300];
    int failed = 0;

    if (path == NULL)
        return REASON_GRANTED;
    if (strcmp(path, "-") == 0)
        return fault(a, REASON_USAGE,
                     "log: standard output is kept for the token: name another file", 0);
    if (strcmp(path, "syslog") == 0) {
        a->log.to = REPORT_TO_SYSLOG;
        return access(SYSLOG_SOCKET, W_OK) == 0
                   ? REASON_GRANTED
                   : fault(a, REASON_MISCONFIGURED, "log: syslog: " SYSLOG_SOCKET, errno);
    }
    a->log.fd = outfile_open(path, &failed);
    if (a->log.fd >= 0)
        return REASON_GRANTED;
    snprintf(why, sizeof why, "log: %.150s: %s", path, outfile_error(failed));
    return fault(a, REASON_MISCONFIGURED, why, 0);
}

static enum exit_reason bind_pid(struct acquire *a)
{
    pid_t pid = (pid_t)a->session.options->bind_pid;
    const char *refusal;
    char why[160];
    int failed;

    session_set_holder(&a->session, pid > 0 ? pid : getppid(), pid > 0);
    if (pid == 0)
        return REASON_GRANTED;
    refusal = bound_process_refusal(pid);
    snprintf(why, sizeof why, "bind-pid: process %d%s%s", (int)pid, refusal != NULL ? ": " : "",
             refusal != NULL ? refusal : "");
    if (refusal != NULL)
        return fault(a, REASON_USAGE, why, 0);
    failed = bound_process_open(&a->bound, pid);
    if (failed == ESRCH || failed == EPERM || failed == EINVAL || failed == ENOENT)
        return fault(a, REASON_USAGE, why, failed);
    return failed ? fault(a, REASON_SYSTEM, why, failed) : open_log(a);
}

static enum exit_reason print_token_and_stay(struct acquire *a)
{
    struct renew_daemon daemon;
    int failed = renew_daemon_start(&daemon, &a->session, &a->grant, &a->bound, &a->log);
    enum exit_reason reason;

    if (failed)
        return fault(a, REASON_SYSTEM, "the process that renews the lock could not be started",
                     failed);
    reason = print_token(a);
    if (reason == REASON_GRANTED && !renew_daemon_begin(&daemon))
        reason = fault(a, REASON_SYSTEM, "the process that renews the lock was killed", 0);
    if (reason != REASON_GRANTED)
        renew_daemon_cancel(&daemon);
    else
        session_disown(&a->session);
    return reason;
}

static enum exit_reason hand_out(struct acquire *a)
{
    if (a->grant.has_parent)
        return fault(a, REASON_USAGE,
                     "the token in RLOCK_TOKEN holds this key already: renew and release the lock "
                     "by that token",
                     0);
    report_say(&a->session.report, REPORT_STEP, (struct message){.what = "granted"});
    return a->bound.fd >= 0 ? print_token_and_stay(a) : print_token(a);
}

static void release(const struct acquire *a)
{
    struct rlock_deadline deadline = deadline_in(deadline_never, RELEASE_MS);
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st = rlock_release(a->session.lock, deadline, RLOCK_ENDS_FREE, 0, &err);

    if (st >= RLOCK_E_USAGE)
        report_say(&a->session.report, REPORT_NOTICE,
                   (struct message){.what = "not-released",
                                    .why = err.text,
                                    .hint = "the lock is free when its ttl ends"});
}

/* ---- the verb ---- */

static enum exit_reason acquire_all(struct acquire *a)
{
    struct session *session = &a->session;
    enum exit_reason reason = session_open_signals(session);
    char program[32];

    if (reason == REASON_GRANTED)
        reason = bind_pid(a);
    if (reason != REASON_GRANTED)
        return reason;
    proctree_name(session->holder_pid, program);
    reason = session_open(session, program);
    if (reason == REASON_GRANTED)
        reason = session_acquire(session, NULL, &a->grant, &a->granted_at_ms);
    if (reason != REASON_GRANTED)
        return reason;
    reason = hand_out(a);
    if (reason != REASON_GRANTED)
        release(a);
    return reason;
}

int cmd_acquire(const struct options *options)
{
    struct acquire a = {.bound = {.fd = -1}, .log = {.to = REPORT_TO_LOG, .fd = -1}};
    enum exit_reason reason;

    session_init(&a.session, options);
    reason = acquire_all(&a);
    if (a.bound.fd >= 0)
        close(a.bound.fd);
    if (a.log.fd >= 0)
        close(a.log.fd);
    session_close(&a.session);
    if (reason == REASON_INTERRUPTED)
        signals_yield(a.session.interrupted_by);
    return session_status(&a.session, reason);
}
