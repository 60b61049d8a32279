/* SPDX-License-Identifier: MIT */
/* timing: when a lease ends, and how its TTL is divided. */
#ifndef TIMING_H
#define TIMING_H

#include "rlock.h"

/*
 * timing_expires_ms: until when a lease of this TTL certainly lasts, on rlock_clock_ms().
 *
 *   sent_ms  the moment before its request was sent
 */
int64_t timing_expires_ms(int64_t ttl_ms, int64_t sent_ms);

/*
 * timing_shorten: divide `ttl_ms` instead, if it is shorter: a lock under a parent lock lasts no
 * longer than that one. Keeps the time from TERM to KILL if it fits, else takes the usual one.
 */
void timing_shorten(struct rlock_timing *timing, int64_t ttl_ms);

#endif
