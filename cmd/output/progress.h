/* SPDX-License-Identifier: MIT */
/* progress: who holds the lock that rlock waits for, as a line on the terminal or as messages. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "output/report.h"

#include <rlock.h>

#define PROGRESS_BYTES 512 /* the longest line, also on a wider terminal */

/* What is shown while rlock waits. progress_init() chooses by the report's level and stderr. */
enum progress_style {
    PROGRESS_TROUBLE, /* a message when a server fails, and one when it answers again */
    PROGRESS_LINE, /* a line on the terminal, drawn each second; and messages of failing servers */
    PROGRESS_MESSAGES /* each minute a message about the holder; and messages of failing servers */
};

struct progress {
    const struct report *report;
    enum progress_style style;
    int terminal;               /* /dev/tty while a line is drawn; -1: not open */
    int columns;                /* the terminal's width when the line was drawn */
    char shown[PROGRESS_BYTES]; /* the line that is on the screen; "": none */
    /* when the next message about the holder is due (PROGRESS_MESSAGES) */
    int64_t next_message_at_ms;
    /* when the server began to fail, if that was reported; 0: no failure, or it is over */
    int64_t trouble_since_ms;
};

/* progress_init: choose the style; the report is borrowed. Shows nothing yet. */
void progress_init(struct progress *progress, const struct report *report);

/*
 * progress_show: show the obstacle that stands between rlock and the lock; NULL: the wait is over.
 */
void progress_show(struct progress *progress, const struct rlock_obstacle *obstacle);

/* progress_warn: clear the line, and write a warning. */
void progress_warn(struct progress *progress, const char *text);

/*
 * progress_every_ms: how often the caller must call progress_show() at least, because the line
 * shows times that change; 0: the caller need only call it when the obstacle changes.
 */
int64_t progress_every_ms(const struct progress *progress);

/*
 * progress_trouble: for an obstacle with `trouble`, write what fails, for how long and why: "server
 * unreachable since 5s: WHY".
 */
void progress_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle,
                      int64_t now_ms);

/*
 * progress_text: write the line: printable ASCII, shorter than `room` bytes. If the line would be
 * longer, the key is cut to a third of it first; then the holder's name is cut, or left out.
 */
void progress_text(char *out, size_t room, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms);

#endif
