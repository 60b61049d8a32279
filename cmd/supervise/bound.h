/* SPDX-License-Identifier: MIT */
/* bound: the process that a lease is bound to, which is not our child, with all below it. */
#ifndef BOUND_H
#define BOUND_H

#include "supervise/proctree.h"

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

/* bound_name: of the program that it runs, as the kernel knows it; "": not known. */
void bound_name(pid_t pid, char name[32]);

bool bound_has_ended(const struct bound *bound);

/* bound_signal: to the process alone. */
void bound_signal(const struct bound *bound, int number);

/*
 * bound_end: TERM to the process and all that is below it; KILL at `kill_ms`, until none of them
 * runs. Blocks until then, but not for those that not even KILL ends. This process is left alone.
 */
void bound_end(struct bound *bound, int64_t kill_ms);

#endif
