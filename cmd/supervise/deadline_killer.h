/* SPDX-License-Identifier: MIT */
/* deadline_killer: a process of its own that ends the bound process before the lease's end. */
#ifndef DEADLINE_KILLER_H
#define DEADLINE_KILLER_H

#include "output/report.h"
#include "supervise/proctree.h"

/* The process that a lease is bound to, which is not our child, with all below it. */
struct bound {
    pid_t pid;
    int fd;             /* of the process, whoever gets its number later; -1: none */
    pid_t renew_daemon; /* our parent, left alone as long as it is that; 0: nobody */
    struct proctree tree;
};

/* bound_open: a process that is the caller's own to end. 0, or an errno; ESRCH: it has ended. */
int bound_open(struct bound *bound, pid_t pid);

/* bound_refusal: why no lease may be bound to that process, whoever asks; NULL: it may. */
const char *bound_refusal(pid_t pid);

bool bound_has_ended(const struct bound *bound);

/* bound_signal: to the process alone. */
void bound_signal(const struct bound *bound, int number);

/*
 * bound_end: TERM to the process and all that is below it; KILL at `kill_ms`, until none of them
 * runs. Blocks until then, but not for those that not even KILL ends. This process is left alone.
 */
void bound_end(struct bound *bound, int64_t kill_ms);

/* When the bound process gets TERM and when KILL, on rlock_clock_ms(). */
struct deadline_killer_times {
    int64_t term_ms;
    int64_t kill_ms;
    bool is_told; /* why was said by whoever sets it */
};

struct deadline_killer {
    pid_t pid; /* 0: none */
    int fd;    /* readable once it has ended; -1: none */
};

/*
 * deadline_killer_start: fork it; `keep_fd` stays open in it, unless -1. Where it has to end the
 * bound process by itself, it says so by `report`. 0, or an errno.
 */
int deadline_killer_start(struct deadline_killer *killer, const struct bound *bound,
                          struct deadline_killer_times times, int keep_fd,
                          const struct report *report);

/* deadline_killer_set: new times, which it acts by whether we live or not. False: it is gone. */
bool deadline_killer_set(const struct deadline_killer *killer, struct deadline_killer_times times);

/* deadline_killer_drop: nothing is to be ended any more. */
void deadline_killer_drop(struct deadline_killer *killer);

#endif
