/* SPDX-License-Identifier: MIT */
/* deadline_killer: a process of its own that ends the bound process before the lease ends. */
#ifndef DEADLINE_KILLER_H
#define DEADLINE_KILLER_H

#include "output/report.h"
#include "supervise/deadlines.h"
#include "supervise/ending.h"
#include "supervise/proctree.h"

/* ---- the bound process: the one that --bind-pid names; it is not our child ---- */

struct bound_process {
    pid_t pid;
    int fd;               /* pidfd: names this process even if another one gets its pid; -1: none */
    struct proctree tree; /* the descendants of the bound process */
    bool is_noted;        /* `tree` has the bound process as its root */
    struct ending ending; /* what bound_process_end() has done, and when */
};

/*
 * bound_process_open: bind to the process `pid`. Returns 0, or an errno: ESRCH if the process has
 * ended, EPERM if the caller may not signal it. Keeps a descriptor open, and memory for the tree,
 * until the program exits.
 */
int bound_process_open(struct bound_process *bound, pid_t pid);

/*
 * bound_process_refusal: returns the reason, as a text for the user, why rlock refuses to bind a
 * lease to this process, even for root; NULL: rlock does not refuse.
 */
const char *bound_process_refusal(pid_t pid);

bool bound_process_has_ended(const struct bound_process *bound);

/* bound_process_signal: send a signal to the bound process only, not to its descendants. */
void bound_process_signal(const struct bound_process *bound, int number);

/*
 * bound_process_note: remember the present descendants, so that bound_process_end() finds them even
 * if their parents have ended by then. This process and the process `spared` (0: none) may be
 * descendants; they and their own descendants are left out.
 */
void bound_process_note(struct bound_process *bound, pid_t spared);

/*
 * bound_process_end: send TERM to the bound process and its descendants, and from `kill_ms` on
 * KILL, until all have ended. Blocks until they have, or until 2 s after `kill_ms`, or 60 s after
 * it if this process has no descriptor free to look for them. This process and `spared` get no
 * signal. Returns the pid of a process that is left because the kernel refuses our signals to it,
 * or 0.
 */
pid_t bound_process_end(struct bound_process *bound, int64_t kill_ms, pid_t spared);

/* ---- the deadline killer ---- */

struct deadline_killer {
    pid_t pid; /* 0: no killer was started */
    int fd;    /* the socket to the killer, readable when the killer has ended; -1: no killer */
};

/*
 * deadline_killer_start: fork the deadline killer. The killer keeps the descriptor `keep_fd` open
 * (-1: none). If the killer ends the bound process because a deadline has come, it reports that by
 * `report`, except after deadline_killer_end_bound(). Returns 0, or an errno.
 */
int deadline_killer_start(struct deadline_killer *killer, const struct bound_process *bound,
                          struct deadlines deadlines, int keep_fd, const struct report *report);

/*
 * deadline_killer_set: send the killer new deadlines. The killer acts by them even if the caller
 * dies. deadline_killer_end_bound: the lock is lost, so send deadlines that come before those of
 * the lease; the caller reports the loss, and the killer does not. Neither call blocks. False: the
 * killer is gone, or does not read.
 */
bool deadline_killer_set(const struct deadline_killer *killer, struct deadlines deadlines);
bool deadline_killer_end_bound(const struct deadline_killer *killer, struct deadlines deadlines);

/*
 * deadline_killer_stop: tell the killer to exit, and to leave the bound process alone. Does not
 * wait for the killer's end; the caller has to reap it.
 */
void deadline_killer_stop(struct deadline_killer *killer);

#endif
