/* SPDX-License-Identifier: MIT */
/*
 * timing: when a lease ends, and how its TTL is divided.
 *
 * A lease is divided so that two replies may be lost, and the command is still
 * ended before the lease is:
 *
 *     |--- renew ---|- reply -|- reply -|- slack -|- grace -|- kill margin -|- drift -|
 *     sent          renewal   again     ...       TERM      KILL            expires   TTL ends
 *
 * Source of the drift: "Distributed Locks with Redis". 1 % of the TTL is for clocks
 * that run at different rates, 2 ms for the server's expiry, which is rounded.
 */
#include "lock/timing.h"

#include "base/err.h"

#define DRIFT_PART 100 /* one of so many parts of the TTL */
#define DRIFT_MS 2
#define REPLY_MAX_MS 2000
#define GRACE_MAX_MS 5000
#define KILL_MARGIN_MIN_MS 250

static int64_t at_least(int64_t value, int64_t bound)
{
    return value > bound ? value : bound;
}

static int64_t at_most(int64_t value, int64_t bound)
{
    return value < bound ? value : bound;
}

/*
 * 1. The server grants the lock, and counts its TTL from then on.
 * 2. We are stopped, or the reply is delayed, for a while.
 * 3. We read the reply; of the TTL less is left than we would count from now.
 * So the end is counted from before the request was sent: what the way to the server and back takes
 * makes the lease shorter for us, never longer than it is.
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
    t.reply_ms = at_most(ttl_ms / 10, REPLY_MAX_MS);
    t.kill_margin_ms = at_least(ttl_ms / 100, KILL_MARGIN_MIN_MS);
    t.grace_ms = kill_after_ms < 0 ? at_most(ttl_ms / 6, GRACE_MAX_MS) : kill_after_ms;
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
