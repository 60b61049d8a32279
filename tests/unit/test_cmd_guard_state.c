/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_guard_state: each cell of the guard's table; and a random walk over a tree of processes
 * that exists only in this file, on a clock that only this file moves.
 *
 *     build/plain/unit/test_cmd_guard_state SEED    repeats a walk
 */
#include "supervise/guard_state.h"
#include "tap.h"
#include <rlock.h>
#include <stdlib.h>
#include <time.h>

#define STEPS 1000000
#define TERM_MS 1000
#define KILL_MS 2000
#define COUNT_MS 667 /* a third of the time to TERM is left */
#define GRACE_MS 300

static const char *const state_names[GUARD_STATES] = {
    [GUARD_STATE_RUNNING] = "RUNNING",
    [GUARD_STATE_DRAINING] = "DRAINING",
    [GUARD_STATE_TERMINATING] = "TERMINATING",
    [GUARD_STATE_FREEZING] = "FREEZING",
    [GUARD_STATE_FROZEN] = "FROZEN",
    [GUARD_STATE_REFREEZING] = "REFREEZING",
    [GUARD_STATE_KILLING] = "KILLING",
    [GUARD_STATE_KILLING_FROZEN] = "KILLING_FROZEN",
    [GUARD_STATE_DONE] = "DONE",
};

static const char *const event_names[GUARD_EVENTS] = {
    [GUARD_EVENT_LEASE_EXTENDED] = "LEASE_EXTENDED",
    [GUARD_EVENT_END_ASKED] = "END_ASKED",
    [GUARD_EVENT_SIGNAL] = "SIGNAL",
    [GUARD_EVENT_END_SIGNAL] = "END_SIGNAL",
    [GUARD_EVENT_PROGRAM_GONE] = "PROGRAM_GONE",
    [GUARD_EVENT_PROCESS_ENDED] = "PROCESS_ENDED",
    [GUARD_EVENT_COMMAND_EXITED] = "COMMAND_EXITED",
    [GUARD_EVENT_COMMAND_KILLED] = "COMMAND_KILLED",
    [GUARD_EVENT_TREE_EMPTY] = "TREE_EMPTY",
    [GUARD_EVENT_TREE_STOPPED] = "TREE_STOPPED",
    [GUARD_EVENT_TREE_COUNTED] = "TREE_COUNTED",
    [GUARD_EVENT_COUNT_DUE] = "COUNT_DUE",
    [GUARD_EVENT_TERM_DUE] = "TERM_DUE",
    [GUARD_EVENT_KILL_DUE] = "KILL_DUE",
    [GUARD_EVENT_END_DUE] = "END_DUE",
};

/* ---- each cell ---- */

/* How the state was reached, where that makes a difference. */
enum way { PLAIN, WAIT_ALL, BY_LEASE, PROVEN };

struct row {
    enum guard_state from;
    enum way way;
    enum guard_event event;
    int64_t now_ms;
    struct deadlines lease; /* LEASE_EXTENDED; END_ASKED: kill_ms */
    size_t n_processes;     /* TREE_COUNTED */
    enum guard_state to;
    unsigned actions;
};

#define NEW_LEASE  \
    {              \
        5000, 6000 \
    }
/* A lease whose TERM is due when it is offered. */
#define OLD_LEASE \
    {             \
        900, 1900 \
    }
#define KILL_AT(at_ms) \
    {                  \
        0, at_ms       \
    }

enum {
    COUNT = GUARD_ACTION_COUNT,
    AGREED = GUARD_ACTION_TELL_DEADLINES,
    PAUSED = GUARD_ACTION_TELL_PAUSED,
    PASS = GUARD_ACTION_PASS_SIGNAL,
    THAW = GUARD_ACTION_THAW,
    LET_GO = GUARD_ACTION_LET_GO,
    TERM = GUARD_ACTION_TERM,
    FREEZE = GUARD_ACTION_FREEZE,
    KILL = GUARD_ACTION_KILL
};

#define ROW_COUNTED(n_, from_, way_, now_, to_, actions_)                               \
    {                                                                                   \
        .from = GUARD_STATE_##from_, .way = way_, .event = GUARD_EVENT_TREE_COUNTED,    \
        .now_ms = now_, .n_processes = n_, .to = GUARD_STATE_##to_, .actions = actions_ \
    }
#define ROW_WITH(lease_, from_, way_, event_, now_, to_, actions_)                               \
    {                                                                                            \
        .from = GUARD_STATE_##from_, .way = way_, .event = GUARD_EVENT_##event_, .now_ms = now_, \
        .lease = lease_, .to = GUARD_STATE_##to_, .actions = actions_                            \
    }
#define ROW(from_, way_, event_, now_, to_, actions_) \
    ROW_WITH({0}, from_, way_, event_, now_, to_, actions_)

/* The actions include the work of the state that the event leads to. */
static const struct row rows[] = {
    ROW_WITH(NEW_LEASE, RUNNING, PLAIN, LEASE_EXTENDED, 100, RUNNING, AGREED),
    ROW_WITH(KILL_AT(400), RUNNING, PLAIN, END_ASKED, 100, TERMINATING, TERM),
    ROW(RUNNING, PLAIN, SIGNAL, 100, RUNNING, PASS),
    ROW(RUNNING, PLAIN, END_SIGNAL, 100, RUNNING, PASS),
    ROW(RUNNING, PLAIN, PROGRAM_GONE, 100, KILLING, KILL),
    ROW(RUNNING, PLAIN, PROCESS_ENDED, 100, RUNNING, 0),
    ROW(RUNNING, PLAIN, COMMAND_EXITED, 100, DONE, 0),
    ROW(RUNNING, WAIT_ALL, COMMAND_EXITED, 100, DRAINING, 0),
    ROW(RUNNING, PLAIN, COMMAND_KILLED, 100, TERMINATING, TERM),
    ROW(RUNNING, WAIT_ALL, COMMAND_KILLED, 100, TERMINATING, TERM),
    ROW(RUNNING, PLAIN, TREE_EMPTY, 100, DONE, 0),
    ROW(RUNNING, PLAIN, COUNT_DUE, 700, RUNNING, COUNT),
    ROW_COUNTED(500, RUNNING, PLAIN, 700, RUNNING, 0),
    ROW_COUNTED(1500, RUNNING, PLAIN, 700, RUNNING, AGREED),
    ROW(RUNNING, PLAIN, TERM_DUE, TERM_MS, TERMINATING, TERM),
    ROW(RUNNING, PLAIN, TERM_DUE, KILL_MS, KILLING, KILL),
    ROW(RUNNING, PROVEN, TERM_DUE, TERM_MS, FREEZING, FREEZE),

    ROW_WITH(NEW_LEASE, DRAINING, WAIT_ALL, LEASE_EXTENDED, 100, DRAINING, AGREED),
    ROW_WITH(KILL_AT(400), DRAINING, WAIT_ALL, END_ASKED, 100, TERMINATING, TERM),
    ROW(DRAINING, WAIT_ALL, SIGNAL, 100, DRAINING, PASS),
    ROW(DRAINING, WAIT_ALL, END_SIGNAL, 100, DRAINING, PASS),
    ROW(DRAINING, WAIT_ALL, PROGRAM_GONE, 100, KILLING, KILL),
    ROW(DRAINING, WAIT_ALL, PROCESS_ENDED, 100, DRAINING, 0),
    ROW(DRAINING, WAIT_ALL, TREE_EMPTY, 100, DONE, 0),
    ROW(DRAINING, WAIT_ALL, COUNT_DUE, 700, DRAINING, COUNT),
    ROW_COUNTED(1500, DRAINING, WAIT_ALL, 700, DRAINING, AGREED),
    ROW(DRAINING, WAIT_ALL, TERM_DUE, TERM_MS, TERMINATING, TERM),

    ROW_WITH(NEW_LEASE, TERMINATING, PLAIN, LEASE_EXTENDED, 200, TERMINATING, AGREED),
    ROW_WITH(NEW_LEASE, TERMINATING, BY_LEASE, LEASE_EXTENDED, 1100, TERMINATING, 0),
    ROW_WITH(KILL_AT(300), TERMINATING, PLAIN, END_ASKED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, SIGNAL, 200, TERMINATING, PASS),
    ROW(TERMINATING, PLAIN, END_SIGNAL, 200, TERMINATING, PASS),
    ROW(TERMINATING, PLAIN, PROGRAM_GONE, 200, KILLING, KILL),
    ROW(TERMINATING, PLAIN, PROCESS_ENDED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, COMMAND_EXITED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, COMMAND_KILLED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, TREE_EMPTY, 200, DONE, 0),
    ROW_COUNTED(1500, TERMINATING, PLAIN, 700, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, TERM_DUE, TERM_MS, TERMINATING, 0),
    ROW(TERMINATING, BY_LEASE, KILL_DUE, KILL_MS, KILLING, KILL),
    ROW(TERMINATING, PLAIN, END_DUE, 400, KILLING, KILL),

    ROW_WITH(NEW_LEASE, FREEZING, PLAIN, LEASE_EXTENDED, 1010, RUNNING, AGREED | THAW),
    ROW_WITH(OLD_LEASE, FREEZING, PLAIN, LEASE_EXTENDED, 1010, FREEZING, AGREED | FREEZE),
    ROW_WITH(KILL_AT(1300), FREEZING, PLAIN, END_ASKED, 1010, KILLING_FROZEN, FREEZE | KILL),
    ROW(FREEZING, PLAIN, SIGNAL, 1010, FREEZING, PASS | FREEZE),
    ROW(FREEZING, PLAIN, END_SIGNAL, 1010, KILLING_FROZEN, FREEZE | KILL),
    ROW(FREEZING, PLAIN, PROGRAM_GONE, 1010, KILLING_FROZEN, FREEZE | KILL),
    ROW(FREEZING, PLAIN, PROCESS_ENDED, 1010, FREEZING, FREEZE),
    ROW(FREEZING, PLAIN, COMMAND_EXITED, 1010, DONE, LET_GO),
    ROW(FREEZING, WAIT_ALL, COMMAND_EXITED, 1010, FREEZING, FREEZE),
    ROW(FREEZING, PLAIN, COMMAND_KILLED, 1010, KILLING_FROZEN, FREEZE | KILL),
    ROW(FREEZING, PLAIN, TREE_EMPTY, 1010, DONE, 0),
    ROW(FREEZING, PLAIN, TREE_STOPPED, 1010, FROZEN, PAUSED),
    ROW(FREEZING, PLAIN, TREE_STOPPED, KILL_MS, KILLING_FROZEN, FREEZE | KILL),
    ROW(FREEZING, PLAIN, KILL_DUE, KILL_MS, KILLING_FROZEN, FREEZE | KILL),

    ROW_WITH(NEW_LEASE, FROZEN, PLAIN, LEASE_EXTENDED, 3000, RUNNING, AGREED | THAW),
    ROW_WITH(NEW_LEASE, FROZEN, WAIT_ALL, LEASE_EXTENDED, 3000, RUNNING, AGREED | THAW),
    ROW_WITH(OLD_LEASE, FROZEN, PLAIN, LEASE_EXTENDED, 3000, FROZEN, PAUSED),
    ROW_WITH(KILL_AT(3300), FROZEN, PLAIN, END_ASKED, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(FROZEN, PLAIN, SIGNAL, 3000, FROZEN, PASS),
    ROW(FROZEN, PLAIN, END_SIGNAL, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(FROZEN, PLAIN, PROGRAM_GONE, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(FROZEN, PLAIN, PROCESS_ENDED, 3000, REFREEZING, FREEZE),

    ROW_WITH(NEW_LEASE, REFREEZING, PLAIN, LEASE_EXTENDED, 3000, RUNNING, AGREED | THAW),
    ROW_WITH(OLD_LEASE, REFREEZING, PLAIN, LEASE_EXTENDED, 3000, REFREEZING, PAUSED | FREEZE),
    ROW_WITH(KILL_AT(3300), REFREEZING, PLAIN, END_ASKED, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(REFREEZING, PLAIN, SIGNAL, 3000, REFREEZING, PASS | FREEZE),
    ROW(REFREEZING, PLAIN, END_SIGNAL, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(REFREEZING, PLAIN, PROGRAM_GONE, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(REFREEZING, PLAIN, PROCESS_ENDED, 3000, REFREEZING, FREEZE),
    ROW(REFREEZING, PLAIN, COMMAND_EXITED, 3000, DONE, LET_GO),
    ROW(REFREEZING, WAIT_ALL, COMMAND_EXITED, 3000, REFREEZING, FREEZE),
    ROW(REFREEZING, PLAIN, COMMAND_KILLED, 3000, KILLING_FROZEN, FREEZE | KILL),
    ROW(REFREEZING, PLAIN, TREE_EMPTY, 3000, DONE, 0),
    ROW(REFREEZING, PLAIN, TREE_STOPPED, 3000, FROZEN, 0),

    ROW_WITH(NEW_LEASE, KILLING, PLAIN, LEASE_EXTENDED, 500, KILLING, AGREED | KILL),
    ROW_WITH(NEW_LEASE, KILLING, BY_LEASE, LEASE_EXTENDED, 2500, KILLING, KILL),
    ROW_WITH(KILL_AT(800), KILLING, PLAIN, END_ASKED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, SIGNAL, 500, KILLING, PASS | KILL),
    ROW(KILLING, PLAIN, END_SIGNAL, 500, KILLING, PASS | KILL),
    ROW(KILLING, PLAIN, PROGRAM_GONE, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, PROCESS_ENDED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, COMMAND_EXITED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, COMMAND_KILLED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, TREE_EMPTY, 500, DONE, 0),
    ROW(KILLING, PLAIN, TERM_DUE, TERM_MS, KILLING, KILL),

    ROW_WITH(NEW_LEASE, KILLING_FROZEN, PLAIN, LEASE_EXTENDED, 1100, KILLING_FROZEN,
             AGREED | FREEZE | KILL),
    ROW_WITH(NEW_LEASE, KILLING_FROZEN, BY_LEASE, LEASE_EXTENDED, 2500, KILLING_FROZEN,
             FREEZE | KILL),
    ROW_WITH(NEW_LEASE, KILLING_FROZEN, PROVEN, LEASE_EXTENDED, 2500, KILLING_FROZEN,
             PAUSED | FREEZE | KILL),
    ROW_WITH(KILL_AT(1400), KILLING_FROZEN, PLAIN, END_ASKED, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, SIGNAL, 1100, KILLING_FROZEN, PASS | FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, END_SIGNAL, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, PROGRAM_GONE, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, PROCESS_ENDED, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, COMMAND_EXITED, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, COMMAND_KILLED, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, TREE_EMPTY, 1100, DONE, 0),
    ROW(KILLING_FROZEN, PLAIN, TREE_STOPPED, 1100, KILLING_FROZEN, PAUSED | FREEZE | KILL),
    ROW(KILLING_FROZEN, PROVEN, TREE_STOPPED, 1100, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, TREE_STOPPED, KILL_MS, KILLING_FROZEN, FREEZE | KILL),
    ROW(KILLING_FROZEN, PLAIN, KILL_DUE, KILL_MS, KILLING_FROZEN, FREEZE | KILL),
};

static unsigned send_input(struct guard_machine *m, enum guard_event event, struct guard_input in)
{
    unsigned actions = guard_state_handle(m, event, in);

    return actions | guard_state_work(m);
}

static unsigned send_event(struct guard_machine *m, enum guard_event event, int64_t now_ms,
                           struct deadlines lease)
{
    return send_input(
        m, event, (struct guard_input){.now_ms = now_ms, .lease = lease, .kill_ms = lease.kill_ms});
}

static void reach(struct guard_machine *m, enum guard_state state, enum way way)
{
    const struct deadlines lease = {TERM_MS, KILL_MS};
    const struct deadlines none = {0, 0};
    bool is_held = state == GUARD_STATE_FREEZING || state == GUARD_STATE_FROZEN ||
                   state == GUARD_STATE_REFREEZING || state == GUARD_STATE_KILLING_FROZEN;

    guard_state_start(m,
                      (struct guard_rules){.pauses = is_held || way == PROVEN,
                                           .wait_all = way == WAIT_ALL,
                                           .grace_ms = GRACE_MS},
                      lease, 0);
    if (is_held || (way == BY_LEASE && state != GUARD_STATE_KILLING))
        send_event(m, GUARD_EVENT_TERM_DUE, TERM_MS, none);
    else if (state == GUARD_STATE_TERMINATING)
        send_event(m, GUARD_EVENT_END_ASKED, 100, (struct deadlines){0, 400});
    if (state == GUARD_STATE_DRAINING)
        send_event(m, GUARD_EVENT_COMMAND_EXITED, 10, none);
    if (state == GUARD_STATE_FROZEN || state == GUARD_STATE_REFREEZING ||
        (state == GUARD_STATE_KILLING_FROZEN && way == PROVEN))
        send_event(m, GUARD_EVENT_TREE_STOPPED, TERM_MS + 5, none);
    if (state == GUARD_STATE_REFREEZING)
        send_event(m, GUARD_EVENT_PROCESS_ENDED, TERM_MS + 6, none);
    if (state == GUARD_STATE_KILLING && way == BY_LEASE) {
        send_event(m, GUARD_EVENT_TERM_DUE, TERM_MS, none);
        send_event(m, GUARD_EVENT_KILL_DUE, KILL_MS, none);
    } else if (state == GUARD_STATE_KILLING_FROZEN && way == BY_LEASE) {
        send_event(m, GUARD_EVENT_KILL_DUE, KILL_MS, none);
    } else if (state == GUARD_STATE_KILLING || state == GUARD_STATE_KILLING_FROZEN) {
        send_event(m, GUARD_EVENT_PROGRAM_GONE, state == GUARD_STATE_KILLING ? 400 : TERM_MS + 7,
                   none);
    }
    if (state == GUARD_STATE_DONE)
        send_event(m, GUARD_EVENT_TREE_EMPTY, 100, none);
    if (m->state != state)
        okf(false, "%s is reached", state_names[state]);
}

static void test_cells(void)
{
    bool was_tried[GUARD_STATES][GUARD_EVENTS] = {{false}};
    struct guard_machine m;
    unsigned actions;
    size_t i;
    enum guard_state s;
    enum guard_event e;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];

        reach(&m, row->from, row->way);
        actions = send_input(&m, row->event,
                             (struct guard_input){.now_ms = row->now_ms,
                                                  .lease = row->lease,
                                                  .kill_ms = row->lease.kill_ms,
                                                  .n_processes = row->n_processes});
        okf(m.state == row->to && actions == row->actions,
            "%s, way %d: %s at %d leads to %s, got %s, and to the actions %#x, got %#x",
            state_names[row->from], row->way, event_names[row->event], (int)row->now_ms,
            state_names[row->to], state_names[m.state], row->actions, actions);
        was_tried[row->from][row->event] = true;
    }
    for (s = 0; s < GUARD_STATE_DONE; s++)
        for (e = 0; e < GUARD_EVENTS; e++)
            okf(was_tried[s][e] == guard_state_can_happen(s, e), "%s in %s %s", event_names[e],
                state_names[s], was_tried[s][e] ? "has a cell" : "is NULL");
}

static void test_impossible_events(void)
{
    struct guard_machine m;
    unsigned actions;
    enum guard_state s;
    enum guard_event e;

    for (s = 0; s < GUARD_STATES; s++)
        for (e = 0; e < GUARD_EVENTS; e++) {
            if (guard_state_can_happen(s, e))
                continue;
            reach(&m, s, s == GUARD_STATE_DRAINING ? WAIT_ALL : PLAIN);
            actions = send_event(&m, e, TERM_MS + 10, (struct deadlines)NEW_LEASE);
            if (s == GUARD_STATE_DONE)
                okf(m.state == GUARD_STATE_DONE && actions == 0, "DONE: %s changes nothing",
                    event_names[e]);
            else
                okf((m.state == GUARD_STATE_KILLING || m.state == GUARD_STATE_KILLING_FROZEN) &&
                        (actions & GUARD_ACTION_KILL) != 0,
                    "%s: %s cannot happen, and ends in KILL", state_names[s], event_names[e]);
        }
}

/* ---- what the clock does ---- */

static void test_times(void)
{
    const struct deadlines none = {0, 0};
    struct guard_machine m;

    reach(&m, GUARD_STATE_RUNNING, PLAIN);
    is_int(guard_state_next_ms(&m, 5), COUNT_MS, "RUNNING: awake to count the tree");
    is_int(guard_state_due(&m, COUNT_MS - 1), GUARD_EVENTS, "nothing is due before the count");
    is_int(guard_state_due(&m, COUNT_MS), GUARD_EVENT_COUNT_DUE, "the count is due at its time");
    send_event(&m, GUARD_EVENT_COUNT_DUE, COUNT_MS, none);
    is_int(guard_state_next_ms(&m, COUNT_MS), TERM_MS, "after the count: awake for TERM");
    is_int(guard_state_due(&m, TERM_MS - 1), GUARD_EVENTS, "nothing is due before TERM");
    is_int(guard_state_due(&m, TERM_MS), GUARD_EVENT_TERM_DUE, "TERM is due at its time");
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_TERM_DUE,
           "TERM comes first, however late it is");
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, 500, (struct deadlines)NEW_LEASE);
    is_int(guard_state_next_ms(&m, 500), 3500, "a new lease: the tree is to be counted again");
    send_event(&m, GUARD_EVENT_COUNT_DUE, 3500, none);
    is_int(guard_state_next_ms(&m, 3500), 5000, "a new lease moves TERM");
    send_event(&m, GUARD_EVENT_END_ASKED, 500, (struct deadlines){0, 900});
    is_int(guard_state_next_ms(&m, 500), 900, "TERMINATING: awake for the KILL that was asked for");
    send_event(&m, GUARD_EVENT_END_ASKED, 500, (struct deadlines){0, 1200});
    is_int(guard_state_next_ms(&m, 500), 900, "a later KILL does not replace an earlier one");
    send_event(&m, GUARD_EVENT_END_ASKED, 500, (struct deadlines){0, 700});
    is_int(guard_state_next_ms(&m, 500), 700, "an earlier KILL does");
    is_int(guard_state_due(&m, 699), GUARD_EVENTS, "nothing is due before it");
    is_int(guard_state_due(&m, 700), GUARD_EVENT_END_DUE, "it is due at its time");
    send_event(&m, GUARD_EVENT_END_DUE, 700, none);
    is_int(guard_state_due(&m, 701), GUARD_EVENTS, "KILLING: that time is over");
    is_int(guard_state_next_ms(&m, 710), 710, "KILLING: again at once");
    ok(guard_state_next_ms(&m, 2701) > 2701, "KILLING: not so often after two seconds");
    ok(!m.lease_ended_first, "the lease was not the reason");
    is_int(guard_state_due(&m, 5000), GUARD_EVENT_TERM_DUE, "but it may end before the tree has");

    reach(&m, GUARD_STATE_RUNNING, PLAIN);
    send_event(&m, GUARD_EVENT_COMMAND_KILLED, 50, none);
    is_int(guard_state_next_ms(&m, 50), 50 + GRACE_MS, "KILL for what a killed command left");

    reach(&m, GUARD_STATE_TERMINATING, BY_LEASE);
    ok(m.lease_ended_first, "TERM by the lease: the lease was the reason");
    is_int(guard_state_next_ms(&m, TERM_MS), KILL_MS, "awake for KILL");
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_KILL_DUE, "KILL is due at its time");

    reach(&m, GUARD_STATE_FREEZING, PLAIN);
    is_int(guard_state_next_ms(&m, KILL_MS - 2), KILL_MS, "FREEZING: not too late for KILL");
    ok(guard_state_next_ms(&m, TERM_MS) < TERM_MS + 20, "FREEZING: soon again");
    ok(!m.lease_ended_first, "FREEZING: the lease may be proven yet");
    reach(&m, GUARD_STATE_FROZEN, PLAIN);
    is_int(guard_state_next_ms(&m, 9000), RLOCK_NEVER, "FROZEN: there is no deadline");
    is_int(guard_state_due(&m, 9000), GUARD_EVENTS, "FROZEN: nothing is due");
    is_int(m.frozen_since_ms, TERM_MS + 5, "FROZEN: since when is known");
    reach(&m, GUARD_STATE_KILLING_FROZEN, PLAIN);
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_KILL_DUE,
           "not proven frozen: the lease's end counts");
    reach(&m, GUARD_STATE_FROZEN, WAIT_ALL);
    send_event(&m, GUARD_EVENT_PROCESS_ENDED, 3000, none);
    send_event(&m, GUARD_EVENT_COMMAND_EXITED, 3000, none);
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, 3000, (struct deadlines)NEW_LEASE);
    is_int(m.state, GUARD_STATE_DRAINING, "thawed without its command, a tree is waited for");
    guard_state_start(&m, (struct guard_rules){.wait_all = true},
                      (struct deadlines){RLOCK_NEVER, RLOCK_NEVER}, 0);
    is_int(guard_state_next_ms(&m, 9000), RLOCK_NEVER, "--on-lost ignore: no deadline");
}

/* Counts the tree of a guard in RUNNING, at a time that leaves TERM and KILL room to move. */
static void reach_counted(struct guard_machine *m, enum way way, size_t n_processes)
{
    reach(m, GUARD_STATE_RUNNING, way);
    send_event(m, GUARD_EVENT_COUNT_DUE, COUNT_MS, (struct deadlines){0, 0});
    send_input(m, GUARD_EVENT_TREE_COUNTED,
               (struct guard_input){.now_ms = COUNT_MS, .n_processes = n_processes});
}

static void test_many_processes(void)
{
    const struct deadlines none = {0, 0};
    struct guard_machine m;

    reach_counted(&m, PLAIN, 500);
    is_int(guard_state_next_ms(&m, COUNT_MS), TERM_MS, "500 processes do not move TERM");

    reach_counted(&m, PLAIN, 1000);
    is_int(guard_state_next_ms(&m, COUNT_MS), TERM_MS - 225, "1000 processes: TERM comes earlier");
    is_int(guard_state_due(&m, TERM_MS - 225), GUARD_EVENT_TERM_DUE, "TERM is due at that time");
    send_event(&m, GUARD_EVENT_TERM_DUE, TERM_MS - 225, none);
    ok(m.lease_ended_first, "an early TERM is sent because of the lease");
    is_int(guard_state_next_ms(&m, TERM_MS), KILL_MS - 75, "1000 processes: KILL comes earlier");
    send_input(&m, GUARD_EVENT_TREE_COUNTED,
               (struct guard_input){.now_ms = TERM_MS, .n_processes = 4500});
    is_int(guard_state_next_ms(&m, TERM_MS), KILL_MS - 600,
           "TERMINATING: more processes than at the count make KILL come earlier still");
    is_int(guard_state_due(&m, KILL_MS - 600), GUARD_EVENT_KILL_DUE, "KILL is due at that time");

    reach_counted(&m, PLAIN, 20000);
    is_int(guard_state_due(&m, COUNT_MS), GUARD_EVENT_TERM_DUE,
           "more processes than the lease has time for: TERM is due with the count");
    send_event(&m, GUARD_EVENT_TERM_DUE, COUNT_MS, none);
    is_int(m.state, GUARD_STATE_KILLING, "and is left out, as it is time for KILL, too");

    reach_counted(&m, PLAIN, 4500);
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, COUNT_MS + 1, (struct deadlines)NEW_LEASE);
    ok(guard_state_next_ms(&m, COUNT_MS + 1) > KILL_MS, "a new lease: no deadline of the old one");

    reach(&m, GUARD_STATE_TERMINATING, PLAIN);
    send_event(&m, GUARD_EVENT_END_ASKED, 100, (struct deadlines){0, RLOCK_NEVER});
    send_input(&m, GUARD_EVENT_TREE_COUNTED,
               (struct guard_input){.now_ms = 100, .n_processes = 4500});
    is_int(guard_state_next_ms(&m, 100), 400, "an end that was asked for keeps its time of KILL");
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, 200, (struct deadlines)NEW_LEASE);
    is_int(m.due.kill_ms, 6000 - 600, "TERMINATING: the count holds for a new lease as well");

    reach_counted(&m, PROVEN, 1000);
    send_event(&m, GUARD_EVENT_TERM_DUE, TERM_MS - 225, none);
    is_int(m.state, GUARD_STATE_FREEZING, "--on-lost pause: many processes are frozen earlier");
    is_int(guard_state_due(&m, KILL_MS - 75), GUARD_EVENT_KILL_DUE,
           "FREEZING: KILL is due earlier, too");
}

/* ---- a random walk ---- */

static uint64_t random_state;

/* splitmix64, by Sebastiano Vigna */
static uint64_t random_bits(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static int64_t random_from(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

static bool one_in(int64_t n)
{
    return random_from(1, n) == 1;
}

enum command { COMMAND_RUNS, COMMAND_STOPPED, COMMAND_EXITED, COMMAND_KILLED };

/* What is true of the tree, and what the guard has promised: kept apart from the machine. */
static struct world {
    struct guard_machine machine;
    int64_t now_ms;
    int64_t turn_ms; /* when the guard looked at the clock at this turn */
    enum command command;
    int n_running; /* others than the command */
    int n_stopped;
    bool program_lives;
    bool has_ended;       /* a process that is not reaped yet, */
    bool command_is_news; /* and it was the command */
    struct guard_rules rules;
    struct deadlines lease;   /* that the guard has agreed to */
    struct deadlines offered; /* in the event that is being handled */
    bool was_offered;
    bool is_frozen;         /* the program was told that nothing runs */
    bool is_ending;         /* the tree has got TERM or KILL */
    int64_t asked_kill_ms;  /* the earliest that was asked for */
    enum guard_event event; /* that is being handled */
    size_t n_counted;       /* processes at the last count; any number, so that KILL moves */
    int64_t counted_ms;     /* when that was */
    int64_t told_term_ms;   /* the program knows that no TERM comes before this time */
    bool killed;            /* KILL was sent at this turn */
    bool froze;             /* threads were stopped at this turn */
} w;

static bool was_visited[GUARD_STATES][GUARD_EVENTS];
static long n_violations;
static long n_lives;
static long step_now;

static void must(bool holds, const char *what)
{
    if (holds || n_violations++ > 0)
        return;
    okf(false, "step %ld, %s at %lld ms: %s", step_now, state_names[w.machine.state],
        (long long)w.now_ms, what);
}

static bool command_is_there(void)
{
    return w.command == COMMAND_RUNS || w.command == COMMAND_STOPPED;
}

static bool something_runs(void)
{
    return w.command == COMMAND_RUNS || w.n_running > 0;
}

static bool tree_is_empty(void)
{
    return !command_is_there() && w.n_running + w.n_stopped == 0;
}

static void end_command_of_world(enum command how)
{
    w.command = how;
    w.has_ended = w.command_is_news = true;
}

static void act(unsigned actions);

static void dispatch(enum guard_event event, struct deadlines lease)
{
    bool can_happen = guard_state_can_happen(w.machine.state, event);

    if (w.machine.state == GUARD_STATE_DONE)
        return;
    was_visited[w.machine.state][event] = true;
    if (!can_happen)
        must(false, event_names[event]);
    w.event = event;
    w.was_offered = event == GUARD_EVENT_LEASE_EXTENDED;
    w.offered = lease;
    act(guard_state_handle(&w.machine, event,
                           (struct guard_input){.now_ms = w.now_ms,
                                                .lease = lease,
                                                .kill_ms = lease.kill_ms,
                                                .n_processes = w.n_counted}));
}

/* Some stop at once, some later, and some fork before they stop. */
static void stop_tree(void)
{
    bool stood_still = !something_runs();
    int i;

    w.froze = true;
    if (one_in(10)) /* the guard is stopped while it looks */
        w.now_ms += random_from(0, 400);
    for (i = w.n_running; i > 0; i--)
        if (!one_in(4)) {
            w.n_running--;
            w.n_stopped++;
        }
    if (w.command == COMMAND_RUNS && !one_in(4))
        w.command = COMMAND_STOPPED;
    if (something_runs() && one_in(6))
        w.n_running++;
    if (stood_still)
        dispatch(GUARD_EVENT_TREE_STOPPED, (struct deadlines){0, 0});
}

static void kill_tree(void)
{
    int i;

    w.killed = w.is_ending = true;
    for (i = w.n_running + w.n_stopped; i > 0; i--)
        if (!one_in(5)) {
            if (w.n_running > 0)
                w.n_running--;
            else
                w.n_stopped--;
            w.has_ended = true;
        }
    if (command_is_there() && !one_in(5))
        end_command_of_world(COMMAND_KILLED);
}

/* The count is that of a small tree, or of one that makes TERM and KILL come earlier. */
static void count_tree(void)
{
    w.n_counted = (size_t)(one_in(2) ? random_from(0, 500) : random_from(501, 3000));
    w.counted_ms = w.now_ms;
    dispatch(GUARD_EVENT_TREE_COUNTED, (struct deadlines){0, 0});
}

static void note_told(void)
{
    if (w.event == GUARD_EVENT_LEASE_EXTENDED) {
        w.lease = w.offered;
        w.told_term_ms = w.lease.term_ms;
        return;
    }
    must(w.event == GUARD_EVENT_TREE_COUNTED && w.n_counted > 500 &&
             w.machine.due.term_ms < w.told_term_ms,
         "the program is told deadlines that have not changed");
    w.told_term_ms = w.machine.due.term_ms;
}

static void act(unsigned actions)
{
    if (actions & GUARD_ACTION_TELL_DEADLINES)
        note_told();
    if (actions & GUARD_ACTION_TELL_PAUSED && !w.is_frozen) {
        must(!something_runs(), "the program is told of a pause while something runs");
        must(w.now_ms < w.lease.kill_ms, "a pause counts that may have begun too late");
        w.is_frozen = true;
    }
    if (actions & GUARD_ACTION_THAW) {
        must(w.was_offered && w.now_ms < w.offered.term_ms && !w.is_ending,
             "a frozen tree goes on without a proven lease");
        w.is_frozen = false;
        w.n_running += w.n_stopped;
        w.n_stopped = 0;
        if (w.command == COMMAND_STOPPED)
            w.command = COMMAND_RUNS;
    }
    if (actions & GUARD_ACTION_LET_GO)
        must(w.machine.state == GUARD_STATE_DONE && w.command == COMMAND_EXITED &&
                 !w.rules.wait_all && !w.is_ending,
             "something is let go that had to end");
    if (actions & GUARD_ACTION_TERM) {
        must(!w.is_ending, "TERM is sent twice");
        must(w.event != GUARD_EVENT_TERM_DUE || w.now_ms >= w.told_term_ms,
             "TERM is sent earlier than the program was told");
        w.is_ending = true;
        if (w.n_running > 0 && one_in(2)) {
            w.n_running--;
            w.has_ended = true;
        }
        if (w.command == COMMAND_RUNS && one_in(3))
            end_command_of_world(COMMAND_KILLED);
        count_tree();
    }
    if (actions & GUARD_ACTION_COUNT)
        count_tree();
    if (actions & GUARD_ACTION_FREEZE)
        stop_tree();
    if (actions & GUARD_ACTION_KILL)
        kill_tree();
}

/* Mostly the guard gets its turn when it wants to; now and then it was stopped meanwhile. */
static void let_time_pass(void)
{
    int64_t next_ms = guard_state_next_ms(&w.machine, w.now_ms);
    int64_t at_ms = w.now_ms + random_from(0, one_in(4) ? 400 : 20);

    if (one_in(50))
        at_ms = w.now_ms + random_from(0, 3000);
    else if (next_ms < at_ms || (next_ms != RLOCK_NEVER && one_in(6)))
        at_ms = next_ms;
    if (at_ms > w.now_ms)
        w.now_ms = at_ms;
}

static void let_tree_live(void)
{
    if (w.n_running > 0 && one_in(8)) {
        w.n_running--;
        w.has_ended = true;
    }
    if (something_runs() && w.n_running < 5 && one_in(6))
        w.n_running++;
    if (w.command == COMMAND_RUNS && one_in(40))
        end_command_of_world(COMMAND_EXITED);
    else if (command_is_there() && one_in(60)) /* somebody else may kill it */
        end_command_of_world(COMMAND_KILLED);
    else if (w.command == COMMAND_STOPPED && one_in(60)) /* was exiting as it was stopped */
        end_command_of_world(COMMAND_EXITED);
    if (w.n_stopped > 0 && one_in(30)) {
        w.n_stopped--;
        w.has_ended = true;
        if (w.n_stopped > 0 && one_in(2)) { /* the dead one was the other's debugger */
            w.n_stopped--;
            w.n_running++;
        }
    }
}

static void let_program_speak(void)
{
    const struct deadlines none = {0, 0};
    struct deadlines lease;

    if (!w.program_lives)
        return;
    if (one_in(6)) {
        lease.term_ms = w.now_ms + random_from(-100, 800);
        lease.kill_ms = lease.term_ms + random_from(0, 300);
        dispatch(GUARD_EVENT_LEASE_EXTENDED, lease);
    }
    if (one_in(40)) {
        lease = (struct deadlines){0, w.now_ms + random_from(-20, 600)};
        if (w.machine.state != GUARD_STATE_DONE && lease.kill_ms < w.asked_kill_ms)
            w.asked_kill_ms = lease.kill_ms;
        dispatch(GUARD_EVENT_END_ASKED, lease);
    }
    if (one_in(20))
        dispatch(GUARD_EVENT_SIGNAL, none);
    if (one_in(60))
        dispatch(GUARD_EVENT_END_SIGNAL, none);
    if (one_in(80)) {
        w.program_lives = false;
        dispatch(GUARD_EVENT_PROGRAM_GONE, none);
    }
}

static void reap_tree(void)
{
    const struct deadlines none = {0, 0};
    bool command_is_news = w.command_is_news;

    if (w.has_ended)
        dispatch(GUARD_EVENT_PROCESS_ENDED, none);
    w.has_ended = w.command_is_news = false;
    if (tree_is_empty())
        dispatch(GUARD_EVENT_TREE_EMPTY, none);
    else if (command_is_news)
        dispatch(w.command == COMMAND_KILLED ? GUARD_EVENT_COMMAND_KILLED
                                             : GUARD_EVENT_COMMAND_EXITED,
                 none);
}

static void obey_clock(void)
{
    enum guard_event due;
    int n = 0;

    w.turn_ms = w.now_ms;
    while ((due = guard_state_due(&w.machine, w.now_ms)) != GUARD_EVENTS && n++ < GUARD_EVENTS)
        dispatch(due, (struct deadlines){0, 0});
    must(due == GUARD_EVENTS, "an event of the clock stays due");
    act(guard_state_work(&w.machine));
}

/* When the lease's KILL is due for as many processes as were counted when TERM was sent. */
static int64_t kill_due_ms(void)
{
    int64_t lead_ms = w.n_counted > 500 ? (int64_t)(w.n_counted - 500) * 150 / 1000 : 0;
    int64_t first_ms = w.counted_ms < w.lease.term_ms ? w.counted_ms : w.lease.term_ms;

    return w.lease.kill_ms - lead_ms > first_ms ? w.lease.kill_ms - lead_ms : first_ms;
}

static void check_invariants(void)
{
    enum guard_state state = w.machine.state;
    int64_t next_ms = guard_state_next_ms(&w.machine, w.now_ms);
    bool is_running = state == GUARD_STATE_RUNNING || state == GUARD_STATE_DRAINING;
    bool was_asked = w.asked_kill_ms != RLOCK_NEVER;

    if (state == GUARD_STATE_DONE) {
        must(!command_is_there(), "done while the command is there");
        must(tree_is_empty() || (!w.rules.wait_all && !w.is_ending && !was_asked &&
                                 w.program_lives && w.command == COMMAND_EXITED),
             "done while something is there that had to end");
        return;
    }
    if (w.is_frozen && !w.killed)
        must(!something_runs() || w.froze, "of a frozen tree something runs, and is not stopped");
    if (something_runs() && !w.is_frozen) {
        must(w.turn_ms < w.lease.term_ms || w.is_ending || w.froze,
             "the lease's TERM is over, and the tree was neither asked to end nor stopped");
        must(w.turn_ms < w.lease.kill_ms || w.killed, "the lease's KILL is over, and no KILL");
        must(next_ms <= w.lease.kill_ms || w.killed, "asleep for longer than the lease");
    }
    if (state == GUARD_STATE_TERMINATING) {
        must(w.turn_ms < kill_due_ms(), "no KILL in time for the processes that were counted");
        must(next_ms <= kill_due_ms(), "asleep for longer than the counted processes allow");
    }
    if (was_asked) {
        must(w.is_ending && !is_running, "an end that was asked for is forgotten");
        must(w.turn_ms < w.asked_kill_ms || w.killed, "no KILL when it was asked for");
        must(next_ms <= w.asked_kill_ms || w.killed, "asleep for longer than was asked for");
    }
    must(!w.is_ending || state == GUARD_STATE_TERMINATING || w.killed,
         "TERM without a KILL after it");
    must(w.program_lives || w.killed, "the program is gone, and no KILL");
}

static void begin_life(void)
{
    w = (struct world){.program_lives = true,
                       .now_ms = random_from(1, 100000),
                       .n_running = (int)random_from(0, 3),
                       .rules = {.pauses = one_in(2), .wait_all = one_in(2), .grace_ms = GRACE_MS},
                       .asked_kill_ms = RLOCK_NEVER};
    w.lease.term_ms = w.now_ms + random_from(0, 800);
    w.lease.kill_ms = w.lease.term_ms + random_from(0, 300);
    w.told_term_ms = w.lease.term_ms;
    guard_state_start(&w.machine, w.rules, w.lease, w.now_ms);
    n_lives++;
}

static void test_random_walk(uint64_t seed)
{
    enum guard_state s;
    enum guard_event e;

    printf("# seed %llu\n", (unsigned long long)seed);
    random_state = seed;
    begin_life();
    for (step_now = 0; step_now < STEPS && n_violations == 0; step_now++) {
        w.killed = w.froze = false;
        let_time_pass();
        let_tree_live();
        let_program_speak();
        reap_tree();
        obey_clock();
        check_invariants();
        if (w.machine.state == GUARD_STATE_DONE)
            begin_life();
    }
    okf(n_violations == 0, "seed %llu: %ld steps, %ld lives of a guard, no promise broken",
        (unsigned long long)seed, step_now, n_lives);
    for (s = 0; s < GUARD_STATE_DONE; s++)
        for (e = 0; e < GUARD_EVENTS; e++)
            okf(was_visited[s][e] == guard_state_can_happen(s, e), "the walk %s %s in %s",
                was_visited[s][e] ? "met" : "did not meet", event_names[e], state_names[s]);
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL);

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    test_cells();
    test_impossible_events();
    test_times();
    test_many_processes();
    test_random_walk(seed);
    return done_testing();
}
