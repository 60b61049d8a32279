/* SPDX-License-Identifier: MIT */
/* clock: reads a clock that counts while the machine is suspended, and sets deadlines on it. */
#include "base/clock.h"

#include <limits.h>
#include <poll.h>
#include <time.h>

int64_t rlock_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now); /* can't fail: Linux has this clock since 2.6.39 */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t read_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

const struct rlock_deadline deadline_never = {RLOCK_NEVER, -1};

struct rlock_deadline deadline_at(struct rlock_deadline deadline, int64_t at_ms)
{
    if (at_ms < deadline.at_ms)
        deadline.at_ms = at_ms;
    return deadline;
}

struct rlock_deadline deadline_in(struct rlock_deadline deadline, int64_t ms)
{
    int64_t now = rlock_clock_ms();

    return deadline_at(deadline, ms < RLOCK_NEVER - now ? now + ms : RLOCK_NEVER);
}

bool deadline_has_passed(struct rlock_deadline deadline)
{
    return deadline.at_ms != RLOCK_NEVER && rlock_clock_ms() >= deadline.at_ms;
}

int deadline_poll_ms(struct rlock_deadline deadline)
{
    int64_t now = rlock_clock_ms();
    int64_t left;

    if (deadline.at_ms == RLOCK_NEVER)
        return -1;
    if (deadline.at_ms <= now)
        return 0;
    left = deadline.at_ms - now;
    return left < INT_MAX ? (int)left : INT_MAX;
}

enum rlock_status clock_sleep(struct rlock_deadline deadline)
{
    struct pollfd stop = {.fd = deadline.stop_fd, .events = POLLIN};

    /* poll(2) returns too early on EINTR, and if more than INT_MAX ms are left */
    while (!deadline_has_passed(deadline))
        if (poll(&stop, 1, deadline_poll_ms(deadline)) > 0)
            return RLOCK_STOPPED;
    return RLOCK_TIMEOUT;
}
