/* SPDX-License-Identifier: MIT */
/*
 * guard_state: decides when the command's tree gets TERM, is frozen, gets KILL, and is done.
 *
 * A table of transitions: what becomes of an event depends on the state alone, and each cell is a
 * function of a few lines. Nothing here signals, waits or reads a clock: guard.c does what is
 * decided here, and the unit test walks the table without processes and without real time.
 *
 * The rules:
 * - The tree gets TERM at the lease's TERM, and KILL at the lease's KILL. With --on-lost pause the
 *   tree is frozen at the lease's TERM instead, and gets KILL if it is not proven to stand still
 *   by the lease's KILL.
 * - A new lease is refused once TERM was sent because of the old one: TERM can't be taken back.
 * - A frozen tree runs again only after a new lease. Whoever else wants it to end can't send TERM,
 *   as the tree could not react to TERM without running, so the tree gets KILL.
 * - An end that was asked for stays asked for: of several times for KILL the earliest counts.
 * - Without the program nobody renews the lease, and the tree gets KILL.
 * - A signal that ended the command did not leave the rest of the tree behind on purpose: the rest
 *   gets TERM, then KILL. What a command leaves behind that exits by itself runs on, unless
 *   --wait-all is given or the tree is ending.
 */
#include "supervise/guard_state.h"

#include <rlock.h>

#define RETRY_MS 5 /* for processes that were forked while the others were frozen or killed */
#define KILL_FAST_MS 2000 /* what lives after so long of KILL can't be ended, or not yet */

typedef enum guard_state transition(struct guard_machine *machine);

bool guard_state_is_held(const struct guard_machine *machine)
{
    return machine->state == GUARD_STATE_FREEZING || machine->state == GUARD_STATE_FROZEN ||
           machine->state == GUARD_STATE_REFREEZING || machine->state == GUARD_STATE_KILLING_FROZEN;
}

/* ---- cells ---- */

static enum guard_state stay(struct guard_machine *machine)
{
    return machine->state;
}

static enum guard_state pass_signal(struct guard_machine *machine)
{
    machine->actions |= GUARD_ACTION_PASS_SIGNAL;
    return machine->state;
}

/* KILL itself is the work of the state, at this turn of the guard and until nothing is left. */
static enum guard_state begin_kill(struct guard_machine *machine)
{
    machine->killing_since_ms = machine->in.now_ms;
    return guard_state_is_held(machine) ? GUARD_STATE_KILLING_FROZEN : GUARD_STATE_KILLING;
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

static enum guard_state end_by_lease(struct guard_machine *machine)
{
    if (machine->rules.pauses)
        return GUARD_STATE_FREEZING;
    machine->lease_ended_first = true;
    return terminate(machine);
}

/* The earliest time for KILL that anybody asked for counts. */
static enum guard_state hasten(struct guard_machine *machine)
{
    if (machine->in.kill_ms < machine->asked_kill_ms)
        machine->asked_kill_ms = machine->in.kill_ms;
    return machine->state;
}

static enum guard_state end_as_asked(struct guard_machine *machine)
{
    hasten(machine);
    return terminate(machine);
}

static enum guard_state end_orphans(struct guard_machine *machine)
{
    machine->command_has_ended = true;
    machine->asked_kill_ms = machine->in.now_ms + machine->rules.grace_ms;
    return terminate(machine);
}

static enum guard_state finish(struct guard_machine *machine)
{
    (void)machine;
    return GUARD_STATE_DONE;
}

static enum guard_state drain_or_finish(struct guard_machine *machine)
{
    machine->command_has_ended = true;
    return machine->rules.wait_all ? GUARD_STATE_DRAINING : GUARD_STATE_DONE;
}

/* What the command left behind on purpose runs on, though it was being frozen. */
static enum guard_state let_go_or_stay(struct guard_machine *machine)
{
    machine->command_has_ended = true;
    if (machine->rules.wait_all)
        return machine->state;
    machine->actions |= GUARD_ACTION_LET_GO;
    return GUARD_STATE_DONE;
}

static enum guard_state take_lease(struct guard_machine *machine)
{
    machine->lease = machine->in.lease;
    machine->actions |= GUARD_ACTION_ANSWER_AGREED;
    return machine->state;
}

/* TERM that was sent because of the lease can't be taken back. The program gets no answer. */
static enum guard_state take_lease_if_in_time(struct guard_machine *machine)
{
    return machine->lease_ended_first ? machine->state : take_lease(machine);
}

/* When the program reads this answer it ends the pause, and expects the tree to run again. */
static enum guard_state thaw(struct guard_machine *machine)
{
    take_lease(machine);
    machine->frozen_since_ms = 0;
    machine->actions |= GUARD_ACTION_THAW;
    return machine->command_has_ended ? GUARD_STATE_DRAINING : GUARD_STATE_RUNNING;
}

/* A lease that came too late to run under still moves the time for KILL. */
static enum guard_state thaw_or_freeze_on(struct guard_machine *machine)
{
    if (machine->in.now_ms < machine->in.lease.term_ms)
        return thaw(machine);
    return take_lease(machine);
}

/* A lease that came too late to run under changes nothing for a tree that stands still. */
static enum guard_state thaw_or_stay_frozen(struct guard_machine *machine)
{
    if (machine->in.now_ms < machine->in.lease.term_ms)
        return thaw(machine);
    machine->actions |= GUARD_ACTION_ANSWER_PAUSED;
    return machine->state;
}

/* A tree that is frozen and gets KILL does not run again. */
static enum guard_state answer_while_killing(struct guard_machine *machine)
{
    if (machine->frozen_since_ms == 0)
        return take_lease_if_in_time(machine);
    machine->actions |= GUARD_ACTION_ANSWER_PAUSED;
    return machine->state;
}

static void note_frozen(struct guard_machine *machine)
{
    machine->frozen_since_ms = machine->in.now_ms;
    machine->actions |= GUARD_ACTION_ANSWER_PAUSED;
}

/* The guard may have been stopped since it looked at the threads: after KILL is due that is
 * no proof that none of them ran too long. */
static enum guard_state believe_frozen(struct guard_machine *machine)
{
    if (machine->in.now_ms >= machine->lease.kill_ms)
        return kill_by_lease(machine);
    note_frozen(machine);
    return GUARD_STATE_FROZEN;
}

static enum guard_state believe_frozen_again(struct guard_machine *machine)
{
    (void)machine;
    return GUARD_STATE_FROZEN;
}

/*
 * A tree that stands still before the lease's KILL, and then dies of KILL, has not run beyond the
 * lease. The guard notes since when the tree stands still, so that no KILL_DUE follows, which would
 * count the lease as lost.
 */
static enum guard_state note_frozen_while_killing(struct guard_machine *machine)
{
    if (machine->frozen_since_ms == 0 && machine->in.now_ms < machine->lease.kill_ms)
        note_frozen(machine);
    return machine->state;
}

static enum guard_state doubt(struct guard_machine *machine)
{
    (void)machine;
    return GUARD_STATE_REFREEZING;
}

/* ---- the table ---- */

/* NULL: the event cannot happen in this state. */
static transition *const transitions[GUARD_STATES][GUARD_EVENTS] = {
    [GUARD_STATE_RUNNING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease,
            [GUARD_EVENT_END_ASKED] = end_as_asked,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_PROGRAM_GONE] = begin_kill,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = drain_or_finish,
            [GUARD_EVENT_COMMAND_KILLED] = end_orphans,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TERM_DUE] = end_by_lease,
            /* KILL_DUE: TERM_DUE is handled first. END_DUE: an end is asked for with TERM. */
        },
    [GUARD_STATE_DRAINING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease,
            [GUARD_EVENT_END_ASKED] = end_as_asked,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_PROGRAM_GONE] = begin_kill,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TERM_DUE] = end_by_lease,
            /* COMMAND_*: the command ends once. KILL_DUE, END_DUE: as in RUNNING. */
        },
    [GUARD_STATE_TERMINATING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease_if_in_time,
            [GUARD_EVENT_END_ASKED] = hasten,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_PROGRAM_GONE] = begin_kill,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = stay,
            [GUARD_EVENT_COMMAND_KILLED] = stay,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TERM_DUE] = note_lease_end,
            [GUARD_EVENT_KILL_DUE] = kill_by_lease,
            [GUARD_EVENT_END_DUE] = begin_kill,
        },
    [GUARD_STATE_FREEZING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = thaw_or_freeze_on,
            [GUARD_EVENT_END_ASKED] = begin_kill,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = begin_kill,
            [GUARD_EVENT_PROGRAM_GONE] = begin_kill,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = let_go_or_stay,
            [GUARD_EVENT_COMMAND_KILLED] = begin_kill,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TREE_STOPPED] = believe_frozen,
            [GUARD_EVENT_KILL_DUE] = kill_by_lease,
        },
    [GUARD_STATE_FROZEN] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = thaw_or_stay_frozen,
            [GUARD_EVENT_END_ASKED] = begin_kill,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = begin_kill,
            [GUARD_EVENT_PROGRAM_GONE] = begin_kill,
            [GUARD_EVENT_PROCESS_ENDED] = doubt,
            /* KILL_DUE: nothing runs, so no end of a lease is too late. COMMAND_*, TREE_EMPTY:
             * PROCESS_ENDED is handled first. */
        },
    [GUARD_STATE_REFREEZING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = thaw_or_stay_frozen,
            [GUARD_EVENT_END_ASKED] = begin_kill,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = begin_kill,
            [GUARD_EVENT_PROGRAM_GONE] = begin_kill,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = let_go_or_stay,
            [GUARD_EVENT_COMMAND_KILLED] = begin_kill,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TREE_STOPPED] = believe_frozen_again,
        },
    [GUARD_STATE_KILLING] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = take_lease_if_in_time,
            [GUARD_EVENT_END_ASKED] = stay,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = pass_signal,
            [GUARD_EVENT_PROGRAM_GONE] = stay,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = stay,
            [GUARD_EVENT_COMMAND_KILLED] = stay,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TERM_DUE] = note_lease_end,
        },
    [GUARD_STATE_KILLING_FROZEN] =
        {
            [GUARD_EVENT_LEASE_EXTENDED] = answer_while_killing,
            [GUARD_EVENT_END_ASKED] = stay,
            [GUARD_EVENT_SIGNAL] = pass_signal,
            [GUARD_EVENT_END_SIGNAL] = stay,
            [GUARD_EVENT_PROGRAM_GONE] = stay,
            [GUARD_EVENT_PROCESS_ENDED] = stay,
            [GUARD_EVENT_COMMAND_EXITED] = stay,
            [GUARD_EVENT_COMMAND_KILLED] = stay,
            [GUARD_EVENT_TREE_EMPTY] = finish,
            [GUARD_EVENT_TREE_STOPPED] = note_frozen_while_killing,
            [GUARD_EVENT_KILL_DUE] = note_lease_end,
        },
    /* GUARD_STATE_DONE: guard_state_handle() drops each event. */
};

/* What a state asks for at each turn of the guard, until the state is left. */
static const unsigned work[GUARD_STATES] = {
    [GUARD_STATE_FREEZING] = GUARD_ACTION_FREEZE,
    [GUARD_STATE_REFREEZING] = GUARD_ACTION_FREEZE,
    [GUARD_STATE_KILLING] = GUARD_ACTION_KILL,
    [GUARD_STATE_KILLING_FROZEN] = GUARD_ACTION_FREEZE | GUARD_ACTION_KILL,
};

bool guard_state_can_happen(enum guard_state state, enum guard_event event)
{
    return transitions[state][event] != NULL;
}

void guard_state_start(struct guard_machine *machine, struct guard_rules rules,
                       struct deadlines lease)
{
    *machine = (struct guard_machine){
        .state = GUARD_STATE_RUNNING, .rules = rules, .lease = lease, .asked_kill_ms = RLOCK_NEVER};
}

unsigned guard_state_handle(struct guard_machine *machine, enum guard_event event,
                            struct guard_input in)
{
    transition *cell = transitions[machine->state][event];

    if (machine->state == GUARD_STATE_DONE)
        return 0;
    machine->actions = 0;
    machine->in = in;
    machine->state = cell != NULL ? cell(machine) : begin_kill(machine);
    return machine->actions;
}

enum guard_event guard_state_due(const struct guard_machine *machine, int64_t now_ms)
{
    bool is_killing = machine->killing_since_ms != 0;

    if (machine->state == GUARD_STATE_DONE)
        return GUARD_EVENTS;
    if (now_ms >= machine->lease.term_ms && !guard_state_is_held(machine) &&
        !machine->lease_ended_first)
        return GUARD_EVENT_TERM_DUE;
    if (now_ms >= machine->lease.kill_ms && machine->frozen_since_ms == 0 &&
        !(is_killing && machine->lease_ended_first))
        return GUARD_EVENT_KILL_DUE;
    if (now_ms >= machine->asked_kill_ms && machine->state == GUARD_STATE_TERMINATING)
        return GUARD_EVENT_END_DUE;
    return GUARD_EVENTS;
}

unsigned guard_state_work(const struct guard_machine *machine)
{
    return work[machine->state];
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

int64_t guard_state_next_ms(const struct guard_machine *machine, int64_t now_ms)
{
    switch (machine->state) {
    case GUARD_STATE_RUNNING:
    case GUARD_STATE_DRAINING:
        return earlier(machine->lease.term_ms, machine->lease.kill_ms);
    case GUARD_STATE_TERMINATING:
        return earlier(machine->lease.kill_ms, machine->asked_kill_ms);
    case GUARD_STATE_FREEZING:
        return earlier(machine->lease.kill_ms, now_ms + RETRY_MS);
    case GUARD_STATE_REFREEZING:
        return now_ms + RETRY_MS;
    case GUARD_STATE_KILLING:
    case GUARD_STATE_KILLING_FROZEN:
        return now_ms < machine->killing_since_ms + KILL_FAST_MS ? now_ms : now_ms + RETRY_MS;
    case GUARD_STATE_FROZEN:
    case GUARD_STATE_DONE:
    case GUARD_STATES:
        break;
    }
    return RLOCK_NEVER;
}
