/* SPDX-License-Identifier: MIT */
/*
 * acquire: acquire a lock without a command, and print its token.
 *
 * If the token can't be printed, rlock releases the lock: without the token nobody could release
 * the lock later.
 */
#include "cmd.h"

#include "output/json.h"
#include "process/fds.h"
#include "session/session.h"
#include "supervise/renew_daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_LINE_BYTES 256

struct acquire {
    struct session session;
    struct guard_client guard; /* --bind-pid: the guard, which ends the bound process */
    pid_t bound;               /* --bind-pid; 0: not given */
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

/* When the token becomes useless without a renewal: a bound process then gets TERM. */
static int64_t usable_until_ms(const struct acquire *a)
{
    return a->grant.expires_ms - a->grant.timing.kill_margin_ms -
           (a->bound != 0 ? a->grant.timing.grace_ms : 0);
}

static enum exit_reason print_token(void *verb, pid_t renewer)
{
    struct acquire *a = verb;
    char text[TOKEN_LINE_BYTES];
    struct json json;
    enum exit_reason reason = session_wait_for_stdout(&a->session, usable_until_ms(a));

    (void)renewer;
    if (reason != REASON_GRANTED)
        return reason;
    if (a->session.report.json) {
        json_begin(&json, text, sizeof text);
        json_string(&json, "token", a->grant.token);
        json_unsigned(&json, "fence", a->grant.fence);
        json_number(&json, "left_ms", a->grant.expires_ms - rlock_clock_ms());
        if (a->grant.slot >= 0)
            json_number(&json, "slot", a->grant.slot);
        json_end(&json);
    } else {
        snprintf(text, sizeof text, "%s\n", a->grant.token);
    }
    return report_result(&a->session.report, text);
}

/* ---- --bind-pid: the process that outlives rlock and renews the lease ---- */

/* Why rlock refuses to bind a lock to this process, even for root; NULL: it doesn't refuse. */
static const char *refusal_of(pid_t pid)
{
    if (pid == 1)
        return "all processes of this machine or container would end with process 1; start the "
               "work in a shell of its own";
    if (pid == getpid())
        return "it is this rlock, which exits soon; start rlock without exec, and not as the last "
               "command of a shell, so that $$ is the shell";
    if ((proctree_flags(pid) & PROCTREE_KERNEL_THREAD) != 0)
        return "it is a thread of the kernel, which nobody can end";
    return NULL;
}

static enum exit_reason bind_pid(struct acquire *a)
{
    pid_t pid = (pid_t)a->session.options->bind_pid;
    const char *refusal;
    char why[160];
    int failed;

    session_set_holder(&a->session, pid > 0 ? pid : getppid(), 0, pid > 0);
    if (pid == 0)
        return REASON_GRANTED;
    refusal = refusal_of(pid);
    snprintf(why, sizeof why, "bind-pid: process %d%s%s", (int)pid, refusal != NULL ? ": " : "",
             refusal != NULL ? refusal : "");
    if (refusal != NULL)
        return fault(a, REASON_USAGE, why, 0);
    a->bound = pid;
    failed = proctree_bind(&a->guard.tree, pid);
    if (failed == ESRCH || failed == EPERM || failed == EINVAL || failed == EACCES)
        return fault(a, REASON_USAGE, why, failed);
    return failed ? fault(a, REASON_SYSTEM, why, failed)
                  : renew_daemon_open_log(&a->log, &a->session);
}

static enum exit_reason hand_out(struct acquire *a)
{
    const struct supervise_plan plan = {.session = &a->session,
                                        .grant = &a->grant,
                                        .granted_ms = a->granted_at_ms,
                                        .guard = &a->guard};

    if (a->grant.parent_keys != 0)
        return fault(a, REASON_USAGE,
                     "the token in RLOCK_TOKEN holds this key already: renew and release the lock "
                     "by that token",
                     0);
    progress_say_granted(&a->session.progress, rlock_clock_ms(), a->grant.fence);
    return a->bound != 0 ? renew_daemon_stay(&plan, a->bound, &a->log, print_token, a)
                         : print_token(a, 0);
}

/* ---- carrying out the verb ---- */

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
        session_give_back(&a->session);
    return reason;
}

int cmd_acquire(const struct options *options)
{
    struct acquire a = {.guard = {.fd = -1}, .log = {.to = REPORT_TO_LOG, .fd = -1}};
    enum exit_reason reason;

    session_init(&a.session, options);
    reason = acquire_all(&a);
    fds_close(&a.log.fd);
    session_close(&a.session);
    if (reason == REASON_INTERRUPTED)
        signals_yield(a.session.interrupted_by);
    return session_status(&a.session, reason);
}
