/* SPDX-License-Identifier: MIT */
/*
 * supervise_state: what a supervised run does next, as a table of states and events.
 *
 * The table has no side effects: it opens no socket, starts no process and reads no clock. The
 * caller (supervise.c) passes each event with the time, and carries out the actions that the table
 * returns. It also asks the table for the time of the next deadline.
 */
#ifndef SUPERVISE_STATE_H
#define SUPERVISE_STATE_H

#include "options/options.h"
#include "supervise/guard.h"

/* What runs under the lock. */
enum supervise_kind {
    SUPERVISE_COMMAND, /* a command that the guard starts */
    /* acquire --bind-pid: a process that runs already, which the guard ends; with --on-lost ignore
     * there is no guard */
    SUPERVISE_BOUND,
    SUPERVISE_HOLD /* hold --renew: nothing, so there is no guard either */
};

/* What the main process of rlock is doing. */
enum supervise_state {
    /* The command runs, or is to be started. With --on-lost ignore it runs on without the lock. */
    SUPERVISE_STATE_RUNNING,
    /* --on-lost pause: the guard has frozen the command, as no renewal was confirmed in time. */
    SUPERVISE_STATE_PAUSED,
    /* The main process has asked the guard to end the command. */
    SUPERVISE_STATE_ENDING,
    /* The kernel refuses to let us kill a process of the command: wait until it ends by itself. */
    SUPERVISE_STATE_UNKILLABLE,
    /* The guard is dead or doesn't answer: the main process kills the command itself. */
    SUPERVISE_STATE_REPLACING,
    /* No process of the command runs any more: the main process releases the lock. */
    SUPERVISE_STATE_RELEASING,
    SUPERVISE_STATE_DONE
};

#define SUPERVISE_STATES (SUPERVISE_STATE_DONE + 1)

/*
 * What can happen during a run. The last five events come from deadlines: supervise_state_due()
 * returns them. Names in backquotes are the fields of struct supervise_input that the event uses.
 */
enum supervise_event {
    /* A signal came for the command. */
    SUPERVISE_EVENT_SIGNAL,
    /* The command was not started; `reason` is why. `news`: the guard's message about the failure;
     * NULL: there is no message, because a signal came or no guard could be forked. */
    SUPERVISE_EVENT_NOT_STARTED,
    /* The server has confirmed the renewal sent at `sent_ms`: the lease lasts to `expires_ms`. */
    SUPERVISE_EVENT_RENEWED,
    /* The renewer learned that the lock was released, is free, or has another owner. */
    SUPERVISE_EVENT_LOCK_LOST,
    /* The private server has ended, and with it all of its locks. */
    SUPERVISE_EVENT_SERVER_GONE,
    /* Not for a command: another process has released the lock by its token. That is no loss. */
    SUPERVISE_EVENT_GIVEN_BACK,
    /* The guard acts by the deadlines in `news`, and the command isn't frozen. */
    SUPERVISE_EVENT_GUARD_AGREED,
    /* The guard has frozen the command; `news` says when. */
    SUPERVISE_EVENT_GUARD_PAUSED,
    /* The kernel refused the guard's TERM to the process `pid` of the command. */
    SUPERVISE_EVENT_TERM_REFUSED,
    /* The kernel refused KILL, sent by the guard or by us, to the process `pid` of the command. */
    SUPERVISE_EVENT_KILL_REFUSED,
    /* The command has ended; `news` is the last message that the guard sends. */
    SUPERVISE_EVENT_COMMAND_ENDED,
    /* The bound process has ended. */
    SUPERVISE_EVENT_BOUND_ENDED,
    /* The guard process has ended without having sent GUARD_NEWS_DONE or GUARD_NEWS_FAILED. */
    SUPERVISE_EVENT_GUARD_GONE,
    /* After a failure of the guard, the main process has killed the whole tree of the command. */
    SUPERVISE_EVENT_TREE_ENDED,
    /* The renewer's thread was started. */
    SUPERVISE_EVENT_RENEWER_STARTED,
    /* The renewer's thread could not be started. */
    SUPERVISE_EVENT_RENEWER_FAILED,
    /* The server replied to the release that the lock is free, or that another owner holds it. */
    SUPERVISE_EVENT_LOCK_MISSING,
    /* The release is over: it succeeded, or failed with an error that was reported. */
    SUPERVISE_EVENT_RELEASED,

    /* The command has run for so long that the lease will need renewals. */
    SUPERVISE_EVENT_RENEWER_DUE,
    /* The time to end the command has come, and no renewal was confirmed. */
    SUPERVISE_EVENT_LEASE_DUE,
    /* TERM is near or was sent: note which processes belong to the tree of the bound process. */
    SUPERVISE_EVENT_LOOK_DUE,
    /* The command has run for as long as --max-hold allows, or the time of a hold is over. */
    SUPERVISE_EVENT_MAX_HOLD_DUE,
    /* The guard should have ended the command, or answered a request, but is silent. */
    SUPERVISE_EVENT_GUARD_LATE
};

#define SUPERVISE_EVENTS (SUPERVISE_EVENT_GUARD_LATE + 1)

/*
 * What the caller has to do about an event: a set of bits, to be carried out in this order.
 * Messages (SAY) come last: writing to stderr may block for 200 ms, which must delay no deadline.
 */
enum supervise_action {
    /* Close the socket to the guard, which has sent its last message and may exit. */
    SUPERVISE_ACTION_DISMISS_GUARD = 1 << 0,
    /* Send supervise_state_deadlines() to the guard. */
    SUPERVISE_ACTION_EXTEND_GUARD = 1 << 1,
    /* Send the signal that was received to the command (by the guard), or to the bound process. */
    SUPERVISE_ACTION_PASS_SIGNAL = 1 << 2,
    /*
     * Find the descendants of the bound process, and remember them. When TERM has ended some, the
     * others are no longer its descendants, and have to be killed nevertheless if the guard fails.
     */
    SUPERVISE_ACTION_LOOK = 1 << 3,
    /*
     * Forget the descendants that LOOK has found. TERM is far: a process that loses its parent
     * until then is a daemon that the bound process leaves behind, and is not ended.
     */
    SUPERVISE_ACTION_FORGET = 1 << 4,
    /* Ask the guard to send TERM to the command now, and KILL at `kill_at_ms`. */
    SUPERVISE_ACTION_END_COMMAND = 1 << 5,
    /* Start the renewer's thread. */
    SUPERVISE_ACTION_START_RENEWER = 1 << 6,
    /* Report that the lock was lost; `loss` is how. */
    SUPERVISE_ACTION_SAY_LOST = 1 << 7,
    /* Report that the guard has ended or doesn't answer. */
    SUPERVISE_ACTION_SAY_GUARD_LOST = 1 << 8,
    /* Report that the command was frozen. */
    SUPERVISE_ACTION_SAY_PAUSED = 1 << 9,
    /* Report that the command runs again, after `last_pause_ms`. */
    SUPERVISE_ACTION_SAY_RESUMED = 1 << 10,
    /* Report that the kernel refuses to let us signal the process `refused_pid`. */
    SUPERVISE_ACTION_SAY_REFUSED = 1 << 11,
    /* Report that --max-hold, or the time of a hold, is over. */
    SUPERVISE_ACTION_SAY_MAX_HOLD = 1 << 12,
    /* Report that the guard could not start the command. */
    SUPERVISE_ACTION_SAY_NOT_STARTED = 1 << 13,
    /* Report that the renewer could not be started. */
    SUPERVISE_ACTION_SAY_NO_RENEWER = 1 << 14
};

/* Whether we hold the lock. The value only ever moves down this list. */
enum supervise_lease {
    SUPERVISE_LEASE_HELD, /* the lease has not ended, as far as the last renewal proves */
    SUPERVISE_LEASE_LOST, /* another owner may hold the lock by now */
    /* nothing is left to release: the private server has ended, or another process released it */
    SUPERVISE_LEASE_GONE
};

/* How the lock was lost. */
enum supervise_loss {
    SUPERVISE_LOSS_NONE,
    SUPERVISE_LOSS_NOT_RENEWED,  /* no renewal was confirmed in time */
    SUPERVISE_LOSS_GUARD_SILENT, /* a renewal came, but the guard didn't confirm its deadlines */
    SUPERVISE_LOSS_TOLD,         /* the reply to a renewal said that the lock isn't ours */
    SUPERVISE_LOSS_SERVER_GONE,  /* the private server has ended */
    SUPERVISE_LOSS_GUARD_ALONE,  /* the guard took this process for dead, and killed the command */
    SUPERVISE_LOSS_MISSING       /* the server didn't have the lock any more when we released it */
};

/* The data of an event. enum supervise_event names the fields that each event uses. */
struct supervise_input {
    int64_t now_ms; /* set by supervise_state_handle() */
    int64_t sent_ms;
    int64_t expires_ms;
    const struct guard_news *news;
    bool is_behind; /* with `news`: the guard has not answered all requests yet */
    pid_t pid;
    enum exit_reason reason;
};

/* One run. Only supervise_state.c writes the fields. Times are on rlock_clock_ms(). */
struct supervision {
    enum supervise_state state;
    enum supervise_lease lease;
    enum supervise_loss loss;
    enum exit_reason reason; /* how rlock exits by what is known now; REASON_GRANTED: all is well */
    struct supervise_input in; /* the data of the event that is being handled */
    unsigned actions;          /* enum supervise_action: what that event needs */

    enum supervise_kind kind;
    enum on_lost on_lost;
    struct rlock_timing timing;
    int64_t expires_ms;      /* the lease's end, by the last renewal that was confirmed */
    struct deadlines agreed; /* the deadlines that the guard has confirmed last */
    int64_t renewer_at_ms;   /* when to start the renewer; RLOCK_NEVER: it was started */
    /* if the renewer could not be started early: when to try again, and to report a failure */
    int64_t renewer_needed_ms;
    int64_t max_hold_at_ms;  /* when --max-hold ends the command, or a hold ends; or RLOCK_NEVER */
    int64_t look_again_ms;   /* when to look again at the tree of a bound process; 0: not yet */
    int64_t kill_at_ms;      /* when SUPERVISE_ACTION_END_COMMAND asks for KILL; 0: not yet asked */
    int64_t frozen_since_ms; /* when the guard froze the command; 0: it isn't frozen */
    bool has_begun;          /* the guard has sent a message, so it has answered START */
    int64_t answer_by_ms;    /* when the guard must have sent its next message, or RLOCK_NEVER */
    bool was_late;           /* answer_by_ms has passed once, and the guard was asked again */
    int64_t last_pause_ms;   /* how long the last pause was */
    int64_t paused_ms;       /* how long all pauses were together */
    pid_t refused_pid;       /* the last process that the kernel won't let us end; 0: none */
    bool has_run;            /* the command was started, or may have been */
};

/*
 * supervise_state_init: begin a run in SUPERVISE_STATE_RUNNING, under a lease that the server
 * granted at `granted_ms`. `max_hold_ms` is how long the command may run, or a hold lasts; 0:
 * without limit. For a hold `on_lost` doesn't count, as there is no process to end.
 */
void supervise_state_init(struct supervision *run, enum supervise_kind kind,
                          const struct rlock_grant *grant, int64_t granted_ms, enum on_lost on_lost,
                          int64_t max_hold_ms);

/* supervise_state_can_happen: does the table have a cell for this event in this state? */
bool supervise_state_can_happen(enum supervise_state state, enum supervise_event event);

/*
 * supervise_state_handle: change the state by an event. Returns the actions that the caller has to
 * carry out. An event that can't happen in the present state changes nothing.
 */
unsigned supervise_state_handle(struct supervision *run, enum supervise_event event, int64_t now_ms,
                                struct supervise_input input);

/*
 * supervise_state_deadlines: when the guard has to end or freeze the command, by the last renewal
 * that was confirmed; both RLOCK_NEVER with --on-lost ignore.
 */
struct deadlines supervise_state_deadlines(const struct supervision *run);

/* supervise_state_next_ms: when the next deadline is due; RLOCK_NEVER: there is none. */
int64_t supervise_state_next_ms(const struct supervision *run);

/* supervise_state_due: true if a deadline is due at `now_ms`; `event` is then its event. */
bool supervise_state_due(const struct supervision *run, int64_t now_ms,
                         enum supervise_event *event);

#endif
