/* SPDX-License-Identifier: MIT */
/* deadline_killer: a process of its own that ends the bound process before the lease's end. */
#ifndef DEADLINE_KILLER_H
#define DEADLINE_KILLER_H

#include "output/report.h"
#include "supervise/bound.h"

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
