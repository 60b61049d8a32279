/* SPDX-License-Identifier: MIT */
/*
 * guard_state: decides when the command's tree gets TERM, is frozen, gets KILL, and is done.
 *
 * A table has a cell for each state and event: a function of a few lines, which returns the next
 * state. guard.c carries out the actions, so that the unit test needs no processes and no time.
 */
#include "supervise/guard_state.h"

#include "base/clock.h"
#include <rlock.h>

#define RETRY_MS 5 /* how long the guard waits before it looks again if the tree is frozen */

typedef enum guard_state transition(struct guard_machine *machine);

/* ---- the cells of the table: each returns the next state ---- */

static enum guard_state stay(struct guard_machine *machine)
{
    return machine->state;
}

static enum guard_state pass_signal(struct guard_machine *machine)
{
    machine->actions |= GUARD_ACTION_PASS_SIGNAL;
    return machine->state;
}

/*
 * This cell adds no GUARD_ACTION_KILL: in the next state guard_state_work() returns that action at
 * each turn of the guard's loop.
 */
static enum guard_state begin_kill(struct guard_machine *machine)
{
    machine->killing_since_ms = machine->in.now_ms;
    machine->n_processes = 0; /* from KILL on, the size of the tree moves no deadline */
    machine->due = machine->lease;
    return GUARD_STATE_KILLING;
}

/* Nobody renews the lease any more. A bound process may run on for the rest of the lease. */
static enum guard_state lose_main(struct guard_machine *machine)
{
    return machine->rules.is_bound ? machine->state : begin_kill(machine);
}

static enum guard_state note_lease_end(struct guard_machine *machine)
{
    machine->lease_ended_first = true;
    return machine->state;
}

static enum guard_state kill_by_lease(struct guard_machine *machine)
{
    machine->lease_ended_first = true;
    return begin_kill(machine);
}

static enum guard_state terminate(struct guard_machine *machine)
{
    machine->actions |= GUARD_ACTION_TERM;
    return GUARD_STATE_TERMINATING;
}

/* If KILL is due as well, TERM is left out: sending TERM to a large tree would delay KILL. */
static enum guard_state end_by_lease(struct guard_machine *machine)
{
    if (machine->rules.pauses)
        return GUARD_STATE_PAUSED;
    if (machine->in.now_ms >= machine->due.kill_ms)
        return kill_by_lease(machine);
    machine->lease_ended_first = true;
    return terminate(machine);
}

static enum guard_state count(struct guard_machine *machine)
{
    machine->count_ms = RLOCK_NEVER;
    machine->actions |= GUARD_ACTION_COUNT;
    return machine->state;
}

/*
 * The guard tells the main process the earlier time of TERM, because the main process reports the
 * lock as lost at that time.
 */
static enum guard_state move_deadlines(struct guard_machine *machine)
{
    machine->n_processes = machine->in.n_processes;
    machine->due = deadlines_for_tree(machine->lease, machine->n_processes, machine->in.now_ms);
    if (machine->due.term_ms != machine->lease.term_ms)
        machine->actions |= GUARD_ACTION_TELL;
    return machine->state;
}

static void move_kill(struct guard_machine *machine)
{
    machine->due = (struct deadlines){
        machine->lease.term_ms,
        deadlines_for_tree(machine->lease, machine->n_processes, machine->in.now_ms).kill_ms};
}

/* The tree has got TERM already, so only the time of KILL becomes earlier. */
static enum guard_state move_kill_for_count(struct guard_machine *machine)
{
    machine->n_processes = machine->in.n_processes;
    move_kill(machine);
    return machine->state;
}

/* If END_ASKED comes several times, the earliest time for KILL counts. */
static enum guard_state take_earlier_kill(struct guard_machine *machine)
{
    if (machine->in.kill_ms < machine->asked_kill_ms)
        machine->asked_kill_ms = machine->in.kill_ms;
    return machine->state;
}

static enum guard_state end_as_asked(struct guard_machine *machine)
{
    take_earlier_kill(machine);
    return terminate(machine);
}

/* A signal has ended the command, which has not left its descendants behind on purpose. */
static enum guard_state end_orphans(struct guard_machine *machine)
{
    machine->asked_kill_ms = machine->in.now_ms + machine->rules.grace_ms;
    return terminate(machine);
}

static enum guard_state finish(struct guard_machine *machine)
{
    (void)machine;
    return GUARD_STATE_DONE;
}

/* After an exit of the command, also of a frozen one, its descendants run on, such as a daemon. */
static enum guard_state stay_or_finish(struct guard_machine *machine)
{
    return machine->rules.wait_all ? machine->state : GUARD_STATE_DONE;
}

static enum guard_state take_lease(struct guard_machine *machine)
{
    machine->lease = machine->in.lease;
    machine->due = machine->lease;
    machine->count_ms = deadlines_count_ms(machine->lease, machine->in.now_ms);
    return machine->state;
}

/*
 * The lease was renewed after TERM, or while the guard freezes the tree. If the tree was found to
 * have many processes at the last count, KILL must be earlier for the renewed lease, too.
 */
static enum guard_state take_lease_while_ending(struct guard_machine *machine)
{
    take_lease(machine);
    move_kill(machine);
    return machine->state;
}

/*
 * If TERM was sent because of the lease, the guard does not agree to the renewal: it answers with
 * the old deadlines.
 */
static enum guard_state take_lease_if_in_time(struct guard_machine *machine)
{
    return machine->lease_ended_first ? machine->state : take_lease_while_ending(machine);
}

static enum guard_state thaw(struct guard_machine *machine)
{
    take_lease(machine);
    machine->frozen_since_ms = 0;
    return GUARD_STATE_RUNNING;
}

/* If even the renewed lease's time of TERM is over, the tree may not run. */
static enum guard_state thaw_or_stay(struct guard_machine *machine)
{
    return machine->in.now_ms < machine->in.lease.term_ms ? thaw(machine)
                                                          : take_lease_while_ending(machine);
}

/*
 * If the guard was stopped (SIGSTOP, a suspended machine) until after the lease's KILL, it can't
 * tell whether the last process was frozen in time. So the tree gets KILL, and counts as ended by
 * the lease.
 */
static enum guard_state believe_frozen(struct guard_machine *machine)
{
    if (machine->in.now_ms >= machine->lease.kill_ms)
        return kill_by_lease(machine);
    machine->frozen_since_ms = machine->in.now_ms;
    machine->actions |= GUARD_ACTION_TELL;
    return machine->state;
}

/* ---- the table of states and events ---- */

/*
 * A cell that is NULL: the event cannot happen in this state; if it does, guard_state_handle()
 * begins KILL.
 */
static transition *const transitions[GUARD_STATES][GUARD_EVENTS] = {
    [GUARD_STATE_RUNNING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease,
            [GUARD_EVENT_END_ASKED] = end_as_asked,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_MAIN_GONE] = lose_main,
            [GUARD_EVENT_COMMAND_EXITED] = stay_or_finish,
            [GUARD_EVENT_COMMAND_KILLED] = end_orphans,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TREE_COUNTED] = move_deadlines,
            [GUARD_EVENT_COUNT_DUE] = count,
            [GUARD_EVENT_TERM_DUE] = end_by_lease,
            /* KILL_DUE: TERM_DUE comes first, and changes the state. END_DUE: END_ASKED comes
             * first, and changes the state. TREE_FROZEN: only in PAUSED. */
        },
    [GUARD_STATE_TERMINATING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease_if_in_time,
            [GUARD_EVENT_END_ASKED] = take_earlier_kill,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_MAIN_GONE] = lose_main,
            [GUARD_EVENT_COMMAND_EXITED] = stay,
            [GUARD_EVENT_COMMAND_KILLED] = stay,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TREE_COUNTED] = move_kill_for_count,
            [GUARD_EVENT_TERM_DUE] = note_lease_end,
            [GUARD_EVENT_KILL_DUE] = kill_by_lease,
            [GUARD_EVENT_END_DUE] = begin_kill,
        },
    [GUARD_STATE_PAUSED] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = thaw_or_stay,
            [GUARD_EVENT_END_ASKED] = begin_kill,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = begin_kill,
            [GUARD_EVENT_MAIN_GONE] = begin_kill,
            [GUARD_EVENT_COMMAND_EXITED] = stay_or_finish,
            [GUARD_EVENT_COMMAND_KILLED] = begin_kill,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TREE_FROZEN] = believe_frozen,
            [GUARD_EVENT_KILL_DUE] = kill_by_lease,
        },
    [GUARD_STATE_KILLING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease_if_in_time,
            [GUARD_EVENT_END_ASKED] = stay,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_MAIN_GONE] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = stay,
            [GUARD_EVENT_COMMAND_KILLED] = stay,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_KILL_DUE] = note_lease_end,
        },
    /* GUARD_STATE_DONE: guard_state_handle() ignores every event. */
};

bool guard_state_can_happen(enum guard_state state, enum guard_event event)
{
    return transitions[state][event] != NULL;
}

void guard_state_start(struct guard_machine *machine, struct guard_rules rules,
                       struct deadlines lease, int64_t now_ms)
{
    *machine = (struct guard_machine){.state = GUARD_STATE_RUNNING,
                                      .rules = rules,
                                      .lease = lease,
                                      .due = lease,
                                      .count_ms = deadlines_count_ms(lease, now_ms),
                                      .asked_kill_ms = RLOCK_NEVER};
}

unsigned guard_state_handle(struct guard_machine *machine, enum guard_event event,
                            struct guard_input in)
{
    transition *cell = transitions[machine->state][event];

    if (machine->state == GUARD_STATE_DONE)
        return 0;
    machine->actions = event <= GUARD_EVENT_END_SIGNAL ? GUARD_ACTION_TELL : 0;
    machine->in = in;
    machine->state = cell != NULL ? cell(machine) : begin_kill(machine);
    return machine->actions;
}

enum guard_event guard_state_due(const struct guard_machine *machine, int64_t now_ms)
{
    bool is_killing = machine->state == GUARD_STATE_KILLING;

    if (machine->state == GUARD_STATE_DONE)
        return GUARD_EVENTS;
    if (now_ms >= machine->due.term_ms && machine->state != GUARD_STATE_PAUSED && !is_killing &&
        !machine->lease_ended_first)
        return GUARD_EVENT_TERM_DUE;
    if (now_ms >= machine->count_ms && machine->state == GUARD_STATE_RUNNING)
        return GUARD_EVENT_COUNT_DUE;
    if (now_ms >= machine->due.kill_ms && machine->frozen_since_ms == 0 &&
        !(is_killing && machine->lease_ended_first))
        return GUARD_EVENT_KILL_DUE;
    if (now_ms >= machine->asked_kill_ms && machine->state == GUARD_STATE_TERMINATING)
        return GUARD_EVENT_END_DUE;
    return GUARD_EVENTS;
}

unsigned guard_state_work(const struct guard_machine *machine)
{
    if (machine->state == GUARD_STATE_KILLING)
        return GUARD_ACTION_KILL;
    if (machine->state == GUARD_STATE_TERMINATING && machine->rules.is_bound)
        return GUARD_ACTION_TERM;
    return machine->state == GUARD_STATE_PAUSED && machine->frozen_since_ms == 0
               ? GUARD_ACTION_FREEZE
               : 0;
}

int64_t guard_state_next_ms(const struct guard_machine *machine, int64_t now_ms)
{
    switch (machine->state) {
    case GUARD_STATE_RUNNING:
        return clock_earlier(machine->count_ms, machine->due.term_ms);
    case GUARD_STATE_TERMINATING:
        return clock_earlier(clock_earlier(machine->due.kill_ms, machine->asked_kill_ms),
                             machine->rules.is_bound ? now_ms + DEADLINES_LOOK_MS : RLOCK_NEVER);
    case GUARD_STATE_PAUSED:
        if (machine->frozen_since_ms == 0)
            return clock_earlier(machine->due.kill_ms, now_ms + RETRY_MS);
        break;
    case GUARD_STATE_KILLING:
        return now_ms;
    case GUARD_STATE_DONE:
    case GUARD_STATES:
        break;
    }
    return RLOCK_NEVER;
}
