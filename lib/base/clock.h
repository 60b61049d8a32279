/* SPDX-License-Identifier: MIT */
/* clock: time that also counts suspended time, and deadlines on it. */
#ifndef CLOCK_H
#define CLOCK_H

#include "rlock.h"

#include <stdbool.h>

/* clock_us: rlock_clock_ms(), finer. clock_wall_us: what this machine takes for Unix time. */
int64_t clock_us(void);
int64_t clock_wall_us(void);

/* deadline_at: the earlier of `until` and a moment; the stop descriptor is kept. */
struct rlock_deadline deadline_at(struct rlock_deadline deadline, int64_t at_ms);

/* deadline_in: the earlier of `until` and so long from now. */
struct rlock_deadline deadline_in(struct rlock_deadline deadline, int64_t ms);

/* deadline_has_passed: has the time come? */
bool deadline_has_passed(struct rlock_deadline deadline);

/* deadline_poll_ms: a timeout for poll(2), rounded up; -1 for RLOCK_NEVER. */
int deadline_poll_ms(struct rlock_deadline deadline);

/*
 * clock_sleep: wait until the time has come (RLOCK_TIMEOUT) or the stop
 * descriptor is readable (RLOCK_STOPPED).
 */
enum rlock_status clock_sleep(struct rlock_deadline deadline);

#endif
