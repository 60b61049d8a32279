/* SPDX-License-Identifier: MIT */
/* renew_daemon: a process that stays behind, and renews the lease of a bound process or a hold. */
#ifndef RENEW_DAEMON_H
#define RENEW_DAEMON_H

#include "supervise/supervise.h"

/* The daemon, as `rlock acquire` sees it. */
struct renew_daemon {
    pid_t pid;
    int fd; /* socket to the daemon */
};

/* Where the daemon writes its messages. */
struct renew_daemon_log {
    enum report_to to;
    int fd; /* REPORT_TO_LOG: the open log file; -1: rlock's stderr, if it is a file or terminal */
};

/*
 * renew_daemon_open_log: open the file of --log; without --log leave `log` as it is. Call it before
 * session_acquire(), so that a failure ends rlock in time. Returns REASON_GRANTED, or the reason
 * that was reported.
 */
enum exit_reason renew_daemon_open_log(struct renew_daemon_log *log, const struct session *session);

/*
 * renew_daemon_start: fork the daemon, which leaves the terminal and closes the descriptors that
 * rlock was started with, but may keep stderr as its log. Blocks until the daemon is ready. Returns
 * 0, or an errno if there is no daemon.
 *
 *   plan   what to supervise; the fields `kind`, `guard_plan` and `timer` are not used
 *   bound  process to bind to, after proctree_bind(); 0: renew for `plan->max_hold_ms`
 */
int renew_daemon_start(struct renew_daemon *daemon, const struct supervise_plan *plan, pid_t bound,
                       const struct renew_daemon_log *log);

/*
 * renew_daemon_begin: let the daemon begin to renew, and to end a bound process before the lease
 * ends. Blocks until the daemon has begun. From then on the daemon releases the lease, not the
 * caller. Returns 0, or an errno: ECHILD if the daemon has ended, ETIMEDOUT if the lease has.
 */
int renew_daemon_begin(const struct renew_daemon *daemon);

/* renew_daemon_cancel: let the daemon exit, and wait for its end. The caller keeps the lease. */
void renew_daemon_cancel(const struct renew_daemon *daemon);

/*
 * renew_daemon_stay: start the daemon, call `print` with its pid to tell the user of the grant, and
 * let the daemon begin. If one of these fails, report why, and cancel the daemon. Returns the
 * reason that was reported; or REASON_GRANTED: then the daemon releases the lease.
 */
typedef enum exit_reason renew_daemon_print(void *context, pid_t pid);
enum exit_reason renew_daemon_stay(const struct supervise_plan *plan, pid_t bound,
                                   const struct renew_daemon_log *log, renew_daemon_print *print,
                                   void *context);

#endif
