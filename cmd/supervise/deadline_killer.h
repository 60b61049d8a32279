/* SPDX-License-Identifier: MIT */
/* deadline_killer: a process of its own that ends the bound process before the lease's end. */
#ifndef LEASH_H
#define LEASH_H

#include "output/report.h"
#include "supervise/bound.h"

/* When the bound process gets TERM and when KILL, on rlock_clock_ms(). */
struct leash_times {
    int64_t term_ms;
    int64_t kill_ms;
    bool is_told; /* why was said by whoever sets it */
};

struct leash {
    pid_t pid; /* 0: none */
    int fd;    /* readable once it has ended; -1: none */
};

/*
 * leash_start: fork it; `keep_fd` stays open in it, unless -1. Where it has to end the bound
 * process by itself, it says so by `report`. 0, or an errno.
 */
int leash_start(struct leash *leash, const struct bound *bound, struct leash_times times,
                int keep_fd, const struct report *report);

/* leash_set: new times, which it acts by whether we live or not. False: it is gone. */
bool leash_set(const struct leash *leash, struct leash_times times);

/* leash_drop: nothing is to be ended any more. */
void leash_drop(struct leash *leash);

#endif
