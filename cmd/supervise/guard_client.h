/* SPDX-License-Identifier: MIT */
/* guard_client: starts the guard, exchanges messages with it, and replaces it when it fails. */
#ifndef GUARD_CLIENT_H
#define GUARD_CLIENT_H

#include "supervise/guard.h"

/*
 * For a process that runs already (see guard_plan.bound), the caller binds `tree` to it by
 * proctree_bind(), once, before it forks the guard. Only guard_client.c writes the other fields.
 */
struct guard_client {
    pid_t pid;            /* 0: no guard was forked, or it was reaped */
    int fd;               /* socket to the guard, readable when it has sent a message */
    bool is_gone;         /* the guard has closed its end of the socket */
    unsigned asked;       /* how many requests were sent to a guard */
    struct proctree tree; /* what this process kills if the guard fails */
};

/*
 * guard_client_prepare: fork the guard, which then waits for guard_client_start(), unless it is
 * forked already. Call this while you wait for the grant: the fork takes as long as everything else
 * between the grant and the start of the command. `plan` is borrowed. Returns 0, or an errno.
 */
int guard_client_prepare(struct guard_client *guard, const struct guard_plan *plan);

/*
 * guard_client_start: send the guard its GUARD_REQUEST_START, with which the guard starts the
 * command. Forks the guard if needed. Returns 0, or an errno.
 */
int guard_client_start(struct guard_client *guard, const struct guard_plan *plan,
                       const struct guard_request *start);

/*
 * guard_client_await: wait until a guard that was started for a bound process acts by its lease.
 * Returns 0, or an errno if the guard has failed or ended. Kills a guard that is silent at
 * `deadline_ms`.
 */
int guard_client_await(struct guard_client *guard, int64_t deadline_ms);

/*
 * guard_client_hear: receive the guard's next message, without blocking. Returns 1: `news` is the
 * message; 0: there is none now, or no guard; -1: the guard has ended or closed its socket.
 */
int guard_client_hear(struct guard_client *guard, struct guard_news *news);

/*
 * guard_client_fate: write to `text` how a guard has failed, as a predicate for "the guard": it
 * ended with a status, is stopped, or doesn't answer. Blocks for at most 0.1 s.
 */
void guard_client_fate(const struct guard_client *guard, char *text, size_t room);

/*
 * guard_client_stand_by: open the list of the main process's children, which guard_client_replace()
 * needs: later there may be no descriptor free. Call this some time after the start: opening the
 * list takes as long as a dozen system calls, and guard_client_replace() is seldom needed.
 */
void guard_client_stand_by(struct guard_client *guard);

/*
 * The guard answers each of the following requests by GUARD_NEWS_AGREES or GUARD_NEWS_PAUSED.
 *
 * guard_client_extend: the lease has new deadlines.
 */
void guard_client_extend(struct guard_client *guard, struct deadlines lease);

/*
 * guard_client_signal: ask the guard to send a signal to the command. If the terminal sent the
 * signal to the whole job, the guard sends it only if the command was not part of the job yet.
 */
void guard_client_signal(struct guard_client *guard, int number, bool from_terminal);

/* guard_client_end: ask the guard to send TERM to the command's tree now, and KILL at `kill_ms`. */
void guard_client_end(struct guard_client *guard, int64_t kill_ms);

/*
 * guard_client_dismiss: close the socket. A guard that waits for its start exits; a guard that has
 * begun acts as if this process had died. Doesn't wait for the guard's end.
 */
void guard_client_dismiss(struct guard_client *guard);

/*
 * guard_client_reap: kill the guard, if there is one, even if it is stopped, and wait for its end.
 * A bound process lives on.
 */
void guard_client_reap(struct guard_client *guard);

/*
 * guard_client_replace: kill a guard that is dead or hangs, and all processes of the command, and
 * wait until they have ended. While a process survives KILL for long, the call reports that again
 * and again through `on_survivor`: `refused` is a process that the kernel won't let us kill; 0: the
 * processes only take long.
 */
typedef void guard_client_on_survivor(void *context, pid_t refused);
void guard_client_replace(struct guard_client *guard, guard_client_on_survivor *on_survivor,
                          void *context);

#endif
