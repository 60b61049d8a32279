/* SPDX-License-Identifier: MIT */
/*
 * wait: ask again and again, until there is an answer or time is over.
 *
 * Between two attempts it sleeps for a jittered interval, or until the
 * holder's lease ends if that comes first.
 */
#include "wait.h"

#include "clock.h"
#include "err.h"
#include "random.h"

#define POLL_LOW_MS 50
#define POLL_HIGH_MS 250
#define RETRY_LOW_MS 20
#define RETRY_HIGH_MS 200
#define STOPPED_MS 500 /* who was told to stop can wait no longer to take a request back */
#define EXPIRY_MS 2    /* the server lets a key go up to a tick after its time */

static int64_t pause_before_next(enum rlock_status st, const struct rlock_obstacle *obstacle)
{
    int64_t pause = random_between(POLL_LOW_MS, POLL_HIGH_MS);

    if (st != RLOCK_BUSY)
        return random_between(RETRY_LOW_MS, RETRY_HIGH_MS);
    if (obstacle->left_ms >= 0 && obstacle->left_ms + EXPIRY_MS < pause)
        return obstacle->left_ms + EXPIRY_MS;
    return pause;
}

/* Outcomes and faults that may pass by themselves. */
static bool may_pass(enum rlock_status st)
{
    return st == RLOCK_E_UNREACHABLE || st == RLOCK_E_SERVER || st == RLOCK_E_NO_QUORUM ||
           st == RLOCK_BUSY || st == RLOCK_PENDING;
}

/* Asking once is over with any answer; a request that got none is asked again. */
static bool answered_once(const struct quorum *quorum, enum rlock_status st)
{
    return st == RLOCK_BUSY || (st != RLOCK_PENDING && !quorum->in_doubt);
}

static enum rlock_status ask_until(struct quorum *quorum, struct lease *lease,
                                   struct rlock_until until, struct rlock_grant *grant,
                                   struct rlock_obstacle *obstacle, struct rlock_error *err)
{
    struct rlock_until first = until;
    struct rlock_until ends = until;
    bool once = until_over(until);
    bool was_there = false; /* a server that never answered is a fault, not a wait */
    enum rlock_status st;

    first.at_ms = rlock_clock_ms() + quorum->connect_ms;
    if (once || until.at_ms == RLOCK_NEVER)
        ends = first;
    for (;;) {
        st = quorum_acquire(quorum, lease, ends, grant, obstacle, err);
        if (!may_pass(st) || (once && answered_once(quorum, st)))
            return st;
        was_there = was_there || st == RLOCK_BUSY || st == RLOCK_PENDING;
        if (was_there && !once)
            ends = until;
        if (clock_sleep(until_in(ends, pause_before_next(st, obstacle))) == RLOCK_STOPPED)
            return RLOCK_STOPPED;
        if (until_over(ends))
            return was_there ? RLOCK_TIMEOUT : st;
    }
}

/* An attempt was executed, or may be yet: this token will not be used again. */
static void take_back(struct quorum *quorum, const struct lease *lease, enum rlock_status st,
                      struct rlock_error *err)
{
    struct rlock_until until = {RLOCK_NEVER, -1};

    if (st == RLOCK_STOPPED)
        until = until_in(until, STOPPED_MS);
    if (quorum_release(quorum, lease, until, NULL) >= RLOCK_E_USAGE && st >= RLOCK_E_USAGE)
        err_suffix(err, "the lock may stay taken until its ttl ends");
}

enum rlock_status wait_acquire(struct quorum *quorum, struct lease *lease, struct rlock_until until,
                               struct rlock_grant *grant, struct rlock_obstacle *obstacle,
                               struct rlock_error *err)
{
    enum rlock_status st = ask_until(quorum, lease, until, grant, obstacle, err);

    if (st != RLOCK_OK && quorum->in_doubt)
        take_back(quorum, lease, st, err);
    return st;
}

enum rlock_status wait_release(struct quorum *quorum, const struct lease *lease,
                               struct rlock_until until, struct rlock_error *err)
{
    bool may_be_done = false; /* an earlier request of ours got no answer */
    enum rlock_status st;

    do {
        st = quorum_release(quorum, lease, until, err);
        if (st == RLOCK_LOST && may_be_done)
            return RLOCK_OK;
        may_be_done = may_be_done || quorum_unanswered(quorum);
    } while (may_pass(st) &&
             clock_sleep(until_in(until, pause_before_next(st, NULL))) != RLOCK_STOPPED &&
             !until_over(until));
    return st;
}
