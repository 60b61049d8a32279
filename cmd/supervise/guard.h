/* SPDX-License-Identifier: MIT */
/* guard: ends the command and everything it started before its lease ends. */
#ifndef GUARD_H
#define GUARD_H

#include "output/report.h"
#include "session/environment.h"
#include "supervise/proctree.h"
#include "supervise/spawn.h"

struct guard_plan {
    struct spawn_plan spawn; /* its environment and latest moment are known at the start */
    const char *keys;        /* for the command, for environment_make(); NULL: no memory */
    bool has_slot;
    bool keeps_secrets;
    bool pauses;           /* at the lease's end the tree is frozen */
    struct cgroup *cgroup; /* for the command, or CGROUP_NONE */
    bool wait_all;         /* not done before every descendant has ended */
    int keep_fd;           /* to be held for as long as anything runs; -1: none */
    struct rlock *lock;    /* the program's: the guard has no use for the passwords in it */
    const struct report *report;
};

/* From the program to the guard. Nothing else comes before GUARD_START, and that but once. */
enum guard_order { GUARD_START, GUARD_EXTEND, GUARD_SIGNAL, GUARD_END };

struct guard_word {
    enum guard_order order;
    int signal;               /* GUARD_SIGNAL: for the command */
    int64_t to_all_ms;        /* GUARD_SIGNAL: when the terminal sent it to the whole job; 0: not */
    struct deadlines lease;   /* GUARD_START, GUARD_EXTEND: the end; GUARD_END: kill_ms only */
    int64_t not_after_ms;     /* GUARD_START: the command is never started later */
    struct rlock_grant grant; /* GUARD_START */
};

/* From the guard to the program. */
enum guard_says {
    GUARD_FAILED,  /* the command was not started; the guard has ended */
    GUARD_AGREES,  /* to a GUARD_EXTEND; a tree that was frozen goes on */
    GUARD_PAUSED,  /* the tree is frozen; also the answer to a GUARD_EXTEND that came too late */
    GUARD_REFUSED, /* one of the tree was to end, and may not be signalled */
    GUARD_DONE     /* of the tree has ended what has to; the guard waits to be dismissed */
};

struct guard_news {
    enum guard_says says;
    int failed;              /* GUARD_FAILED: an errno, or SPAWN_TOO_LATE */
    bool forked;             /* GUARD_FAILED: it was exec that failed */
    struct deadlines lease;  /* GUARD_AGREES */
    int64_t frozen_since_ms; /* GUARD_PAUSED, GUARD_DONE: since when nothing runs */
    int status;              /* GUARD_DONE: the command's, as wait(2) gives it */
    bool by_lease;           /* GUARD_DONE: the lease's end came first */
    bool is_alone; /* GUARD_DONE: the guard lost its socket to rlock, and so killed the tree */
    int refused;   /* GUARD_DONE: an errno, why the tree could not be frozen */
    pid_t pid;     /* GUARD_REFUSED: who */
    bool was_kill; /* GUARD_REFUSED: so that the guard can't end it whatever happens */
};

/* guard_say_refused: who can't be ended, as it has other rights than ours. */
void guard_say_refused(const struct report *report, pid_t pid, const char *hint);

/*
 * guard_run: be the guard, with the program at the other end of `fd`, and memory for the tree that
 * was reserved before. It waits for its start, and ends if the program does before.
 */
_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd);

#endif
