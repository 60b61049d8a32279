/* SPDX-License-Identifier: MIT */
/* renew_daemon: a process that stays behind, and renews a lease until another process ends. */
#ifndef RENEW_DAEMON_H
#define RENEW_DAEMON_H

#include "session/session.h"
#include "supervise/deadline_killer.h"

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
 * renew_daemon_start: fork the daemon, which leaves the terminal and closes all descriptors that
 * rlock was started with. Blocks until the daemon is ready. Returns 0, or an errno if there is no
 * daemon.
 */
int renew_daemon_start(struct renew_daemon *daemon, struct session *session,
                       const struct rlock_grant *grant, const struct bound_process *bound,
                       const struct renew_daemon_log *log);

/*
 * renew_daemon_begin: let the daemon begin to renew. From now on the daemon releases the lease, not
 * the caller. False: the daemon has ended.
 */
bool renew_daemon_begin(const struct renew_daemon *daemon);

/* renew_daemon_cancel: let the daemon exit, and wait for that. The caller keeps the lease. */
void renew_daemon_cancel(const struct renew_daemon *daemon);

#endif
