/* SPDX-License-Identifier: MIT */
/* supervise: runs the command under a grant, releases the lock, and returns the reason to exit. */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "session/session.h"
#include "supervise/guard_client.h"

/* What supervise() needs. All pointers are borrowed. */
struct supervise_plan {
    struct session *session;         /* its lock was granted */
    const struct rlock_grant *grant; /* the grant of that lock */
    int64_t granted_ms;              /* when the grant arrived, on rlock_clock_ms() */
    bool has_waited; /* the lock was not free at once, so other processes may wait behind us */
    struct guard_client *guard; /* forked already, or not yet */
    const struct guard_plan *guard_plan;
};

struct supervise_result {
    int status;        /* the command's exit status, as wait(2) gives it */
    int64_t renewals;  /* how many renewals the server has confirmed */
    int64_t paused_ms; /* for how long the command was frozen, in all */
    int from_terminal; /* the last signal that the terminal sent to the whole job; 0: none */
    bool is_releasing; /* a forked process goes on to release the lock, and may need the password */
};

/*
 * supervise: run the command under the grant, release the lock, and return why rlock exits. Blocks
 * as long as the command runs. If a signal came before the command was started, the result is
 * REASON_INTERRUPTED, and session->interrupted_by is that signal.
 */
enum exit_reason supervise(const struct supervise_plan *plan, struct supervise_result *result);

#endif
