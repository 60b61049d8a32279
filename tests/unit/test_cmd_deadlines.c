/* SPDX-License-Identifier: MIT */
/* test_cmd_deadlines: a tree of many processes gets TERM and KILL earlier than a small one. */
#include "supervise/deadlines.h"
#include "tap.h"
#include <rlock.h>

static const struct deadlines lease = {10000, 12000};

static void test_small_tree(void)
{
    struct deadlines moved;

    for (size_t n = 0; n <= 500; n += 250) {
        moved = deadlines_for_tree(lease, n, 0);
        okf(moved.term_ms == 10000 && moved.kill_ms == 12000,
            "a tree of %zu processes moves no deadline", n);
    }
}

static void test_large_tree(void)
{
    struct deadlines moved = deadlines_for_tree(lease, 501 + 3999, 0);

    is_int(moved.kill_ms, 12000 - 600, "KILL comes 0.15 ms earlier for each process beyond 500");
    is_int(moved.term_ms, 10000 - 1800, "TERM comes 0.45 ms earlier for each process beyond 500");
    moved = deadlines_for_tree(lease, 4500, 9000);
    is_int(moved.term_ms, 9000, "TERM does not move to before `not_before_ms`");
    is_int(moved.kill_ms, 11400, "`not_before_ms` does not change the time of KILL");
}

static void test_short_lease(void)
{
    const struct deadlines brief = {1000, 1100};
    struct deadlines moved = deadlines_for_tree(brief, 4500, 900);

    is_int(moved.term_ms, 900, "a short lease: TERM moves only to `not_before_ms`");
    is_int(moved.kill_ms, 900, "a short lease: KILL does not move to before TERM");
    moved = deadlines_for_tree(brief, 4500, 5000);
    is_int(moved.term_ms, 1000, "`not_before_ms` after the lease's TERM: TERM does not move");
    is_int(moved.kill_ms, 1000, "`not_before_ms` after the lease's TERM: KILL moves to TERM");
}

static void test_no_deadline(void)
{
    const struct deadlines none = {RLOCK_NEVER, RLOCK_NEVER};
    struct deadlines moved = deadlines_for_tree(none, 4500, 0);

    ok(moved.term_ms == RLOCK_NEVER && moved.kill_ms == RLOCK_NEVER);
    is_int(deadlines_count_ms(none, 5), RLOCK_NEVER);
}

static void test_when_to_count(void)
{
    is_int(deadlines_count_ms(lease, 7000), 9000);
    is_int(deadlines_count_ms(lease, 10000), 10000);
    is_int(deadlines_count_ms(lease, 11000), 10000);
}

TESTS(test_small_tree, test_large_tree, test_short_lease, test_no_deadline, test_when_to_count)
