/* SPDX-License-Identifier: MIT */
/*
 * process: a client's process on a machine of its own, whose clock may run too fast or too slow.
 *
 * A fault that hits a process is planned as a number of calls from now: so it can come between any
 * two of the calls that the library makes.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "engine.h"

struct process {
    int id;
    int64_t boot_offset_us; /* what the boot clock showed when the world began */
    int64_t rate_ppm;       /* by how many millionths the machine's clocks are too fast */
    int64_t wall_offset_us; /* of the wall clock; a clock step changes it */
    int64_t stopped_until_us;
    int64_t troubled_us; /* when a fault last hit it or its connections; -1: never */
    bool is_dead;
    int64_t n_requests;     /* that reached a server */
    char granted[40];       /* the token that a server has granted a lock last; "": none yet */
    char token[40];         /* with which it has asked for a lock last; "": with none yet */
    int64_t calls_to_fault; /* 0: none is planned */
    void (*on_fault)(struct process *); /* carries the planned fault out, and plans the next one */
    void (*on_killed)(struct process *);
    void *context; /* of on_killed */
};

void process_start(struct process *process, int id, int64_t rate_ppm);

/* The machine's clocks, in microseconds, and the true time at which the boot clock shows `ms`. */
int64_t process_boot_us(const struct process *process);
int64_t process_wall_us(const struct process *process);
int64_t process_true_us(const struct process *process, int64_t boot_ms);

bool process_is_dead(const struct process *process);
int64_t process_stopped_until(const struct process *process);

/* process_stop: by SIGSTOP, for so long. process_kill: by SIGKILL; closes its descriptors. */
void process_stop(struct process *process, int64_t for_us);
void process_kill(struct process *process);

/* process_note_trouble: something isn't as it should be for it, now or until then. */
void process_note_trouble(struct process *process, int64_t until_us);

/* process_count_call: the coroutine makes a call, which a planned fault may come before. */
void process_count_call(void);

#endif
