/* SPDX-License-Identifier: MIT */
/* supervise: from a grant to a verdict: the command, its guard, the keeper, the release. */
#ifndef HOLD_H
#define HOLD_H

#include "options/options.h"
#include "output/report.h"
#include "process/signals.h"
#include "session/local.h"
#include "supervise/guard_client.h"

/* All borrowed. */
struct hold_plan {
    const struct options *options;
    const struct report *report;
    const struct signals *signals;
    struct rlock *lock; /* granted */
    const struct rlock_grant *grant;
    int64_t granted_ms;  /* when it came */
    bool has_waited;     /* for the lock: then somebody may wait behind us, and comes before us */
    struct local *local; /* the private server whose lock it is, if it is one's */
    struct guard *guard; /* prepared, or not yet */
    const struct ward_plan *ward;
};

struct hold_result {
    int status; /* the command's, as wait(2) gives it */
    int64_t renewals;
    int64_t paused_ms;  /* how long the command was frozen, in all */
    int interrupted_by; /* the signal that came before the command was started; 0: none */
    int from_terminal;  /* the last signal that the terminal sent to all of us; 0: none */
    bool is_releasing;  /* a process of its own tries on, and may need a password for that */
};

/* hold: run the command under the lease, give the lease back, and say how it went. */
enum verdict hold(const struct hold_plan *plan, struct hold_result *result);

#endif
