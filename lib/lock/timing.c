/* SPDX-License-Identifier: MIT */
/*
 * timing: computes when a lease ends, and when to renew it and to end the command.
 *
 * A TTL is divided so that the replies to two renewals may be lost before the command gets TERM,
 * and so that KILL comes before the lease ends:
 *
 *     |--- renew ---|- reply -|- reply -|- slack -|- grace -|- kill margin -|- drift -|
 *     sent          renewal   again     ...       TERM      KILL            expires   TTL ends
 *
 * Drift: 1 % of the TTL, because the clocks of client and server run at different rates, and 2 ms,
 * because the server rounds the expiry. Source: "Distributed Locks with Redis".
 */
#include "lock/timing.h"

#include "base/clock.h"
#include "base/err.h"

#define DRIFT_PART 100 /* the drift is ttl_ms / DRIFT_PART + DRIFT_MS */
#define DRIFT_MS 2
#define REPLY_MAX_MS 2000
#define GRACE_MAX_MS 5000
#define KILL_MARGIN_MIN_MS 250

/*
 * Counts from before the request was sent, and not from when the reply is read: the server counts
 * the TTL from the grant, and meanwhile the reply may be delayed, or this process stopped.
 */
int64_t timing_expires_ms(int64_t ttl_ms, int64_t sent_ms)
{
    return sent_ms + ttl_ms - ttl_ms / DRIFT_PART - DRIFT_MS;
}

enum rlock_status rlock_timing_fit(int64_t ttl_ms, int64_t kill_after_ms,
                                   struct rlock_timing *timing, struct rlock_error *err)
{
    struct rlock_timing t = {.ttl_ms = ttl_ms};
    int64_t grace_max_ms;

    if (ttl_ms < RLOCK_TTL_MIN_MS || ttl_ms > RLOCK_TTL_MAX_MS)
        return err_set(err, RLOCK_E_USAGE, 0, "ttl must be from 1s to 30d");
    t.renew_ms = ttl_ms / 3;
    t.reply_ms = clock_earlier(ttl_ms / 10, REPLY_MAX_MS);
    t.kill_margin_ms = clock_later(ttl_ms / 100, KILL_MARGIN_MIN_MS);
    t.grace_ms = kill_after_ms < 0 ? clock_earlier(ttl_ms / 6, GRACE_MAX_MS) : kill_after_ms;
    grace_max_ms = timing_expires_ms(ttl_ms, 0) - t.renew_ms - 2 * t.reply_ms - t.kill_margin_ms;
    if (t.grace_ms > grace_max_ms)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "kill-after of %lld ms doesn't fit into a ttl of %lld ms beside its "
                       "renewals: at most %lld ms",
                       (long long)t.grace_ms, (long long)ttl_ms, (long long)grace_max_ms);
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
