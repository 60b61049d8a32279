/* SPDX-License-Identifier: MIT */
/* test_cmd_deadlines: a tree of many processes gets TERM and KILL earlier than a small one. */
#include "supervise/deadlines.h"
#include "tap.h"
#include <rlock.h>

static const struct deadlines lease = {10000, 12000};

static void test_small_tree(void)
{
    size_t n;
    struct deadlines moved;

    for (n = 0; n <= 500; n += 250) {
        moved = deadlines_for_tree(lease, n, 0);
        okf(moved.term_ms == 10000 && moved.kill_ms == 12000, "%zu processes move no deadline", n);
    }
}

static void test_large_tree(void)
{
    struct deadlines moved = deadlines_for_tree(lease, 501 + 3999, 0);

    is_int(moved.kill_ms, 12000 - 600, "KILL: 0.15 ms earlier for each of 4000 processes more");
    is_int(moved.term_ms, 10000 - 1800, "TERM: as much earlier as KILL, and 0.3 ms for each more");
    moved = deadlines_for_tree(lease, 4500, 9000);
    is_int(moved.term_ms, 9000, "TERM does not move to before the given time");
    is_int(moved.kill_ms, 11400, "which leaves the time of KILL as it is");
}

static void test_short_lease(void)
{
    const struct deadlines brief = {1000, 1100};
    struct deadlines moved = deadlines_for_tree(brief, 4500, 900);

    is_int(moved.term_ms, 900, "a short lease: TERM at the given time");
    is_int(moved.kill_ms, 900, "and KILL with it, as there is no time between them");
    moved = deadlines_for_tree(brief, 4500, 5000);
    is_int(moved.term_ms, 1000, "a given time after the lease's TERM: TERM is not moved to later");
    is_int(moved.kill_ms, 1000, "and KILL moves to TERM");
}

static void test_no_deadline(void)
{
    const struct deadlines none = {RLOCK_NEVER, RLOCK_NEVER};
    struct deadlines moved = deadlines_for_tree(none, 4500, 0);

    ok(moved.term_ms == RLOCK_NEVER && moved.kill_ms == RLOCK_NEVER,
       "--on-lost ignore: no number of processes makes a deadline");
    is_int(deadlines_count_ms(none, 5), RLOCK_NEVER, "--on-lost ignore: nothing is counted");
}

static void test_when_to_count(void)
{
    is_int(deadlines_count_ms(lease, 7000), 9000, "count when a third of the time to TERM is left");
    is_int(deadlines_count_ms(lease, 10000), 10000, "a lease that came at its TERM: not before");
    is_int(deadlines_count_ms(lease, 11000), 10000, "a lease that came later: its TERM is over");
}

int main(void)
{
    test_small_tree();
    test_large_tree();
    test_short_lease();
    test_no_deadline();
    test_when_to_count();
    return done_testing();
}
