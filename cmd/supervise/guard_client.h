/* SPDX-License-Identifier: MIT */
/* guard_client: the process above the command, as the program sees it. */
#ifndef GUARD_CLIENT_H
#define GUARD_CLIENT_H

#include "supervise/guard.h"

/* Written by guard_client.c only. */
struct guard_client {
    pid_t pid;            /* 0: there is no guard, or it was reaped */
    int fd;               /* readable when the guard has news */
    bool is_gone;         /* the guard has closed its socket: no more news will come */
    struct proctree tree; /* all below this process, to be ended here if the guard fails */
};

/*
 * guard_client_prepare: fork the guard, if there is none; it waits to be told to start the command.
 * The fork takes as long as all else between a grant and the command, so it is done before the
 * grant where there is time for it. The plan is borrowed. 0, or an errno.
 */
int guard_client_prepare(struct guard_client *guard, const struct guard_plan *plan);

/*
 * guard_client_start: the guard starts the command, as a GUARD_REQUEST_START says. 0, or an errno.
 */
int guard_client_start(struct guard_client *guard, const struct guard_plan *plan,
                       const struct guard_request *start);

/*
 * guard_client_hear: the guard's next news. 1: `news` is filled; 0: there is none now; -1: the
 * guard has ended without a last word.
 */
int guard_client_hear(struct guard_client *guard, struct guard_news *news);

/*
 * guard_client_fate: what is known of a guard that failed, as words to follow "the guard": how it
 * ended, or that it is stopped or silent. Blocks for at most 0.1 s.
 */
void guard_client_fate(const struct guard_client *guard, char *text, size_t room);

/*
 * guard_client_extend: the lease has new deadlines; the guard answers GUARD_NEWS_AGREES or
 * GUARD_NEWS_PAUSED.
 */
void guard_client_extend(const struct guard_client *guard, struct deadlines lease);

/*
 * guard_client_signal: pass a signal on to the command. One that the terminal sent to the whole job
 * is passed only if it came before the command was part of the job.
 */
void guard_client_signal(const struct guard_client *guard, int number, bool from_terminal);

/* guard_client_end: TERM to the tree now, KILL at `kill_ms`. */
void guard_client_end(const struct guard_client *guard, int64_t kill_ms);

/* guard_client_dismiss: let the guard end, after its last word. It is not waited for. */
void guard_client_dismiss(struct guard_client *guard);

/*
 * guard_client_reap: end the guard, if there is one, even if it is stopped, and wait for its end.
 */
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
