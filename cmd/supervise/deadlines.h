/* SPDX-License-Identifier: MIT */
/* deadlines: when the processes that run under a lease get TERM, and when KILL. */
#ifndef DEADLINES_H
#define DEADLINES_H

#include <stddef.h>
#include <stdint.h>

/* how often to look for processes of a bound process, when TERM is near or sent */
#define DEADLINES_LOOK_MS 20

/* Times on rlock_clock_ms(); RLOCK_NEVER: the lease's end ends no process. */
struct deadlines {
    int64_t term_ms; /* when the tree gets TERM, or with --on-lost pause begins to be frozen */
    int64_t kill_ms; /* when the tree gets KILL */
};

/*
 * deadlines_of_lease: the deadlines of a lease that ends at `expires_ms`: KILL `kill_margin_ms`
 * before that, and TERM `grace_ms` before KILL.
 */
struct deadlines deadlines_of_lease(int64_t expires_ms, int64_t kill_margin_ms, int64_t grace_ms);

/*
 * deadlines_for_tree: make both deadlines earlier by the time that `n` processes take to end. Up to
 * 500 processes nothing changes. TERM is moved at most to `not_before_ms`, and KILL to TERM.
 */
struct deadlines deadlines_for_tree(struct deadlines lease, size_t n, int64_t not_before_ms);

/*
 * deadlines_count_ms: when the guard counts the tree's processes for deadlines_for_tree(), unless a
 * renewal sets new deadlines before. `taken_ms` is when the deadlines of `lease` became known.
 */
int64_t deadlines_count_ms(struct deadlines lease, int64_t taken_ms);

#endif
