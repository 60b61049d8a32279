/* SPDX-License-Identifier: MIT */
/*
 * process: a client's process on a machine of its own, whose clock may run too fast or too slow.
 *
 * A fault that hits a process is planned to come after a number of system calls. So a fault can
 * come between any two calls that the library makes.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "engine.h"

/* No request arrives so late that this many calls of rlock_acquire() have returned meanwhile. */
#define PROCESS_LEFT_MAX 4

struct process {
    int id;
    int64_t boot_offset_us; /* what the boot clock showed when the world began */
    int64_t rate_ppm;       /* by how many millionths the machine's clocks are too fast */
    int64_t wall_offset_us; /* what the wall clock showed when the world began */
    int64_t stopped_until_us;
    int64_t troubled_us; /* when a fault last hit this process or its connections; -1: never */
    bool is_dead;
    int64_t n_requests; /* how many requests have reached a server */
    char granted[40];   /* the last token to which a server has granted a lock; "": none yet */
    char token[40];     /* the token of its last request for a lock; "": none yet */
    /* a ring of the tokens that the last calls of rlock_acquire() had when they returned */
    char left[PROCESS_LEFT_MAX][40];
    size_t n_left;          /* how many calls of rlock_acquire() have returned */
    int64_t calls_to_fault; /* system calls before the planned fault; 0: no fault is planned */
    void (*on_fault)(struct process *); /* carries the planned fault out, and plans the next one */
    void (*on_killed)(struct process *);
    void *context; /* for on_killed() */
};

void process_start(struct process *process, int id, int64_t rate_ppm);

/* The machine's clocks, in microseconds, and the true time at which the boot clock shows `ms`. */
int64_t process_boot_us(const struct process *process);
int64_t process_wall_us(const struct process *process);
int64_t process_true_us(const struct process *process, int64_t boot_ms);

/* process_stop: as SIGSTOP, and SIGCONT after `for_us`. process_kill: as SIGKILL. */
void process_stop(struct process *process, int64_t for_us);
void process_kill(struct process *process);

/* process_note_trouble: a fault hits the process or its connections until `until_us`. */
void process_note_trouble(struct process *process, int64_t until_us);

/* process_count_call: the coroutine makes a system call. A planned fault may come before it. */
void process_count_call(void);

#endif
