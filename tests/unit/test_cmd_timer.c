/* SPDX-License-Identifier: MIT */
/* test_cmd_timer: a timer becomes readable at its time, and not before. */
#include "base/clock.h"
#include "process/timer.h"
#include "tap.h"

#include <poll.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static bool is_readable(int timer, int within_ms)
{
    return poll(&(struct pollfd){.fd = timer, .events = POLLIN}, 1, within_ms) == 1;
}

int main(void)
{
    int timer = timer_open();
    int64_t at_ms = 0;

    if (!ok(timer >= 0, "a timer is opened"))
        return done_testing();
    timer_set(timer, 0);
    ok(is_readable(timer, PATIENCE_MS), "a time in the past makes the timer readable");
    timer_set(timer, RLOCK_NEVER);
    ok(!is_readable(timer, 10), "a timer that is set to RLOCK_NEVER is not readable");
    for (int i = 0; i < 3; i++) {
        at_ms = rlock_clock_ms() + 100;
        timer_set(timer, at_ms);
        ok(is_readable(timer, PATIENCE_MS), "the timer becomes readable");
        ok(rlock_clock_ms() >= at_ms, "the timer was not readable before its time");
    }
    close(timer);
    return done_testing();
}
