/* SPDX-License-Identifier: MIT */
/* supervise: runs the command under a grant, releases the lock, and returns the reason to exit. */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "session/session.h"
#include "supervise/guard_client.h"
#include "supervise/supervise_state.h"

/* What supervise() needs. All pointers are borrowed. */
struct supervise_plan {
    enum supervise_kind kind;
    int64_t max_hold_ms;             /* --max-hold, or the length of a hold; 0: no limit */
    struct session *session;         /* its lock was granted */
    const struct rlock_grant *grant; /* the grant of that lock */
    int64_t granted_ms;              /* when the grant arrived, on rlock_clock_ms() */
    /* Of a command: forked already, or not yet. Of a bound process: started by supervise_bind(), if
     * a guard is needed. Of a hold: not used. */
    struct guard_client *guard;
    const struct guard_plan *guard_plan; /* for a hold not used */
    int timer;                           /* the caller's, which supervise() closes; -1: none yet */
};

struct supervise_result {
    int status;        /* the command's exit status, as wait(2) gives it */
    int64_t renewals;  /* how many renewals the server has confirmed */
    int64_t paused_ms; /* for how long the command was frozen, in all */
    int from_terminal; /* the last signal that the terminal sent to the whole job; 0: none */
    bool is_releasing; /* a forked process goes on to release the lock, and may need the password */
};

/*
 * supervise_prepare: fork the guard of a bound process, unless --on-lost is ignore. As yet the
 * guard ends nothing, and exits if the caller dies. supervise_bind: from now on the guard ends the
 * bound process before the lease ends, also if the caller dies. Blocks until the guard has agreed.
 * Both return 0, or an errno; ETIMEDOUT: the time of TERM has come.
 */
int supervise_prepare(const struct supervise_plan *plan);
int supervise_bind(const struct supervise_plan *plan);

/*
 * supervise: run the command under the grant, or renew the lease until a bound process or a hold
 * has ended or the lock is lost; release the lock, and return why rlock exits. Blocks. If a signal
 * came before the command's start: REASON_INTERRUPTED, and session->interrupted_by is that signal.
 */
enum exit_reason supervise(const struct supervise_plan *plan, struct supervise_result *result);

#endif
