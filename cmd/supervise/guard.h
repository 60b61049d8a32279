/* SPDX-License-Identifier: MIT */
/* guard: ends the command and everything it started before its lease ends. */
#ifndef GUARD_H
#define GUARD_H

#include "output/report.h"
#include "session/environment.h"
#include "supervise/deadlines.h"
#include "supervise/ending.h"
#include "supervise/proctree.h"
#include "supervise/say.h"
#include "supervise/spawn.h"

/*
 * What the guard knows from its start. The main process forks the guard while it still waits for
 * the lock, so all that depends on the grant comes later, with GUARD_REQUEST_START.
 */
struct guard_plan {
    /* acquire --bind-pid: the process that the guard ends, the root of guard_run()'s `tree`, and no
     * child of the guard. 0: the guard starts a command, and ends that. */
    pid_t bound;
    int begun_fd; /* socket, on which the guard of a bound process sends an int of 0 as it begins */
    struct spawn_plan spawn; /* the guard sets envp, not_after_ms and cgroup_fd at the start */
    const char *name;        /* the command's name for messages; NULL: no memory */
    /* the command's environment, without the variables that the grant sets; NULL: no memory */
    struct environment *environment;
    bool keeps_secrets;    /* --pass-credentials: the command gets rlock's passwords */
    bool pauses;           /* --on-lost pause: freeze the cgroup when TERM would be due */
    bool wait_all;         /* --wait-all: stay until the last process of the tree has ended */
    struct cgroup *cgroup; /* for the command; CGROUP_NONE: the command stays in rlock's own */
    int keep_fd;           /* a descriptor that the guard does not close; -1: none */
    int hook_fd;           /* socket to the process of --on-event, kept open as well; -1: none */
    struct rlock *lock;    /* the main process's handle; the guard clears its copy's passwords */
    const struct report *report;
};

/* What the main process asks of the guard. START comes once, before all others. */
enum guard_request_kind {
    GUARD_REQUEST_START,
    GUARD_REQUEST_EXTEND,
    GUARD_REQUEST_SIGNAL,
    GUARD_REQUEST_END
};

struct guard_request {
    enum guard_request_kind kind;
    unsigned number;          /* guard_client.c counts the requests */
    int signal;               /* SIGNAL: the signal for the command */
    int64_t terminal_read_ms; /* SIGNAL: when main read the terminal's signal; 0: other sender */
    struct deadlines lease;   /* START, EXTEND: the lease's deadlines; END: only kill_ms is set */
    int64_t not_after_ms;     /* START: from this time on the command must not be started */
    int64_t grace_ms;         /* START: from TERM to KILL, if a signal has ended the command */
    char variables[ENVIRONMENT_GRANT_BYTES]; /* START: what environment_put_grant() has written */
};

/*
 * What the guard tells the main process. AGREES, PAUSED or FAILED answers a request. AGREES and
 * PAUSED also come unasked: when TERM has become earlier, or when the tree is frozen.
 */
enum guard_news_kind {
    GUARD_NEWS_FAILED,  /* the command was not started, and the guard exits */
    GUARD_NEWS_AGREES,  /* the guard acts by `lease`, and the tree is not frozen */
    GUARD_NEWS_PAUSED,  /* the tree is frozen */
    GUARD_NEWS_REFUSED, /* the kernel refuses a signal to a process of the tree that has to end */
    GUARD_NEWS_DONE     /* the guard has nothing more to do, and exits */
};

struct guard_news {
    enum guard_news_kind kind;
    unsigned answered;      /* the number of the last request that the guard has read */
    int error;              /* FAILED: an errno, or SPAWN_TOO_LATE */
    bool is_exec_error;     /* FAILED: execvpe(3) set the errno */
    struct deadlines lease; /* AGREES: the lease's deadlines; TERM is earlier for a large tree */
    /* PAUSED, DONE: since when no process of the tree runs: it was frozen then, or has ended */
    int64_t stopped_since_ms;
    int status;             /* DONE: the command's status, as wait(2) gives it */
    struct ending ending;   /* DONE: when the tree got TERM and KILL, and had ended */
    bool lease_ended_first; /* DONE: the guard ended the tree because of the lease */
    bool main_was_gone; /* DONE: the guard took the main process for dead, and so killed the tree */
    pid_t pid;          /* REFUSED: the process that the signal was for */
    bool was_kill;      /* REFUSED: true: the signal was KILL; false: it was TERM */
};

/* guard_command: the name of the command for messages; "the command" if there is no memory. */
const char *guard_command(const struct guard_plan *plan);

/* guard_subject: the command, or the bound process, as a fact for messages. */
struct fact guard_subject(const struct guard_plan *plan);

/*
 * guard_run: be the guard, in a process that was just forked. The parent has reserved `tree`, and
 * has the other end of the socket `fd`. The guard waits for GUARD_REQUEST_START, and exits if the
 * parent exits before that.
 */
_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd);

#endif
