/* SPDX-License-Identifier: MIT */
/* timing: computes when a lease ends, and when to renew it and to end the command. */
#ifndef TIMING_H
#define TIMING_H

#include "rlock.h"

#include <stdbool.h>

/*
 * timing_expires_ms: the time, on rlock_clock_ms(), until which a lease of this TTL surely lasts.
 *
 *   sent_ms  the time just before the request was sent
 */
int64_t timing_expires_ms(int64_t ttl_ms, int64_t sent_ms);

/* A release grants no lock directly whose TTL is shorter than this. */
#define TIMING_DIRECT_TTL_MS 3000
/*
 * How long rlock waits for the reply to the first renewal of a direct lease. Then it renews once
 * more, by a new connection, and waits as long as for any renewal. If a packet is lost, the second
 * renewal comes much sooner than TCP sends the packet again.
 */
#define TIMING_DIRECT_REPLY_MS 50

/*
 * timing_is_direct: was the lease, which ends at `expires_ms`, granted by a release, for much less
 * than `ttl_ms`? Such a lease has the times of timing_of_direct().
 *
 *   sent_ms  the time just before the request was sent from which the lease counts
 */
bool timing_is_direct(int64_t ttl_ms, int64_t sent_ms, int64_t expires_ms);

/*
 * timing_of_direct: the times of a lease that a release has granted, until its first renewal.
 *
 *   lasts_ms  how long the lease surely lasts, counted from before the request was sent
 *
 * Returns  renew_ms: how long after the grant to renew the lease for the first time; reply_ms:
 *          TIMING_DIRECT_REPLY_MS, and when to try again if the renewer's thread can't be started;
 *          kill_margin_ms: as for other leases; grace_ms: 50 ms
 */
struct rlock_timing timing_of_direct(int64_t lasts_ms);

/*
 * timing_shorten: compute all times anew for `ttl_ms`, if that is shorter than timing->ttl_ms. The
 * caller needs this if a parent holds a lock: the parent's lease may have a shorter TTL. Keeps
 * grace_ms if it fits, else takes the default.
 */
void timing_shorten(struct rlock_timing *timing, int64_t ttl_ms);

#endif
