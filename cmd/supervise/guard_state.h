/* SPDX-License-Identifier: MIT */
/* guard_state: decides when the command's tree gets TERM, is frozen, gets KILL, and is done. */
#ifndef GUARD_STATE_H
#define GUARD_STATE_H

#include "supervise/deadlines.h"

#include <stdbool.h>

/* The tree is the command and all processes below the guard that came of it. */
enum guard_state {
    GUARD_STATE_RUNNING,  /* the command runs */
    GUARD_STATE_DRAINING, /* --wait-all: the command has ended, processes that it started run on */
    GUARD_STATE_TERMINATING, /* the tree has got TERM, and gets KILL at a known time */
    GUARD_STATE_FREEZING,    /* --on-lost pause: threads are being stopped, some may still run */
    GUARD_STATE_FROZEN,      /* every thread is stopped, and the program was told so */
    GUARD_STATE_REFREEZING, /* frozen, but a process ended: what it traced or left behind may run */
    GUARD_STATE_KILLING,    /* KILL is sent again and again, until nothing of the tree is left */
    GUARD_STATE_KILLING_FROZEN, /* the same, while what has not died yet is kept from running */
    GUARD_STATE_DONE,           /* what had to end has ended */
    GUARD_STATES
};

enum guard_event {
    GUARD_EVENT_LEASE_EXTENDED, /* the program confirmed a renewal */
    GUARD_EVENT_END_ASKED,      /* the program wants the tree ended */
    GUARD_EVENT_SIGNAL,         /* the program passes on a signal, */
    GUARD_EVENT_END_SIGNAL,     /* one by which people end a program: HUP, INT, QUIT, TERM */
    GUARD_EVENT_PROGRAM_GONE,   /* nobody renews the lease any more */
    GUARD_EVENT_PROCESS_ENDED,  /* a process of the tree was reaped */
    GUARD_EVENT_COMMAND_EXITED, /* the command ended by itself; others of the tree are left */
    GUARD_EVENT_COMMAND_KILLED, /* a signal ended the command; others of the tree are left */
    GUARD_EVENT_TREE_EMPTY,     /* the command has ended, and nothing of the tree is left */
    GUARD_EVENT_TREE_STOPPED,   /* GUARD_ACTION_FREEZE found every thread of the tree stopped */
    GUARD_EVENT_TERM_DUE,       /* the clock has come to the lease's TERM, */
    GUARD_EVENT_KILL_DUE,       /* to the lease's KILL, and the tree is not frozen, */
    GUARD_EVENT_END_DUE,        /* to the KILL of an end that was asked for */
    GUARD_EVENTS
};

/* What the guard has to do now, in this order. Several are joined with |. */
enum guard_action {
    GUARD_ACTION_ANSWER_AGREED = 1 << 0, /* tell the program that the guard acts by the new lease */
    GUARD_ACTION_ANSWER_PAUSED =
        1 << 1, /* tell the program that the tree is frozen, and since when */
    GUARD_ACTION_PASS_SIGNAL = 1 << 2, /* send the program's signal to the command */
    GUARD_ACTION_THAW = 1 << 3,        /* let the tree run again, but not beyond the lease's TERM */
    GUARD_ACTION_LET_GO = 1 << 4,      /* let what is left of the tree run on by itself, for good */
    GUARD_ACTION_TERM = 1 << 5,        /* send TERM to the tree, once */
    GUARD_ACTION_FREEZE = 1 << 6, /* stop each thread that runs; if all are stopped: TREE_STOPPED */
    GUARD_ACTION_KILL = 1 << 7    /* send KILL to all that is left of the tree */
};

/* Which of the command's options change a decision. */
struct guard_rules {
    bool pauses;      /* --on-lost pause: freeze at the lease's end, instead of TERM */
    bool wait_all;    /* --wait-all: not done before each process of the tree has ended */
    int64_t grace_ms; /* from TERM to KILL, where a signal has ended the command */
};

/* What comes with an event. */
struct guard_input {
    int64_t now_ms;
    struct deadlines lease; /* LEASE_EXTENDED: the new one */
    int64_t kill_ms;        /* END_ASKED: when TERM has to turn into KILL */
};

/* Written by guard_state.c only. Times are on rlock_clock_ms(). */
struct guard_machine {
    enum guard_state state;
    struct guard_rules rules;
    struct deadlines lease;   /* the latest that was proven */
    int64_t asked_kill_ms;    /* KILL of an end that was asked for; RLOCK_NEVER: none was */
    int64_t frozen_since_ms;  /* since when the whole tree stands still; 0: it does not */
    int64_t killing_since_ms; /* since when KILL is sent; 0: it is not */
    bool command_has_ended;   /* known while it makes a difference: until KILL is sent */
    bool lease_ended_first;   /* the tree had to end because of the lease; never undone */
    struct guard_input in;    /* of the event that is being handled, */
    unsigned actions;         /* and what to do about it: enum guard_action */
};

/* guard_state_start: the command has just been started under `lease`. */
void guard_state_start(struct guard_machine *machine, struct guard_rules rules,
                       struct deadlines lease);

/*
 * guard_state_handle: change the state by an event. Returns what to do about it at once. An event
 * that cannot happen in the present state ends in KILL: whatever went wrong, nothing is to outlive
 * the lease. After GUARD_STATE_DONE events change nothing.
 */
unsigned guard_state_handle(struct guard_machine *machine, enum guard_event event,
                            struct guard_input in);

/* guard_state_due: an event that the clock has made due, to be handled now; GUARD_EVENTS: none. */
enum guard_event guard_state_due(const struct guard_machine *machine, int64_t now_ms);

/*
 * guard_state_work: what the state asks for at each turn of the guard: GUARD_ACTION_FREEZE,
 * GUARD_ACTION_KILL or 0.
 */
unsigned guard_state_work(const struct guard_machine *machine);

/* guard_state_next_ms: when the guard needs its next turn, if nothing else happens. */
int64_t guard_state_next_ms(const struct guard_machine *machine, int64_t now_ms);

/* guard_state_is_held: the tree is frozen, or is being frozen: what stops may not go on. */
bool guard_state_is_held(const struct guard_machine *machine);

/* guard_state_can_happen: is there a cell for this event in this state? For tests. */
bool guard_state_can_happen(enum guard_state state, enum guard_event event);

#endif
