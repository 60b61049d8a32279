/* SPDX-License-Identifier: MIT */
/* clock: reads a clock that counts while the machine is suspended, and sets deadlines on it. */
#ifndef CLOCK_H
#define CLOCK_H

#include "rlock.h"

#include <stdbool.h>

/* clock_us: the time on the clock of rlock_clock_ms(), in microseconds. */
int64_t clock_us(void);

/* clock_wall_us: Unix time in microseconds, from the clock of this machine. */
int64_t clock_wall_us(void);

/* clock_earlier: the earlier of two times, or the shorter of two lengths. */
static inline int64_t clock_earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* clock_later: the later of two times. */
static inline int64_t clock_later(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* deadline_never: a deadline that never passes, and that has no stop descriptor. */
extern const struct rlock_deadline deadline_never;

/*
 * deadline_at: return a deadline at the earlier of two times: that of `deadline`, and `at_ms` (on
 * rlock_clock_ms()). The result has the stop descriptor of `deadline`.
 */
struct rlock_deadline deadline_at(struct rlock_deadline deadline, int64_t at_ms);

/* deadline_in: call deadline_at() with the time that is `ms` milliseconds from now. */
struct rlock_deadline deadline_in(struct rlock_deadline deadline, int64_t ms);

/* deadline_has_passed: has the deadline's time come? Ignores the stop descriptor. */
bool deadline_has_passed(struct rlock_deadline deadline);

/* deadline_poll_ms: the time left until the deadline, as a timeout for poll(2); -1: no limit. */
int deadline_poll_ms(struct rlock_deadline deadline);

/*
 * clock_sleep: block until the deadline has passed (returns RLOCK_TIMEOUT), or until its stop
 * descriptor is readable (returns RLOCK_STOPPED).
 */
enum rlock_status clock_sleep(struct rlock_deadline deadline);

#endif
