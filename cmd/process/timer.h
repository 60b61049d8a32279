/* SPDX-License-Identifier: MIT */
/* timer: a descriptor that becomes readable at a time on rlock_clock_ms(). */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

/* timer_open: a timer that is not set; it closes on exec. -1: errno says why. */
int timer_open(void);

/* timer_set: set it anew. A time in the past: readable at once; RLOCK_NEVER: never. */
void timer_set(int timer, int64_t at_ms);

#endif
