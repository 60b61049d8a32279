/* SPDX-License-Identifier: MIT */
/* guard: ends the command and everything it started before its lease ends. */
#ifndef GUARD_H
#define GUARD_H

#include "output/report.h"
#include "session/environment.h"
#include "supervise/deadlines.h"
#include "supervise/proctree.h"
#include "supervise/spawn.h"

/* What the guard knows before the lock is granted: the guard is forked while rlock waits for it. */
struct guard_plan {
    struct spawn_plan spawn; /* envp, not_after_ms and cgroup_fd are filled in at the start */
    const char *keys;        /* for the command's environment; NULL: there was no memory for it */
    bool has_slot;           /* the command's environment tells the slot of a --slots lock */
    bool keeps_secrets;      /* the command's environment keeps the passwords in rlock's own */
    bool pauses;             /* --on-lost pause: the tree is frozen at the lease's end */
    bool wait_all;           /* --wait-all: the guard is done when no process of the tree is left */
    struct cgroup *cgroup;   /* for the command, or CGROUP_NONE */
    int keep_fd;             /* stays open as long as the guard lives; -1: none */
    struct rlock *lock;      /* the program's; the guard clears the passwords in its copy */
    const struct report *report;
};

/* From the program to the guard: one START, before all others. */
enum guard_request_kind {
    GUARD_REQUEST_START,
    GUARD_REQUEST_EXTEND,
    GUARD_REQUEST_SIGNAL,
    GUARD_REQUEST_END
};

struct guard_request {
    enum guard_request_kind kind;
    int signal;               /* SIGNAL: for the command */
    int64_t terminal_sent_ms; /* SIGNAL: when the terminal sent it to the whole job; 0: it didn't */
    struct deadlines lease;   /* START, EXTEND: the lease's; END: of these only kill_ms */
    int64_t not_after_ms;     /* START: the command is not started at this time or later */
    struct rlock_grant grant; /* START: for the command's environment */
};

/* From the guard to the program. */
enum guard_news_kind {
    GUARD_NEWS_FAILED,  /* the command was not started, and the guard exits */
    GUARD_NEWS_AGREES,  /* answers EXTEND: the new deadlines hold, and a frozen tree runs again */
    GUARD_NEWS_PAUSED,  /* the tree is frozen; also answers an EXTEND that came too late */
    GUARD_NEWS_REFUSED, /* the guard has no right to signal a process of the tree that has to end */
    GUARD_NEWS_DONE     /* what had to end has ended; the guard waits until the socket is closed */
};

struct guard_news {
    enum guard_news_kind kind;
    int error;              /* FAILED: an errno, or SPAWN_TOO_LATE */
    bool is_exec_error;     /* FAILED: the error is exec's */
    struct deadlines lease; /* AGREES: the new deadlines */
    int64_t
        frozen_since_ms; /* PAUSED: since when nothing of the tree runs; DONE: the same, or now */
    int status;          /* DONE: the command's, as wait(2) gives it */
    bool lease_ended_first; /* DONE: the tree was ended because of the lease */
    bool program_was_gone;  /* DONE: the guard took rlock for dead, and so killed the tree */
    int freeze_error;       /* DONE: the errno of a thread that could not be frozen; 0: none */
    pid_t pid;              /* REFUSED: of the process */
    bool was_kill;          /* REFUSED: KILL was refused, so nothing the guard does can end it */
};

/* guard_say_refused: report that we have no right to signal a process; `hint` says what follows. */
void guard_say_refused(const struct report *report, pid_t pid, const char *hint);

/*
 * guard_run: be the guard, in a process that was just forked. `tree` is reserved; at the other end
 * of the socket `fd` is the program. Waits for GUARD_REQUEST_START; exits without it if the program
 * exits.
 */
_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd);

#endif
