/* SPDX-License-Identifier: MIT */
/* timer: a descriptor that becomes readable at a time on rlock_clock_ms(). */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

/* timer_open: open a timer that is not set. Returns its descriptor, or -1 with errno. */
int timer_open(void);

/*
 * timer_set: make the timer readable at `at_ms`, on rlock_clock_ms(): at once if that is past, and
 * never with RLOCK_NEVER. Replaces the earlier time.
 */
void timer_set(int timer, int64_t at_ms);

#endif
