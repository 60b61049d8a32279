/* SPDX-License-Identifier: MIT */
/* timing: how a TTL is divided between renewing, stopping the command and drift. */
#ifndef TIMING_H
#define TIMING_H

#include "rlock.h"

/* timing_end: the end of a lease whose request was sent at `sent_ms`. */
int64_t timing_end(const struct rlock_timing *timing, int64_t sent_ms);

/* timing_shorten: divide a shorter TTL, with as much of the time from TERM to KILL as fits. */
void timing_shorten(struct rlock_timing *timing, int64_t ttl_ms);

#endif
