/* SPDX-License-Identifier: MIT */
/* supervise: from a grant to an exit reason: the command, its guard, the renewer, the release. */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "options/options.h"
#include "output/report.h"
#include "process/signals.h"
#include "session/private_server.h"
#include "supervise/guard_client.h"

/* All pointers are borrowed. */
struct supervise_plan {
    const struct options *options;
    const struct report *report;
    const struct signals *signals;
    struct rlock *lock; /* granted */
    const struct rlock_grant *grant;
    int64_t granted_ms; /* when the grant came, on rlock_clock_ms() */
    bool has_waited;    /* for the lock: others may wait behind us, and come first at the end */
    struct private_server *private_server; /* the private server, if the lock is on one */
    struct guard_client *guard;            /* prepared, or not yet */
    const struct guard_plan *guard_plan;
};

struct supervise_result {
    int status; /* the command's, as wait(2) gives it */
    int64_t renewals;
    int64_t paused_ms;  /* how long the command was frozen, in all */
    int interrupted_by; /* the signal that came before the command was started; 0: none */
    int from_terminal;  /* the last signal that the terminal sent to the whole job; 0: none */
    bool is_releasing;  /* a process that stays behind tries to release, and may need a password */
};

/*
 * supervise: run the command under the lease, release the lock, and say how the run went. Blocks as
 * long as the command runs. Returns how the run ended.
 */
enum exit_reason supervise(const struct supervise_plan *plan, struct supervise_result *result);

#endif
