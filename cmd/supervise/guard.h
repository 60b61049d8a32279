/* SPDX-License-Identifier: MIT */
/* guard: ends the command and everything it started before its lease ends. */
#ifndef GUARD_H
#define GUARD_H

#include "output/report.h"
#include "session/environment.h"
#include "supervise/deadlines.h"
#include "supervise/proctree.h"
#include "supervise/spawn.h"

/*
 * What the guard knows from its start. The program forks the guard while it still waits for the
 * lock, so all that depends on the grant comes later, with GUARD_REQUEST_START.
 */
struct guard_plan {
    struct spawn_plan spawn; /* the guard sets envp, not_after_ms and cgroup_fd at the start */
    const char *keys;        /* the value of RLOCK_KEY for the command; NULL: no memory */
    bool has_slot;           /* --slots: the command gets RLOCK_SLOT */
    bool keeps_secrets;      /* --pass-credentials: the command gets rlock's passwords */
    bool pauses;             /* --on-lost pause: freeze the tree when TERM would be due */
    bool wait_all;           /* --wait-all: stay until the last process of the tree has ended */
    struct cgroup *cgroup;   /* the command's; CGROUP_NONE: the command stays in rlock's own */
    int keep_fd;             /* a descriptor that the guard does not close; -1: none */
    struct rlock *lock;      /* the program's handle; the guard clears its copy's passwords */
    const struct report *report;
};

/* What the program asks of the guard. START comes once, before all others. */
enum guard_request_kind {
    GUARD_REQUEST_START,
    GUARD_REQUEST_EXTEND,
    GUARD_REQUEST_SIGNAL,
    GUARD_REQUEST_END
};

struct guard_request {
    enum guard_request_kind kind;
    int signal;               /* SIGNAL: for the command */
    int64_t terminal_sent_ms; /* SIGNAL: when the terminal sent it to the job; 0: others sent it */
    struct deadlines lease;   /* START, EXTEND: of the lease; END: only kill_ms is set */
    int64_t not_after_ms;     /* START: from this time on the command must not be started */
    struct rlock_grant grant; /* START: for the command's environment */
};

/* What the guard tells the program. */
enum guard_news_kind {
    GUARD_NEWS_FAILED,  /* the command was not started, and the guard exits */
    GUARD_NEWS_AGREES,  /* the guard acts by `lease` from now on, and the tree is not frozen */
    GUARD_NEWS_PAUSED,  /* the tree is frozen; also the answer to an EXTEND that came too late */
    GUARD_NEWS_REFUSED, /* the kernel refuses a signal to a process of the tree that has to end */
    GUARD_NEWS_DONE     /* the guard has nothing more to do, and waits for the socket's end */
};

struct guard_news {
    enum guard_news_kind kind;
    int error;               /* FAILED: an errno, or SPAWN_TOO_LATE */
    bool is_exec_error;      /* FAILED: execvpe(3) set the errno */
    struct deadlines lease;  /* AGREES: those of the lease, but TERM is earlier for a large tree */
    int64_t frozen_since_ms; /* PAUSED, DONE: when the tree was frozen; DONE, not frozen: now */
    int status;              /* DONE: of the command, as wait(2) gives it */
    bool lease_ended_first;  /* DONE: the guard ended the tree because of the lease */
    bool program_was_gone;   /* DONE: the guard took the program for dead, and so killed the tree */
    int freeze_error;        /* DONE: why a thread could not be frozen: an errno; 0: all could */
    pid_t pid;               /* REFUSED: the process */
    bool was_kill;           /* REFUSED: true: the signal was KILL; false: it was TERM */
};

/*
 * guard_say_refused: report that the kernel refuses our signal to a process (EPERM). `hint` says
 * what comes of that.
 */
void guard_say_refused(const struct report *report, pid_t pid, const char *hint);

/*
 * guard_run: be the guard, in a process that was just forked. The caller has reserved `tree`, and
 * holds the other end of the socket `fd`. The guard waits for GUARD_REQUEST_START, and exits if the
 * caller exits before that.
 */
_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd);

#endif
