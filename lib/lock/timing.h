/* SPDX-License-Identifier: MIT */
/* timing: computes when a lease ends, and when to renew it and to end the command. */
#ifndef TIMING_H
#define TIMING_H

#include "rlock.h"

/*
 * timing_expires_ms: the time, on rlock_clock_ms(), until which a lease of this TTL surely lasts.
 *
 *   sent_ms  the time just before the request was sent
 */
int64_t timing_expires_ms(int64_t ttl_ms, int64_t sent_ms);

/*
 * timing_shorten: compute all times anew for `ttl_ms`, if that is shorter than timing->ttl_ms: a
 * parent's lease may have a shorter TTL. Keeps grace_ms if it fits, else sets its default.
 */
void timing_shorten(struct rlock_timing *timing, int64_t ttl_ms);

#endif
