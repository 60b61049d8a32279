/* SPDX-License-Identifier: MIT */
/*
 * deadlines: when the processes that run under a lease get TERM, and when KILL.
 *
 * KILL comes 250 ms or more before the lease ends, enough for some hundred processes to end. Each
 * further process needs more time, measured with two processors: 0.08 to 0.15 ms to end, and 0.05
 * to 0.1 ms for TERM in each of at least two walks. The kernel freezes a cgroup faster.
 */
#include "supervise/deadlines.h"

#include "base/clock.h"

#include <rlock.h>

#define FEW_PROCESSES 500 /* 500 processes can end in the 250 ms from KILL to the lease's end */
#define KILL_US 150       /* for each process above FEW_PROCESSES: from its KILL to its end */
#define TERM_US 300       /* for each process above FEW_PROCESSES: to send it TERM */

/*
 * The guard counts the tree when a third of the time to TERM is left. The renewer sends a renewal
 * after a third of the TTL. So mostly a renewal has come by then, and the guard counts nothing.
 */
#define COUNT_PART 3

struct deadlines deadlines_of_lease(int64_t expires_ms, int64_t kill_margin_ms, int64_t grace_ms)
{
    int64_t kill_ms = expires_ms - kill_margin_ms;

    return (struct deadlines){.term_ms = kill_ms - grace_ms, .kill_ms = kill_ms};
}

struct deadlines deadlines_for_tree(struct deadlines lease, size_t n, int64_t not_before_ms)
{
    int64_t more = n > FEW_PROCESSES ? (int64_t)(n - FEW_PROCESSES) : 0;
    struct deadlines moved = lease;

    if (more == 0 || lease.kill_ms == RLOCK_NEVER)
        return lease;
    moved.term_ms -= more * (KILL_US + TERM_US) / 1000;
    if (moved.term_ms < not_before_ms)
        moved.term_ms = not_before_ms < lease.term_ms ? not_before_ms : lease.term_ms;
    moved.kill_ms = clock_later(moved.kill_ms - more * KILL_US / 1000, moved.term_ms);
    return moved;
}

int64_t deadlines_count_ms(struct deadlines lease, int64_t taken_ms)
{
    if (lease.term_ms == RLOCK_NEVER || lease.term_ms <= taken_ms)
        return lease.term_ms;
    return lease.term_ms - (lease.term_ms - taken_ms) / COUNT_PART;
}
