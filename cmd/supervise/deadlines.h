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

#endif
