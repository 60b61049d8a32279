/* SPDX-License-Identifier: MIT */
/* renew_daemon: a process that stays behind, and renews a lease until another process ends. */
#ifndef RENEW_DAEMON_H
#define RENEW_DAEMON_H

#include "session/session.h"
#include "supervise/deadline_killer.h"

struct renew_daemon {
    pid_t pid;
    int fd;
};

/* Where it says what it does. */
struct renew_daemon_log {
    enum report_to to;
    int fd; /* REPORT_TO_LOG: a file that is open for it; -1: our stderr, if that may be kept */
};

/*
 * renew_daemon_start: fork it, away from the terminal and all descriptors that rlock
 * was started with. Back when it is ready. 0, or an errno: then there is none.
 */
int renew_daemon_start(struct renew_daemon *daemon, struct session *session,
                       const struct rlock_grant *grant, const struct bound_process *bound,
                       const struct renew_daemon_log *log);

/* renew_daemon_begin: the lease is its from now on, and not ours to give back. */
bool renew_daemon_begin(const struct renew_daemon *daemon);

/* renew_daemon_cancel: it ends, and leaves the lease to us. */
void renew_daemon_cancel(const struct renew_daemon *daemon);

#endif
