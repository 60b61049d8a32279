/* SPDX-License-Identifier: MIT */
/* ending: when a command got TERM and KILL, and when it had ended, for messages. */
#ifndef ENDING_H
#define ENDING_H

#include "output/report.h"

/* Times on rlock_clock_ms(); 0: it has not happened. */
struct ending {
    int64_t term_ms;  /* rlock sent TERM */
    int64_t kill_ms;  /* rlock sent the first KILL */
    int64_t ended_ms; /* the last process that had to end has ended */
};

#define ENDING_BYTES 128

/*
 * ending_text: write the times for people: "TERM at 2026-11-21T02:15:03+01:00, KILL at 02:15:08,
 * ended at 02:15:08".
 */
void ending_text(char out[ENDING_BYTES], const struct ending *ending);

/* ending_add_facts: add `term_at`, `kill_at` and `ended_at` to a message. */
void ending_add_facts(struct message *message, const struct ending *ending);

#endif
