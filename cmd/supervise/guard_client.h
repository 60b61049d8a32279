/* SPDX-License-Identifier: MIT */
/* guard_client: the process above the command, as the program sees it. */
#ifndef GUARD_CLIENT_H
#define GUARD_CLIENT_H

#include "supervise/guard.h"

struct guard_client {
    pid_t pid;            /* 0: none, or it was reaped */
    int fd;               /* readable when there is news */
    bool is_gone;         /* the guard can't be heard any more */
    struct proctree tree; /* of this process, to be ended where the guard can't */
};

/*
 * guard_client_prepare: fork it, if there is none, to wait for its start: that takes
 * as long as all else between a grant and the command, and so is done before
 * the grant where there is time. The plan is borrowed. 0, or an errno.
 */
int guard_client_prepare(struct guard_client *guard, const struct guard_plan *plan);

/* guard_client_start: it starts the command, as a GUARD_START says. 0, or an errno. */
int guard_client_start(struct guard_client *guard, const struct guard_plan *plan,
                       const struct guard_word *word);

/*
 * guard_client_hear: the next news. 1: there is; 0: not now; -1: the guard is gone without a word.
 */
int guard_client_hear(struct guard_client *guard, struct guard_news *news);

/*
 * guard_client_fate: what is known of a guard that fails, as words behind "the guard": how it was
 * ended, or in which state it is silent.
 */
void guard_client_fate(const struct guard_client *guard, char *text, size_t room);

/* guard_client_extend: the lease has a new end; the guard answers GUARD_AGREES. */
void guard_client_extend(const struct guard_client *guard, struct deadlines lease);

/*
 * guard_client_signal: for the command; one from the terminal only if it was not there to get it.
 */
void guard_client_signal(const struct guard_client *guard, int number, bool from_terminal);

/* guard_client_end: TERM to the tree now, KILL at `kill_ms`. */
void guard_client_end(const struct guard_client *guard, int64_t kill_ms);

/*
 * guard_client_dismiss: after its last word: let it go, if it wasn't yet. guard_client_reap: be
 * sure that it has gone, if there is one, also where somebody has stopped it, or
 * where it isn't needed after all.
 */
void guard_client_dismiss(struct guard_client *guard);
void guard_client_reap(struct guard_client *guard);

/*
 * guard_client_replace: the guard is dead or doesn't move: send KILL to the guard and to the
 * command's tree from here, until nothing of them runs any more. As long as something survives that
 * for longer than usual, `survives` is called again and again: with a process that we have no right
 * to end, or 0.
 */
typedef void guard_client_survives(void *context, pid_t refused);
void guard_client_replace(struct guard_client *guard, guard_client_survives *survives,
                          void *context);

#endif
