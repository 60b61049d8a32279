/* SPDX-License-Identifier: MIT */
/* deadline_killer: a process of its own that ends the bound process before the lease ends. */
#ifndef DEADLINE_KILLER_H
#define DEADLINE_KILLER_H

#include "output/report.h"
#include "supervise/deadlines.h"
#include "supervise/proctree.h"

/* ---- the bound process: what a lease is bound to, by --bind-pid; it is no child of ours ---- */

struct bound_process {
    pid_t pid;
    int fd;               /* pidfd: of this process, also when another has got its pid; -1: none */
    struct proctree tree; /* its descendants, */
    bool is_noted;        /* which were looked at by bound_process_note() */
};

/*
 * bound_process_open: the process must be running, and one that the caller may signal. Takes a
 * descriptor, and memory for the tree, until the program ends. 0, or an errno; ESRCH: it has ended.
 */
int bound_process_open(struct bound_process *bound, pid_t pid);

/* bound_process_refusal: why no lease may be bound to this process, whoever asks; NULL: it may. */
const char *bound_process_refusal(pid_t pid);

bool bound_process_has_ended(const struct bound_process *bound);

/* bound_process_signal: to the process, and to none of its descendants. */
void bound_process_signal(const struct bound_process *bound, int number);

/*
 * bound_process_note: remember the descendants that there are now, so that bound_process_end() ends
 * also those whose parents have ended by then. Neither this process nor `spared`, which may be 0,
 * counts.
 */
void bound_process_note(struct bound_process *bound, pid_t spared);

/*
 * bound_process_end: send TERM to the process and its descendants, and KILL from `kill_ms` on,
 * until none of them runs. Blocks until then, but at most 2 s after `kill_ms`, for those that even
 * KILL does not end. Neither this process nor `spared` gets a signal.
 * Returns the pid of a process that is left, as we have no right to signal it; 0: none is.
 */
pid_t bound_process_end(struct bound_process *bound, int64_t kill_ms, pid_t spared);

/* ---- the deadline killer ---- */

struct deadline_killer {
    pid_t pid; /* 0: none */
    int fd;    /* readable once it has ended; -1: none */
};

/*
 * deadline_killer_start: fork the deadline killer, which keeps `keep_fd` open, unless -1. When the
 * killer ends the bound process because the deadline has come, the killer says why by `report`,
 * unless the caller does, see deadline_killer_end_bound(). Returns 0, or an errno.
 */
int deadline_killer_start(struct deadline_killer *killer, const struct bound_process *bound,
                          struct deadlines deadlines, int keep_fd, const struct report *report);

/*
 * deadline_killer_set: new deadlines, which hold whether the caller lives or not.
 * deadline_killer_end_bound: the same, and the caller has reported, or will, why the bound
 * process is ended. Both never block. False: the killer is gone.
 */
bool deadline_killer_set(const struct deadline_killer *killer, struct deadlines deadlines);
bool deadline_killer_end_bound(const struct deadline_killer *killer, struct deadlines deadlines);

/*
 * deadline_killer_stop: nothing is to be ended any more. The killer exits soon, and the caller has
 * to reap it.
 */
void deadline_killer_stop(struct deadline_killer *killer);

#endif
