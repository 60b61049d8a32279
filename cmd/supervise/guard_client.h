/* SPDX-License-Identifier: MIT */
/* guard_client: the process above the command, as the program sees it. */
#ifndef GUARD_H
#define GUARD_H

#include "supervise/guard.h"

struct guard {
    pid_t pid;        /* 0: none, or it was reaped */
    int fd;           /* readable when there is news */
    struct tree tree; /* of this process, to be ended where the guard can't */
};

/*
 * guard_prepare: fork it, if there is none, to wait for its start: that takes
 * as long as all else between a grant and the command, and so is done before
 * the grant where there is time. The plan is borrowed. 0, or an errno.
 */
int guard_prepare(struct guard *guard, const struct ward_plan *plan);

/* guard_start: it starts the command, as a WARD_START says. 0, or an errno. */
int guard_start(struct guard *guard, const struct ward_plan *plan, const struct ward_word *word);

/* guard_hear: the next news. 1: there is; 0: not now; -1: the guard is gone without a word. */
int guard_hear(const struct guard *guard, struct ward_news *news);

/*
 * guard_fate: what is known of a guard that fails, as words behind "the guard": how it was ended,
 * or in which state it is silent. `is_gone` says that it can't be heard any more.
 */
void guard_fate(const struct guard *guard, bool is_gone, char *text, size_t room);

/* guard_extend: the lease has a new end; the guard answers WARD_AGREES. */
void guard_extend(const struct guard *guard, struct deadlines lease);

/* guard_signal: for the command; one from the terminal only if it was not there to get it. */
void guard_signal(const struct guard *guard, int number, bool from_terminal);

/* guard_end: TERM to the tree now, KILL at `kill_ms`. */
void guard_end(const struct guard *guard, int64_t kill_ms);

/*
 * guard_dismiss: after its last word: let it go, if it wasn't yet. guard_reap: be
 * sure that it has gone, if there is one, also where somebody has stopped it, or
 * where it isn't needed after all.
 */
void guard_dismiss(struct guard *guard);
void guard_reap(struct guard *guard);

/*
 * guard_replace: the guard is dead or doesn't move: kill it, and what is left
 * of the tree, here. Back when nothing of it runs any more. `refused` is told, again and again,
 * of one that we have no right to end.
 */
typedef void guard_refused(void *context, pid_t pid);
void guard_replace(struct guard *guard, guard_refused *refused, void *context);

#endif
