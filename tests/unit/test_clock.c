/* SPDX-License-Identifier: MIT */
/* test_clock: deadlines and what can cut them short. */
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
           boot.tv_sec * 1000 + boot.tv_nsec / 1000000 <= after,
       "time is that of CLOCK_BOOTTIME, which counts suspended time");
}

static void test_arithmetic(void)
{
    struct rlock_deadline deadline = {1000, 7};
    int64_t now;

    is_int(deadline_at(deadline, 999).at_ms, 999, "an earlier moment counts");
    is_int(deadline_at(deadline, 1001).at_ms, 1000, "a later one doesn't");
    is_int(deadline_at(deadline, RLOCK_NEVER).at_ms, 1000, "never is later than any");
    is_int(deadline_at(never, 5).at_ms, 5, "any is earlier than never");
    is_int(deadline_at(never, RLOCK_NEVER).at_ms, RLOCK_NEVER, "never and never is never");
    is_int(deadline_at(deadline, INT64_MIN).at_ms, INT64_MIN, "even the earliest moment counts");
    is_int(deadline_at(never, 5).stop_fd, 7, "the stop descriptor is kept");
    is_int(deadline_in(never, 5).stop_fd, 7, "by both");

    now = rlock_clock_ms();
    deadline = deadline_in(never, 60000);
    ok(deadline.at_ms >= now + 60000 && deadline.at_ms <= rlock_clock_ms() + 60000,
       "a minute from now");
    is_int(deadline_in((struct rlock_deadline){now, -1}, 60000).at_ms, now,
           "not past what is earlier");
    ok(deadline_in(never, -1000).at_ms <= rlock_clock_ms() - 1000, "a second ago");
}

static void test_over(void)
{
    int64_t now = rlock_clock_ms();

    ok(!deadline_has_passed(never), "never isn't over");
    ok(deadline_has_passed((struct rlock_deadline){now, -1}), "now is over");
    ok(deadline_has_passed((struct rlock_deadline){INT64_MIN, -1}), "the earliest moment is over");
    ok(!deadline_has_passed((struct rlock_deadline){now + 60000, -1}), "in a minute isn't");
    is_int(deadline_poll_ms(never), -1, "poll waits for ever for never");
    is_int(deadline_poll_ms((struct rlock_deadline){now - 1, -1}), 0,
           "and not at all for the past");
    is_int(deadline_poll_ms((struct rlock_deadline){RLOCK_NEVER - 1, -1}), INT_MAX,
           "and as long as it can for a moment beyond its range");
}

static void test_sleep(void)
{
    int64_t before = rlock_clock_ms();
    struct rlock_deadline deadline = {before + 50, -1};
    int stop[2];

    is_int(clock_sleep(deadline), RLOCK_TIMEOUT, "a sleep ends with its time");
    ok(rlock_clock_ms() >= before + 50, "and not before");
    if (pipe(stop) != 0)
        return;
    deadline.stop_fd = stop[0];
    deadline.at_ms = rlock_clock_ms() + 50;
    is_int(clock_sleep(deadline), RLOCK_TIMEOUT,
           "a stop descriptor that is silent changes nothing");
    ok(write(stop[1], "", 1) == 1, "something to read");
    deadline.at_ms = RLOCK_NEVER;
    is_int(clock_sleep(deadline), RLOCK_STOPPED, "cuts a sleep short");
    deadline.at_ms = 0;
    is_int(clock_sleep(deadline), RLOCK_TIMEOUT, "but a time that has come is no sleep");
    deadline.at_ms = RLOCK_NEVER;
    ok(read(stop[0], &(char){0}, 1) == 1 && close(stop[1]) == 0, "nobody can write any more");
    is_int(clock_sleep(deadline), RLOCK_STOPPED, "that cuts it short as well");
    close(stop[0]);
}

/* The last of this file: under UBSan an overflow ends the program. */
static void test_overflow(void)
{
    is_int(deadline_in(never, RLOCK_NEVER).at_ms, RLOCK_NEVER,
           "a time without end from now is never");
    is_int(deadline_poll_ms((struct rlock_deadline){INT64_MIN, -1}), 0,
           "no wait for the earliest moment");
    ok(!deadline_has_passed(deadline_in(never, RLOCK_NEVER - 1)),
       "nor is a time over that can't be added");
}

int main(void)
{
    test_clock();
    test_arithmetic();
    test_over();
    test_sleep();
    test_overflow();
    return done_testing();
}
