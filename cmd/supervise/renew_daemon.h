/* SPDX-License-Identifier: MIT */
/* renew_daemon: a process that stays behind, and renews a lease until another process ends. */
#ifndef ATTEND_H
#define ATTEND_H

#include "session/session.h"
#include "supervise/bound.h"

struct attendant {
    pid_t pid;
    int fd;
};

/* Where it says what it does. */
struct attend_log {
    enum report_to to;
    int fd; /* REPORT_TO_LOG: a file that is open for it; -1: our stderr, if that may be kept */
};

/*
 * attend_start: fork it, away from the terminal and all descriptors that rlock
 * was started with. Back when it is ready. 0, or an errno: then there is none.
 */
int attend_start(struct attendant *attendant, struct session *session,
                 const struct rlock_grant *grant, const struct bound *bound,
                 const struct attend_log *log);

/* attend_begin: the lease is its from now on, and not ours to give back. */
bool attend_begin(const struct attendant *attendant);

/* attend_cancel: it ends, and leaves the lease to us. */
void attend_cancel(const struct attendant *attendant);

#endif
