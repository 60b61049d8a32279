/* SPDX-License-Identifier: MIT */
/* progress: who holds the lock that rlock waits for, as a line on the terminal or as messages. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "output/report.h"

#include <rlock.h>

#define PROGRESS_BYTES 512 /* the longest line, however wide the terminal is */

/* How much is shown, which the report's level and the kind of stderr decide. */
enum progress_style {
    PROGRESS_TROUBLE, /* a message when a server fails, and when it is back */
    PROGRESS_LINE,    /* and a line on the terminal, drawn again each second */
    PROGRESS_MESSAGES /* and a message a minute (--verbose) */
};

struct progress {
    const struct report *report;
    enum progress_style style;
    int terminal;               /* /dev/tty while a line is drawn; -1: not open */
    int columns;                /* of the terminal when the line was drawn */
    char shown[PROGRESS_BYTES]; /* the line that is on the screen; "": none */
    int64_t next_message_at_ms; /* when the next message of PROGRESS_MESSAGES is due */
    int64_t trouble_since_ms;   /* the trouble that was reported; 0: none, or it is over */
};

/* progress_init: nothing is shown yet. The report is borrowed; it decides the style. */
void progress_init(struct progress *progress, const struct report *report);

/* progress_show: show what stands in the way of the lock; NULL: the wait is over. */
void progress_show(struct progress *progress, const struct rlock_obstacle *obstacle);

/* progress_warn: a message while the lock is waited for, where the line may be. */
void progress_warn(struct progress *progress, const char *text);

/* progress_every_ms: how often to call progress_show() at the least; 0: when something is new. */
int64_t progress_every_ms(const struct progress *progress);

/* progress_trouble: "server unreachable since 5s: WHY", for an obstacle with `trouble`. */
void progress_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle,
                      int64_t now_ms);

/*
 * progress_text: the text of the line: printable ASCII, shorter than `room` bytes. If it would be
 * longer, first the key is cut to a third of the line, then the holder's name is cut or left out.
 */
void progress_text(char *out, size_t room, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms);

#endif
