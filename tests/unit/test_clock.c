/* SPDX-License-Identifier: MIT */
/* test_clock: how deadlines are calculated, when they have passed, and what ends a sleep. */
#include "base/clock.h"
#include "tap.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

static const struct rlock_deadline never = {RLOCK_NEVER, 7};

static void test_clock(void)
{
    struct timespec boot;
    int64_t before = rlock_clock_ms();
    int64_t after;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    after = rlock_clock_ms();
    ok(before <= boot.tv_sec * 1000 + boot.tv_nsec / 1000000 &&
       boot.tv_sec * 1000 + boot.tv_nsec / 1000000 <= after);
}

static void test_arithmetic(void)
{
    struct rlock_deadline deadline = {1000, 7};
    int64_t now;

    is_int(deadline_at(deadline, 999).at_ms, 999, "deadline_at() returns an earlier time");
    is_int(deadline_at(deadline, 1001).at_ms, 1000);
    is_int(deadline_at(deadline, RLOCK_NEVER).at_ms, 1000);
    is_int(deadline_at(never, 5).at_ms, 5, "any time is earlier than RLOCK_NEVER");
    is_int(deadline_at(never, RLOCK_NEVER).at_ms, RLOCK_NEVER);
    is_int(deadline_at(deadline, INT64_MIN).at_ms, INT64_MIN, "deadline_at() accepts INT64_MIN");
    is_int(deadline_at(never, 5).stop_fd, 7, "deadline_at() keeps the stop descriptor");
    is_int(deadline_in(never, 5).stop_fd, 7, "deadline_in() keeps the stop descriptor");

    now = rlock_clock_ms();
    deadline = deadline_in(never, 60000);
    ok(deadline.at_ms >= now + 60000 && deadline.at_ms <= rlock_clock_ms() + 60000);
    is_int(deadline_in((struct rlock_deadline){now, -1}, 60000).at_ms, now);
    ok(deadline_in(never, -1000).at_ms <= rlock_clock_ms() - 1000);
}

static void test_over(void)
{
    int64_t now = rlock_clock_ms();

    ok(!deadline_has_passed(never), "RLOCK_NEVER has not passed");
    ok(deadline_has_passed((struct rlock_deadline){now, -1}));
    ok(deadline_has_passed((struct rlock_deadline){INT64_MIN, -1}));
    ok(!deadline_has_passed((struct rlock_deadline){now + 60000, -1}));
    is_int(deadline_poll_ms(never), -1, "the timeout for RLOCK_NEVER is -1");
    is_int(deadline_poll_ms((struct rlock_deadline){now - 1, -1}), 0);
    is_int(deadline_poll_ms((struct rlock_deadline){RLOCK_NEVER - 1, -1}), INT_MAX);
}

static void test_sleep(void)
{
    int64_t before = rlock_clock_ms();
    struct rlock_deadline deadline = {before + 50, -1};
    int stop[2];

    is_int(clock_sleep(deadline), RLOCK_TIMEOUT, "clock_sleep() ends at its deadline");
    ok(rlock_clock_ms() >= before + 50, "clock_sleep() does not end before its deadline");
    if (pipe(stop) != 0)
        return;
    deadline.stop_fd = stop[0];
    deadline.at_ms = rlock_clock_ms() + 50;
    is_int(clock_sleep(deadline), RLOCK_TIMEOUT);
    ok(write(stop[1], "", 1) == 1, "the stop descriptor becomes readable");
    deadline.at_ms = RLOCK_NEVER;
    is_int(clock_sleep(deadline), RLOCK_STOPPED);
    deadline.at_ms = 0;
    is_int(clock_sleep(deadline), RLOCK_TIMEOUT);
    deadline.at_ms = RLOCK_NEVER;
    ok(read(stop[0], &(char){0}, 1) == 1 && close(stop[1]) == 0);
    is_int(clock_sleep(deadline), RLOCK_STOPPED);
    close(stop[0]);
}

/* In a build with UBSan an overflow ends the program, so main() calls this test last. */
static void test_overflow(void)
{
    is_int(deadline_in(never, RLOCK_NEVER).at_ms, RLOCK_NEVER);
    is_int(deadline_poll_ms((struct rlock_deadline){INT64_MIN, -1}), 0);
    ok(!deadline_has_passed(deadline_in(never, RLOCK_NEVER - 1)));
}

TESTS(test_clock, test_arithmetic, test_over, test_sleep, test_overflow)
