/* SPDX-License-Identifier: MIT */
/*
 * renew_daemon: a process that stays behind, and renews the lease of a bound process or a hold.
 *
 * 1. `rlock acquire --bind-pid PID` is granted the lease, and forks the daemon.
 * 2. The daemon leaves the session, forks the guard, and reports that it is ready.
 * 3. `rlock acquire` prints the token, and sends RENEW_DAEMON_BEGIN. If `rlock acquire` dies before
 *    that, the daemon releases the lease, as the token may not have been printed.
 * 4. The daemon lets the guard begin, which tells that to the daemon and to `rlock acquire`.
 */
#include "supervise/renew_daemon.h"

#include "output/outfile.h"
#include "process/child.h"
#include "process/timer.h"
#include "supervise/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSLOG_SOCKET "/dev/log" /* where syslog(3) sends its messages */

/*
 * What `rlock acquire` sends to the daemon. The daemon sends an int when it is ready. After
 * RENEW_DAEMON_BEGIN the guard or the daemon sends another int. An int is 0, or an errno.
 */
enum renew_daemon_order { RENEW_DAEMON_BEGIN, RENEW_DAEMON_CANCEL };

/* ---- in the new process: becoming the daemon ---- */

static int detach(const struct renew_daemon_log *log)
{
    bool keeps_stderr = log->to == REPORT_TO_LOG && log->fd < 0 && report_keeps_stderr();
    int failed = child_leave_session("rlock-renewd", keeps_stderr ? STDERR_FILENO : log->fd);

    if (failed == 0 && chdir("/") != 0)
        failed = errno;
    if (log->fd >= 0)
        close(log->fd);
    return failed;
}

static void tell(int program_fd, int failed)
{
    (void)!send(program_fd, &failed, sizeof failed, MSG_NOSIGNAL);
}

/* `rlock acquire` has printed the token. It releases the lock if the daemon can't begin. */
static void begin(const struct supervise_plan *plan, int program_fd)
{
    struct supervise_result result;
    int failed = supervise_bind(plan);

    tell(program_fd, failed); /* also 0: there may be no guard, or the guard was killed meanwhile */
    close(program_fd);
    if (failed)
        return;
    supervise(plan, &result);
    holds_remove(&plan->session->holds, plan->grant->token);
}

static _Noreturn void be_daemon(struct supervise_plan *plan, const struct renew_daemon_log *log,
                                int program_fd)
{
    enum renew_daemon_order order = RENEW_DAEMON_CANCEL;
    int failed = detach(log);
    ssize_t n = 0;

    plan->timer = timer_open();
    if (failed == 0 && plan->timer < 0)
        failed = errno;
    if (failed == 0)
        failed = supervise_prepare(plan);
    tell(program_fd, failed);
    if (failed == 0)
        n = recv(program_fd, &order, sizeof order, 0);
    if (n > 0 && order == RENEW_DAEMON_BEGIN)
        begin(plan, program_fd);
    guard_client_reap(plan->guard);
    if (failed == 0 && n <= 0)
        session_give_back(plan->session); /* `rlock acquire` has died */
    _exit(0);
}

/* ---- in the process that starts the daemon ---- */

enum exit_reason renew_daemon_open_log(struct renew_daemon_log *log, const struct session *session)
{
    const struct report *report = &session->report;
    const char *path = session->options->log;
    char why[300];

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
    log->fd = outfile_open(path);
    if (log->fd >= 0)
        return REASON_GRANTED;
    snprintf(why, sizeof why, "log: %.150s: %s", path, outfile_error(errno));
    return report_fault(report, REASON_MISCONFIGURED, why, 0);
}

/* What the daemon or the guard tells: 0, or an errno; ECHILD: the daemon has ended. */
static int hear(const struct renew_daemon *daemon)
{
    int failed;

    return recv(daemon->fd, &failed, sizeof failed, 0) > 0 ? failed : ECHILD;
}

int renew_daemon_start(struct renew_daemon *daemon, const struct supervise_plan *plan, pid_t bound,
                       const struct renew_daemon_log *log)
{
    struct session *session = plan->session;
    struct cgroup none = CGROUP_NONE;
    char program[32];
    char name[64];
    struct guard_plan guard_plan = {.bound = bound,
                                    .name = name,
                                    .cgroup = &none,
                                    .keep_fd = session->private_server.users_fd,
                                    .hook_fd = -1,
                                    .lock = session->lock,
                                    .report = &session->report};
    struct supervise_plan own = *plan;
    int fd;
    int failed;

    proctree_name(bound, program);
    snprintf(name, sizeof name, "process %d (%s)", (int)bound, program);
    own.kind = bound != 0 ? SUPERVISE_BOUND : SUPERVISE_HOLD;
    own.guard_plan = &guard_plan;
    daemon->pid = child_fork(&fd);
    if (daemon->pid == 0) {
        guard_plan.begun_fd = fd;
        report_redirect(&session->report, log->to);
        be_daemon(&own, log, fd);
    }
    if (daemon->pid < 0)
        return errno;
    daemon->fd = fd;
    failed = hear(daemon);
    if (failed != 0)
        renew_daemon_cancel(daemon);
    return failed;
}

int renew_daemon_begin(const struct renew_daemon *daemon)
{
    enum renew_daemon_order order = RENEW_DAEMON_BEGIN;
    int failed;

    (void)!send(daemon->fd, &order, sizeof order, MSG_NOSIGNAL);
    failed = hear(daemon);
    if (failed == 0)
        close(daemon->fd);
    return failed;
}

void renew_daemon_cancel(const struct renew_daemon *daemon)
{
    enum renew_daemon_order order = RENEW_DAEMON_CANCEL;

    (void)!send(daemon->fd, &order, sizeof order, MSG_NOSIGNAL);
    close(daemon->fd);
    while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

enum exit_reason renew_daemon_stay(const struct supervise_plan *plan, pid_t bound,
                                   const struct renew_daemon_log *log, renew_daemon_print *print,
                                   void *context)
{
    const struct report *report = &plan->session->report;
    struct renew_daemon daemon;
    int failed = renew_daemon_start(&daemon, plan, bound, log);
    enum exit_reason reason;

    if (failed)
        return report_fault(report, REASON_SYSTEM,
                            "the process that renews the lock could not be started", failed);
    reason = print(context, daemon.pid);
    failed = reason == REASON_GRANTED ? renew_daemon_begin(&daemon) : 0;
    if (failed == ETIMEDOUT)
        reason = report_fault(
            report, REASON_LOST,
            "the lease ended before the process that renews it had begun: use a longer --ttl", 0);
    else if (failed)
        reason = report_fault(report, REASON_SYSTEM,
                              "the process that renews the lock could not begin", failed);
    if (reason == REASON_GRANTED)
        session_disown(plan->session);
    else
        renew_daemon_cancel(&daemon);
    return reason;
}
