/* SPDX-License-Identifier: MIT */
/*
 * supervise_state: what a supervised run does next, as a table of states and events.
 *
 * The table decides and does nothing: it knows neither sockets nor processes nor the clock. The
 * caller tells it each event with the time, carries out the actions that come back, and asks when
 * the next deadline is due.
 */
#ifndef SUPERVISE_STATE_H
#define SUPERVISE_STATE_H

#include "options/options.h"
#include "supervise/guard.h"

/* Where the run is. */
enum supervise_state {
    SUPERVISE_WAITING,    /* the guard was not asked to start the command yet */
    SUPERVISE_RUNNING,    /* the command runs; with --on-lost ignore perhaps without its lock */
    SUPERVISE_PAUSED,     /* the guard has frozen the command: no renewal was confirmed in time */
    SUPERVISE_ENDING,     /* the guard was asked to end the command */
    SUPERVISE_UNKILLABLE, /* the kernel refuses KILL to us: all we can do is wait for the end */
    SUPERVISE_REPLACING,  /* the guard is dead or silent: this process ends the command */
    SUPERVISE_RELEASING,  /* nothing of the command runs any more: the lock is given back */
    SUPERVISE_DONE
};

#define SUPERVISE_STATES (SUPERVISE_DONE + 1)

/* What can happen to it. Events that a deadline brings come last, see supervise_state_due(). */
enum supervise_event {
    SUPERVISE_SIGNAL,      /* before the start: one that ends rlock; then: any that came */
    SUPERVISE_STARTED,     /* the guard was asked to start the command */
    SUPERVISE_NO_GUARD,    /* there is no guard: fork or timer failed */
    SUPERVISE_NOT_STARTED, /* the guard could not start the command: `reason` */
    SUPERVISE_RENEWED, /* the renewer confirmed the lease until `expires_ms`, asked at `sent_ms` */
    SUPERVISE_LOCK_LOST,       /* the renewer found the lock gone, another's, or released */
    SUPERVISE_SERVER_GONE,     /* the private server has ended, with all of its locks */
    SUPERVISE_GUARD_AGREED,    /* the guard acts by new deadlines: `news` */
    SUPERVISE_GUARD_PAUSED,    /* the guard has frozen the command: `news` */
    SUPERVISE_TERM_REFUSED,    /* the guard has no right to signal a process: `pid` */
    SUPERVISE_KILL_REFUSED,    /* nor has it, or have we, the right to KILL one: `pid` */
    SUPERVISE_COMMAND_ENDED,   /* the guard's last word: `news` */
    SUPERVISE_GUARD_GONE,      /* the guard ended without a last word */
    SUPERVISE_TREE_ENDED,      /* this process has ended all that the dead guard left */
    SUPERVISE_RENEWER_STARTED, /* as START_RENEWER wanted */
    SUPERVISE_RENEWER_FAILED,  /* to start */
    SUPERVISE_LOCK_MISSING,    /* to be released, it was not there, or another's */
    SUPERVISE_RELEASED,        /* the release was tried, however it ended */
    SUPERVISE_RENEWER_DUE,     /* the command takes long enough to need renewals */
    SUPERVISE_LEASE_DUE,       /* no renewal came before the command has to end */
    SUPERVISE_MAX_HOLD_DUE,    /* --max-hold is over */
    SUPERVISE_GUARD_LATE       /* the guard was silent for longer than the command may run */
};

#define SUPERVISE_EVENTS (SUPERVISE_GUARD_LATE + 1)

/*
 * What to do about an event: a set of bits, to be done in this order. What is said comes last: a
 * message may have to wait for whoever reads stderr, and no deadline waits for that.
 */
enum supervise_action {
    SUPERVISE_DISMISS_GUARD = 1 << 0, /* it has said its last word */
    SUPERVISE_EXTEND_GUARD = 1 << 1,  /* tell it supervise_state_deadlines() */
    SUPERVISE_PASS_SIGNAL = 1 << 2,   /* to the guard, for the command */
    SUPERVISE_END_COMMAND = 1 << 3,   /* ask the guard: TERM now, KILL at `kill_at_ms` */
    SUPERVISE_START_RENEWER = 1 << 4,
    SUPERVISE_SAY_LOST = 1 << 5, /* `loss` says why */
    SUPERVISE_SAY_GUARD_LOST = 1 << 6,
    SUPERVISE_SAY_PAUSED = 1 << 7,
    SUPERVISE_SAY_RESUMED = 1 << 8, /* after `last_pause_ms` */
    SUPERVISE_SAY_REFUSED = 1 << 9, /* who can't be ended: `refused_pid` */
    SUPERVISE_SAY_MAX_HOLD = 1 << 10,
    SUPERVISE_SAY_NOT_STARTED = 1 << 11,
    SUPERVISE_SAY_NO_RENEWER = 1 << 12
};

/* Is the lock ours? Once it isn't, or can't be shown to be, it never is again. */
enum supervise_lease {
    SUPERVISE_LEASE_HELD,
    SUPERVISE_LEASE_LOST,
    SUPERVISE_LEASE_GONE /* with its private server: there is nothing to give it back to */
};

/* How the lock was lost. */
enum supervise_loss {
    SUPERVISE_LOSS_NONE,
    SUPERVISE_LOSS_NOT_RENEWED,  /* in time */
    SUPERVISE_LOSS_GUARD_SILENT, /* it was renewed, but the guard did not agree to that in time */
    SUPERVISE_LOSS_TOLD,         /* SUPERVISE_LOCK_LOST says why */
    SUPERVISE_LOSS_SERVER_GONE,
    SUPERVISE_LOSS_GUARD_ALONE, /* the guard took this process for dead */
    SUPERVISE_LOSS_MISSING      /* it was found out by the release */
};

/* One run. Written by supervise_state.c only; times are on rlock_clock_ms(). */
struct supervision {
    enum supervise_state state;
    enum supervise_lease lease;
    enum supervise_loss loss;
    enum exit_reason reason; /* how the run ends, as far as is known */
    unsigned actions;        /* of the event at hand */

    enum on_lost on_lost;
    struct rlock_timing timing;
    int64_t expires_ms;        /* the lease's end, as the last confirmed renewal has it */
    struct deadlines agreed;   /* what the guard acts by */
    int64_t renewer_at_ms;     /* when to start the renewer; RLOCK_NEVER: it was started */
    int64_t renewer_needed_ms; /* from then on a renewer that can't be started is worth a word */
    int64_t max_hold_at_ms;    /* when --max-hold ends the command; RLOCK_NEVER */
    int64_t kill_at_ms;        /* of SUPERVISE_END_COMMAND */
    int64_t frozen_since_ms;   /* since when nothing of the command runs; 0: it isn't frozen */
    int64_t answer_by_ms;      /* when the guard of a frozen command must answer; RLOCK_NEVER */
    int64_t last_pause_ms;     /* how long the last pause was */
    int64_t paused_ms;         /* how long all of them were */
    pid_t refused_pid;         /* the last one that can't be ended; 0: none */
    bool has_run;              /* the command was started, or may have been */
};

/* What comes with an event; an event's comment names the fields it has. */
struct supervise_input {
    int64_t now_ms; /* set by supervise_state_handle() */
    int64_t sent_ms;
    int64_t expires_ms;
    const struct guard_news *news;
    pid_t pid;
    enum exit_reason reason;
};

/*
 * supervise_state_init: a run that is SUPERVISE_WAITING, for a lease that was granted at
 * `granted_ms`. `max_hold_ms` is how long the command may run; 0: as long as it wants.
 */
void supervise_state_init(struct supervision *run, const struct rlock_grant *grant,
                          int64_t granted_ms, enum on_lost on_lost, int64_t max_hold_ms);

/* supervise_state_can_happen: has the table a cell for this event in this state? */
bool supervise_state_can_happen(enum supervise_state state, enum supervise_event event);

/*
 * supervise_state_handle: change the state by an event. Returns the actions to be done. An event
 * that can't happen in the present state changes nothing.
 */
unsigned supervise_state_handle(struct supervision *run, enum supervise_event event, int64_t now_ms,
                                struct supervise_input input);

/*
 * supervise_state_deadlines: when the guard has to end, or freeze, the command by the newest
 * renewal.
 */
struct deadlines supervise_state_deadlines(const struct supervision *run);

/* supervise_state_next_ms: when the next deadline is due; RLOCK_NEVER. */
int64_t supervise_state_next_ms(const struct supervision *run);

/* supervise_state_due: is a deadline due at `now_ms`? True with the first event that it brings. */
bool supervise_state_due(const struct supervision *run, int64_t now_ms,
                         enum supervise_event *event);

#endif
