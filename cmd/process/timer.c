/* SPDX-License-Identifier: MIT */
/* timer: a descriptor that becomes readable at a time on rlock_clock_ms(). */
#include "process/timer.h"

#include <rlock.h>
#include <sys/timerfd.h>

int timer_open(void)
{
    /* the clock of rlock_clock_ms(), which also runs while the machine is suspended */
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void timer_set(int timer, int64_t at_ms)
{
    struct itimerspec when = {.it_value = {.tv_sec = 0}};

    if (at_ms != RLOCK_NEVER) {
        when.it_value.tv_sec = (time_t)(at_ms / 1000);
        /* + 1: a time of 0 would disarm the timer */
        when.it_value.tv_nsec = (long)(at_ms % 1000 * 1000000) + 1;
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}
