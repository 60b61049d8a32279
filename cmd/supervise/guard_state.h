/* SPDX-License-Identifier: MIT */
/* guard_state: decides when the command's tree gets TERM, is frozen, gets KILL, and is done. */
#ifndef GUARD_STATE_H
#define GUARD_STATE_H

#include "supervise/deadlines.h"

#include <stdbool.h>

/* "The tree" is the command and all processes that descend from the command. */
enum guard_state {
    GUARD_STATE_RUNNING,     /* the command runs, or, with --wait-all, what it has left behind */
    GUARD_STATE_TERMINATING, /* the tree has got TERM, and gets KILL at a known time */
    GUARD_STATE_PAUSED,      /* --on-lost pause: the tree is frozen, or the guard freezes it */
    GUARD_STATE_KILLING,     /* the guard repeats KILL until no process of the tree is left */
    GUARD_STATE_DONE, /* every process that had to end has ended; what is left runs on for good */
    GUARD_STATES
};

enum guard_event {
    /* the first four are requests: GUARD_ACTION_TELL answers each */
    GUARD_EVENT_LEASE_EXTENDED, /* the main process has sent the deadlines of a confirmed renewal */
    GUARD_EVENT_END_ASKED,      /* the main process has asked the guard to end the tree */
    GUARD_EVENT_SIGNAL,         /* the main process passes on a signal other than END_SIGNAL's */
    GUARD_EVENT_END_SIGNAL,     /* the main process passes on HUP, INT, QUIT or TERM */
    GUARD_EVENT_MAIN_GONE,      /* the main process is dead, so nobody renews the lease any more */
    GUARD_EVENT_COMMAND_EXITED, /* the command has called exit(3); descendants of it are left */
    GUARD_EVENT_COMMAND_KILLED, /* a signal has ended the command; descendants of it are left */
    GUARD_EVENT_TREE_EMPTY,     /* the command has ended, and no descendant of it is left */
    GUARD_EVENT_TREE_FROZEN,    /* GUARD_ACTION_FREEZE has found that no process runs any more */
    GUARD_EVENT_TREE_COUNTED,   /* GUARD_ACTION_COUNT or _TERM has counted the processes */
    GUARD_EVENT_COUNT_DUE,      /* clock: `count_ms` has come, as no renewal came for a long time */
    GUARD_EVENT_TERM_DUE,       /* clock: `due.term_ms` has come */
    GUARD_EVENT_KILL_DUE,       /* clock: `due.kill_ms` has come, and the tree is not frozen */
    GUARD_EVENT_END_DUE,        /* clock: `asked_kill_ms` has come */
    GUARD_EVENTS
};

/*
 * What the guard has to do at once. Several are joined with |; the guard does them in this order.
 */
enum guard_action {
    GUARD_ACTION_TELL = 1 << 0, /* tell the main process the deadlines, or that nothing runs */
    GUARD_ACTION_PASS_SIGNAL = 1 << 1, /* send the main process's signal to the command */
    GUARD_ACTION_COUNT = 1 << 2,       /* count the tree, then handle TREE_COUNTED */
    GUARD_ACTION_TERM = 1 << 3,        /* send TERM to each process, then handle TREE_COUNTED */
    GUARD_ACTION_FREEZE = 1 << 4,      /* freeze the tree; if nothing runs, handle TREE_FROZEN */
    GUARD_ACTION_KILL = 1 << 5         /* send KILL to each process that is left of the tree */
};

/* The options that the guard's decisions depend on; they don't change during a run. */
struct guard_rules {
    bool is_bound;    /* acquire --bind-pid: the root of the tree is not a child of the guard */
    bool pauses;      /* --on-lost pause: at the lease's TERM freeze the tree, send no TERM */
    bool wait_all;    /* --wait-all: stay until the last process of the tree has ended */
    int64_t grace_ms; /* time from TERM to KILL, if a signal has ended the command */
};

/* The fields of an event. The caller sets `now_ms` for each event. */
struct guard_input {
    int64_t now_ms;         /* the present time, on rlock_clock_ms() */
    struct deadlines lease; /* LEASE_EXTENDED: the deadlines of the renewed lease */
    int64_t kill_ms;        /* END_ASKED: the latest time for KILL, on rlock_clock_ms() */
    size_t n_processes;     /* TREE_COUNTED: how many processes the tree has */
};

/* Only guard_state.c writes the fields. Times are on rlock_clock_ms(). */
struct guard_machine {
    enum guard_state state;
    struct guard_rules rules;
    struct deadlines lease;   /* deadlines of the last renewal that the guard has agreed to */
    struct deadlines due;     /* `lease`, but earlier if the tree has many processes */
    size_t n_processes;       /* size of the tree at the last count; 0: not counted yet */
    int64_t count_ms;         /* when to count the tree; RLOCK_NEVER: not before a renewal */
    int64_t asked_kill_ms;    /* the earliest KILL of all END_ASKED; RLOCK_NEVER: no END_ASKED */
    int64_t frozen_since_ms;  /* since when no process runs; 0: the tree isn't frozen */
    int64_t killing_since_ms; /* when the guard began to send KILL; 0: not yet */
    bool lease_ended_first;   /* the guard ends the tree because of the lease; never reset */
    struct guard_input in;    /* the fields of the event that is being handled */
    unsigned actions;         /* the answer to that event: enum guard_action, joined with | */
};

/* guard_state_start: at `now_ms` the guard has started the command under `lease`. */
void guard_state_start(struct guard_machine *machine, struct guard_rules rules,
                       struct deadlines lease, int64_t now_ms);

/*
 * guard_state_handle: change the state by an event. Returns the actions that the guard has to do at
 * once. An event that cannot happen in the present state begins KILL, because after such a bug only
 * KILL makes sure that no process outlives the lease. In GUARD_STATE_DONE events change nothing.
 */
unsigned guard_state_handle(struct guard_machine *machine, enum guard_event event,
                            struct guard_input in);

/*
 * guard_state_due: the event that the clock brings at `now_ms`; the caller handles it, and asks
 * again. GUARD_EVENTS: no event is due.
 */
enum guard_event guard_state_due(const struct guard_machine *machine, int64_t now_ms);

/*
 * guard_state_work: the action that the guard repeats at each turn of its loop:
 * GUARD_ACTION_FREEZE, GUARD_ACTION_KILL, GUARD_ACTION_TERM for a bound process (to find the
 * processes that have come since, before their parents end), or 0.
 */
unsigned guard_state_work(const struct guard_machine *machine);

/*
 * guard_state_next_ms: when the guard needs its next turn if no message and no SIGCHLD comes. In
 * GUARD_STATE_KILLING it needs one at once; proctree.c knows when KILL needs a pause.
 */
int64_t guard_state_next_ms(const struct guard_machine *machine, int64_t now_ms);

/* guard_state_can_happen: has the table a cell for this event in this state? For tests. */
bool guard_state_can_happen(enum guard_state state, enum guard_event event);

#endif
