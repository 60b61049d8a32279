/* SPDX-License-Identifier: MIT */
/* progress: whom rlock waits for, as a line on the terminal or a message a minute. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "output/report.h"

#include <rlock.h>

#define PROGRESS_BYTES 512 /* a line is never longer, however wide the terminal */

struct progress {
    const struct report *report;
    int terminal;               /* -1: nothing is drawn, and it is not open */
    int columns;                /* of the terminal when the line was drawn */
    char shown[PROGRESS_BYTES]; /* the line as it stands on the screen; "": there is none */
    int64_t say_ms;             /* when the next message is due */
    int64_t trouble_ms;         /* since when there is trouble that was told; 0: there is none */
};

/* progress_init: nothing is shown yet; the report is borrowed and says how much is wanted. */
void progress_init(struct progress *progress, const struct report *report);

/* progress_watch: what shows the wait of rlock_acquire(), and leaves nothing on the screen. */
struct rlock_watch progress_watch(struct progress *progress);

/* progress_trouble: "server unreachable since 5s: WHY", of an obstacle that has trouble. */
void progress_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle,
                      int64_t now_ms);

/*
 * progress_text: the line, of printable ASCII and less than `room` bytes. Where
 * it would be longer the name of the holder is cut first.
 */
void progress_text(char *out, size_t room, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms);

#endif
