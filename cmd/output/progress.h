/* SPDX-License-Identifier: MIT */
/* progress: who holds the lock that rlock waits for, as a line on the terminal or as messages. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "output/report.h"

#include <rlock.h>

#define PROGRESS_EVERY_MS 1000
#define PROGRESS_COLUMNS_MAX 512 /* the longest line, also on a wider terminal */
#define PROGRESS_BYTES 3072 /* for the longest line; a combining accent adds bytes, but no column */
#define PROGRESS_WHY_BYTES 640

struct progress {
    const struct report *report;
    bool draws_line;      /* a line on the terminal; false: messages */
    int64_t connect_ms;   /* see progress_init() */
    int64_t warn_wait_ms; /* see progress_init() */
    int terminal;         /* /dev/tty while a line is drawn; -1: not open */
    /* without a line: when the next message about the holder is due, on rlock_clock_ms() */
    int64_t next_message_at_ms;
    bool has_told;   /* a message about the holder was written */
    bool has_warned; /* the warning of a long wait was written */
    /* when the server began to fail, if a message has reported that and not yet its end; else 0 */
    int64_t trouble_since_ms;
};

/*
 * progress_init: choose between line and messages; the report is borrowed. Shows nothing yet.
 *
 *   connect_ms    until a server has answered for the first time, a message reports a failure
 *                 only after this many ms; with --verbose at once
 *   warn_wait_ms  when rlock has waited this long, warn once; 0: never
 */
void progress_init(struct progress *progress, const struct report *report, int64_t connect_ms,
                   int64_t warn_wait_ms);

/*
 * progress_show: show why rlock waits; NULL: the wait is over. To be called each PROGRESS_EVERY_MS,
 * because the line shows times, and a message may be due.
 */
void progress_show(struct progress *progress, const struct rlock_obstacle *obstacle);

/*
 * progress_say_granted: report that the lock was granted at `granted_ms` on rlock_clock_ms().
 * Without -v it does so only if a message has said that rlock waits, so that the reader of a log
 * knows that the wait is over.
 */
void progress_say_granted(const struct progress *progress, int64_t granted_ms, uint64_t fence);

/* progress_warn: clear the line, and write a warning. */
void progress_warn(struct progress *progress, const char *text);

/*
 * progress_is_trouble: does a failure of the server keep rlock from the lock? Not if a holder does,
 * and the failure is shorter than a second: a server restarts, or the end of the wait has just cut
 * off the last request.
 */
bool progress_is_trouble(const struct rlock_obstacle *obstacle, int64_t now_ms);

/* progress_trouble_words: a failure of a server in a few words, such as "server not ready". */
const char *progress_trouble_words(enum rlock_status status);

/*
 * progress_why: write why the lock is not granted: what has failed on the servers for how long, as
 * "server unreachable for 5s: WHY"; or who holds the lock, as taken_text() does.
 */
void progress_why(char out[PROGRESS_WHY_BYTES], const struct rlock_obstacle *obstacle,
                  int64_t now_ms);

/*
 * progress_text: write the line, in at most `columns` columns. If the line is longer, the key is
 * cut first, to no less than a third of the columns, and then the end of the line.
 */
void progress_text(char *out, size_t room, size_t columns, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms);

#endif
