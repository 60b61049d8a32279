/* SPDX-License-Identifier: MIT */
/* say: messages that the main process and the guard have in common. */
#ifndef SAY_H
#define SAY_H

#include "supervise/ending.h"

/* The loss of a lock. All pointers are borrowed. */
struct lost {
    const char *cause;             /* a word for JSON, as rlock-messages(7) lists them */
    const char *why;               /* the cause in words for people */
    const char *hint;              /* what follows from the loss; NULL: nothing */
    const struct rlock_loss *loss; /* who holds the lock now, or broke it; NULL: not known */
    struct fact subject;           /* what runs under the lock; all zero: nothing */
    struct ending ending;          /* when the subject got or gets TERM and KILL, and had ended */
};

/* say_lost: report that the lock is lost. */
void say_lost(const struct report *report, const struct lost *lost);

/*
 * say_refused: report that the kernel refuses our signal to a process (EPERM). `hint` says what
 * follows from the refusal.
 */
void say_refused(const struct report *report, pid_t pid, const char *hint);

#endif
