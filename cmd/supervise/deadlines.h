/* SPDX-License-Identifier: MIT */
/* deadlines: when the processes that run under a lease get TERM, and when KILL. */
#ifndef DEADLINES_H
#define DEADLINES_H

#include <stdint.h>

/* Times on rlock_clock_ms(); RLOCK_NEVER: the lease's end ends no process. */
struct deadlines {
    int64_t term_ms; /* TERM to the tree; with --on-lost pause: begin to freeze the tree */
    int64_t kill_ms; /* KILL to the tree */
};

/*
 * deadlines_of_lease: the deadlines of a lease that ends at `expires_ms`: KILL `kill_margin_ms`
 * before that, and TERM `grace_ms` before KILL.
 */
struct deadlines deadlines_of_lease(int64_t expires_ms, int64_t kill_margin_ms, int64_t grace_ms);

#endif
