/* SPDX-License-Identifier: MIT */
/* timer: a descriptor that becomes readable at a time on rlock_clock_ms(). */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

/* timer_open: not set yet; close on exec. -1: errno says why. */
int timer_open(void);

/* timer_set: at once if the time has passed; RLOCK_NEVER: not at all. */
void timer_set(int timer, int64_t at_ms);

#endif
