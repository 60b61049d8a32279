/* SPDX-License-Identifier: MIT */
/* clock: a clock that goes on while the machine is suspended, and deadlines on it. */
#ifndef CLOCK_H
#define CLOCK_H

#include "rlock.h"

#include <stdbool.h>

/* clock_us: the time of rlock_clock_ms(), in microseconds. */
int64_t clock_us(void);

/* clock_wall_us: Unix time in microseconds, as this machine's clock has it. */
int64_t clock_wall_us(void);

/* No limit of time, and no stop descriptor. */
extern const struct rlock_deadline deadline_never;

/* deadline_at: the same deadline, but no later than `at_ms`; the stop descriptor is kept. */
struct rlock_deadline deadline_at(struct rlock_deadline deadline, int64_t at_ms);

/* deadline_in: the same deadline, but no later than `ms` from now. */
struct rlock_deadline deadline_in(struct rlock_deadline deadline, int64_t ms);

/* deadline_has_passed: has its time come? The stop descriptor is not looked at. */
bool deadline_has_passed(struct rlock_deadline deadline);

/* deadline_poll_ms: the time left, as a timeout for poll(2); -1 for RLOCK_NEVER. */
int deadline_poll_ms(struct rlock_deadline deadline);

/*
 * clock_sleep: block until the deadline has passed (RLOCK_TIMEOUT), or its stop descriptor is
 * readable (RLOCK_STOPPED).
 */
enum rlock_status clock_sleep(struct rlock_deadline deadline);

#endif
