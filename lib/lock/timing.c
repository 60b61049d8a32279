/* SPDX-License-Identifier: MIT */
/*
 * timing: how a TTL is divided between renewing, stopping the command and drift.
 *
 * The end of a lease is counted from before its request was sent, so the way
 * to the server costs validity and never safety. 1 % covers clocks that run
 * at different rates, 2 ms the server's expiry granularity and rounding: the
 * allowance of the Redlock description ("Distributed Locks with Redis").
 */
#include "lock/timing.h"

#include "base/err.h"

#define DRIFT_PER_TTL 100
#define DRIFT_MS 2
#define REPLY_MAX_MS 2000
#define GRACE_MAX_MS 5000
#define MARGIN_MIN_MS 250

static int64_t at_least(int64_t value, int64_t bound)
{
    return value > bound ? value : bound;
}

static int64_t at_most(int64_t value, int64_t bound)
{
    return value < bound ? value : bound;
}

int64_t timing_end(const struct rlock_timing *timing, int64_t sent_ms)
{
    return sent_ms + timing->ttl_ms - timing->ttl_ms / DRIFT_PER_TTL - DRIFT_MS;
}

enum rlock_status rlock_timing_fit(int64_t ttl_ms, int64_t kill_after_ms,
                                   struct rlock_timing *timing, struct rlock_error *err)
{
    struct rlock_timing t = {.ttl_ms = ttl_ms};
    int64_t most;

    if (ttl_ms < RLOCK_TTL_MIN_MS || ttl_ms > RLOCK_TTL_MAX_MS)
        return err_set(err, RLOCK_E_USAGE, 0, "ttl must be from 1s to 30d");
    t.renew_ms = ttl_ms / 3;
    t.reply_ms = at_most(ttl_ms / 10, REPLY_MAX_MS);
    t.kill_margin_ms = at_least(ttl_ms / 100, MARGIN_MIN_MS);
    t.grace_ms = kill_after_ms < 0 ? at_most(ttl_ms / 6, GRACE_MAX_MS) : kill_after_ms;
    most = timing_end(&t, 0) - t.renew_ms - 2 * t.reply_ms - t.kill_margin_ms;
    if (t.grace_ms > most)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "kill-after of %lld ms doesn't fit into a ttl of %lld ms beside its "
                       "renewals: at most %lld ms",
                       (long long)t.grace_ms, (long long)ttl_ms, (long long)most);
    *timing = t;
    return RLOCK_OK;
}

void timing_shorten(struct rlock_timing *timing, int64_t ttl_ms)
{
    if (ttl_ms >= timing->ttl_ms)
        return;
    if (rlock_timing_fit(ttl_ms, timing->grace_ms, timing, NULL) != RLOCK_OK)
        (void)!rlock_timing_fit(ttl_ms, -1, timing, NULL);
}
