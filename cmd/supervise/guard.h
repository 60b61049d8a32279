/* SPDX-License-Identifier: MIT */
/* guard: inside the guard process: the command, its tree, their deadlines. */
#ifndef WARD_H
#define WARD_H

#include "output/report.h"
#include "session/environ.h"
#include "supervise/proctree.h"
#include "supervise/spawn.h"

/*
 * When the tree gets TERM, or is frozen, and when KILL, if it isn't frozen by
 * then. On rlock_clock_ms(); RLOCK_NEVER: not by time.
 */
struct deadlines {
    int64_t term_ms;
    int64_t kill_ms;
};

struct ward_plan {
    struct spawn_plan spawn; /* its environment and latest moment are known at the start */
    const char *keys;        /* for the command, for environment_make(); NULL: no memory */
    bool has_slot;
    bool keeps_secrets;
    bool pauses;        /* at the lease's end the tree is frozen */
    bool wait_all;      /* not done before every descendant has ended */
    int keep_fd;        /* to be held for as long as anything runs; -1: none */
    struct rlock *lock; /* the program's: the guard has no use for the passwords in it */
    const struct report *report;
};

/* From the program to the guard. Nothing else comes before WARD_START, and that but once. */
enum ward_order { WARD_START, WARD_EXTEND, WARD_SIGNAL, WARD_END };

struct ward_word {
    enum ward_order order;
    int signal;               /* WARD_SIGNAL: for the command */
    int64_t to_all_ms;        /* WARD_SIGNAL: when the terminal sent it to the whole job; 0: not */
    struct deadlines lease;   /* WARD_START, WARD_EXTEND: the end; WARD_END: kill_ms only */
    int64_t not_after_ms;     /* WARD_START: the command is never started later */
    struct rlock_grant grant; /* WARD_START */
};

/* From the guard to the program. */
enum ward_says {
    WARD_FAILED,  /* the command was not started; the guard has ended */
    WARD_AGREES,  /* to a WARD_EXTEND; a tree that was frozen goes on */
    WARD_PAUSED,  /* the tree is frozen; also the answer to a WARD_EXTEND that came too late */
    WARD_REFUSED, /* one of the tree was to end, and may not be signalled */
    WARD_DONE     /* of the tree has ended what has to; the guard waits to be dismissed */
};

struct ward_news {
    enum ward_says says;
    int failed;             /* WARD_FAILED: an errno, or SPAWN_TOO_LATE */
    bool forked;            /* WARD_FAILED: it was exec that failed */
    struct deadlines lease; /* WARD_AGREES */
    int64_t still_ms;       /* WARD_PAUSED, WARD_DONE: since when nothing runs */
    int status;             /* WARD_DONE: the command's, as wait(2) gives it */
    bool by_lease;          /* WARD_DONE: the lease's end came first */
    bool is_alone; /* WARD_DONE: the guard lost its socket to rlock, and so killed the tree */
    int refused;   /* WARD_DONE: an errno, why the tree could not be frozen */
    pid_t pid;     /* WARD_REFUSED: who */
    bool was_kill; /* WARD_REFUSED: so that the guard can't end it whatever happens */
};

/* ward_say_refused: who can't be ended, as it has other rights than ours. */
void ward_say_refused(const struct report *report, pid_t pid, const char *hint);

/*
 * ward_run: be the guard, with the program at the other end of `fd`, and memory for the tree that
 * was reserved before. It waits for its start, and ends if the program does before.
 */
_Noreturn void ward_run(const struct ward_plan *plan, struct tree *tree, int fd);

#endif
