/* SPDX-License-Identifier: MIT */
/* progress: whom rlock waits for, as a line on the terminal or a message a minute. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "output/report.h"

#include <rlock.h>

#define PROGRESS_BYTES 512 /* a line is never longer, however wide the terminal */

/* How much is shown, which the report's level and the kind of stderr decide. */
enum progress_style {
    PROGRESS_TROUBLE, /* a message when a server fails, and when it is back */
    PROGRESS_LINE,    /* and a line on the terminal, drawn again each second */
    PROGRESS_MESSAGES /* and a message a minute (--verbose) */
};

struct progress {
    const struct report *report;
    enum progress_style style;
    int terminal;               /* -1: nothing is drawn, and it is not open */
    int columns;                /* of the terminal when the line was drawn */
    char shown[PROGRESS_BYTES]; /* the line as it stands on the screen; "": there is none */
    int64_t say_ms;             /* when the next message is due */
    int64_t trouble_ms;         /* since when there is trouble that was told; 0: there is none */
};

/* progress_init: nothing is shown yet; the report is borrowed and says how much is wanted. */
void progress_init(struct progress *progress, const struct report *report);

/* progress_show: show what stands in the way of the lock; NULL: the wait is over. */
void progress_show(struct progress *progress, const struct rlock_obstacle *obstacle);

/* progress_warn: a message while the lock is waited for, where the line may be. */
void progress_warn(struct progress *progress, const char *text);

/* progress_every_ms: how often to call progress_show() at the least; 0: when something is new. */
int64_t progress_every_ms(const struct progress *progress);

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
