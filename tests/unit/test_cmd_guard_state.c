/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_guard_state: tries each cell of the guard's table of states and events, and checks the
 * guard's promises in a random walk. Processes and clock of the walk are simulated by this file.
 *
 *     build/plain/unit/test_cmd_guard_state SEED    repeats the walk that printed this seed
 */
#include "supervise/guard_state.h"
#include "tap.h"
#include <rlock.h>
#include <stdlib.h>
#include <time.h>

#define STEPS 1000000
#define TERM_MS 1000 /* when TERM is due: reach() sets a lease that begins at 0 */
#define KILL_MS 2000 /* when KILL is due under that lease */
#define COUNT_MS 667 /* when the guard counts the tree: two thirds of the time to TERM are over */
#define GRACE_MS 300

static const char *const state_names[GUARD_STATES] = {
    [GUARD_STATE_RUNNING] = "RUNNING", [GUARD_STATE_TERMINATING] = "TERMINATING",
    [GUARD_STATE_PAUSED] = "PAUSED",   [GUARD_STATE_KILLING] = "KILLING",
    [GUARD_STATE_DONE] = "DONE",
};

static const char *const event_names[GUARD_EVENTS] = {
    [GUARD_EVENT_LEASE_EXTENDED] = "LEASE_EXTENDED",
    [GUARD_EVENT_END_ASKED] = "END_ASKED",
    [GUARD_EVENT_SIGNAL] = "SIGNAL",
    [GUARD_EVENT_END_SIGNAL] = "END_SIGNAL",
    [GUARD_EVENT_PROGRAM_GONE] = "PROGRAM_GONE",
    [GUARD_EVENT_COMMAND_EXITED] = "COMMAND_EXITED",
    [GUARD_EVENT_COMMAND_KILLED] = "COMMAND_KILLED",
    [GUARD_EVENT_TREE_EMPTY] = "TREE_EMPTY",
    [GUARD_EVENT_TREE_FROZEN] = "TREE_FROZEN",
    [GUARD_EVENT_TREE_COUNTED] = "TREE_COUNTED",
    [GUARD_EVENT_COUNT_DUE] = "COUNT_DUE",
    [GUARD_EVENT_TERM_DUE] = "TERM_DUE",
    [GUARD_EVENT_KILL_DUE] = "KILL_DUE",
    [GUARD_EVENT_END_DUE] = "END_DUE",
};

/* ---- tests of each cell of the table ---- */

/* The events and rules by which reach() brings the guard into a state. */
enum path {
    PLAIN,     /* without any of the following */
    WAIT_ALL,  /* with --wait-all */
    BY_LEASE,  /* the lease's TERM or KILL was due */
    PAUSES,    /* with --on-lost pause */
    FROZEN,    /* with --on-lost pause, and the tree was frozen in time */
    FROZEN_ALL /* as FROZEN, with --wait-all */
};

static const char *const path_names[] = {
    [PLAIN] = "PLAIN",   [WAIT_ALL] = "WAIT_ALL", [BY_LEASE] = "BY_LEASE",
    [PAUSES] = "PAUSES", [FROZEN] = "FROZEN",     [FROZEN_ALL] = "FROZEN_ALL",
};

struct row {
    enum guard_state from;
    enum path path;
    enum guard_event event;
    int64_t now_ms;
    struct deadlines lease; /* LEASE_EXTENDED: the new one; END_ASKED: only kill_ms is used */
    size_t n_processes;     /* TREE_COUNTED: how many were counted */
    enum guard_state to;
    unsigned actions; /* what the guard has to do: at once, or at each turn in the state `to` */
};

#define NEW_LEASE  \
    {              \
        5000, 6000 \
    }
/* The rows offer this lease at 1010 or 3000 ms, when the TERM of this lease is overdue. */
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
    FROZE = GUARD_ACTION_TELL_PAUSED,
    PASS = GUARD_ACTION_PASS_SIGNAL,
    TERM = GUARD_ACTION_TERM,
    FREEZE = GUARD_ACTION_FREEZE,
    KILL = GUARD_ACTION_KILL
};

#define ROW_COUNTED(n_, from_, way_, now_, to_, actions_)                               \
    {                                                                                   \
        .from = GUARD_STATE_##from_, .path = way_, .event = GUARD_EVENT_TREE_COUNTED,   \
        .now_ms = now_, .n_processes = n_, .to = GUARD_STATE_##to_, .actions = actions_ \
    }
#define ROW_WITH(lease_, from_, way_, event_, now_, to_, actions_)                                \
    {                                                                                             \
        .from = GUARD_STATE_##from_, .path = way_, .event = GUARD_EVENT_##event_, .now_ms = now_, \
        .lease = lease_, .to = GUARD_STATE_##to_, .actions = actions_                             \
    }
#define ROW(from_, way_, event_, now_, to_, actions_) \
    ROW_WITH({0}, from_, way_, event_, now_, to_, actions_)

static const struct row rows[] = {
    ROW_WITH(NEW_LEASE, RUNNING, PLAIN, LEASE_EXTENDED, 100, RUNNING, AGREED),
    ROW_WITH(KILL_AT(400), RUNNING, PLAIN, END_ASKED, 100, TERMINATING, TERM),
    ROW(RUNNING, PLAIN, SIGNAL, 100, RUNNING, PASS),
    ROW(RUNNING, PLAIN, END_SIGNAL, 100, RUNNING, PASS),
    ROW(RUNNING, PLAIN, PROGRAM_GONE, 100, KILLING, KILL),
    ROW(RUNNING, PLAIN, COMMAND_EXITED, 100, DONE, 0),
    ROW(RUNNING, WAIT_ALL, COMMAND_EXITED, 100, RUNNING, 0),
    ROW(RUNNING, PLAIN, COMMAND_KILLED, 100, TERMINATING, TERM),
    ROW(RUNNING, WAIT_ALL, COMMAND_KILLED, 100, TERMINATING, TERM),
    ROW(RUNNING, PLAIN, TREE_EMPTY, 100, DONE, 0),
    ROW(RUNNING, PLAIN, COUNT_DUE, 700, RUNNING, COUNT),
    ROW_COUNTED(500, RUNNING, PLAIN, 700, RUNNING, 0),
    ROW_COUNTED(1500, RUNNING, PLAIN, 700, RUNNING, AGREED),
    ROW(RUNNING, PLAIN, TERM_DUE, TERM_MS, TERMINATING, TERM),
    ROW(RUNNING, PLAIN, TERM_DUE, KILL_MS, KILLING, KILL),
    ROW(RUNNING, PAUSES, TERM_DUE, TERM_MS, PAUSED, FREEZE),

    ROW_WITH(NEW_LEASE, TERMINATING, PLAIN, LEASE_EXTENDED, 200, TERMINATING, AGREED),
    ROW_WITH(NEW_LEASE, TERMINATING, BY_LEASE, LEASE_EXTENDED, 1100, TERMINATING, 0),
    ROW_WITH(KILL_AT(300), TERMINATING, PLAIN, END_ASKED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, SIGNAL, 200, TERMINATING, PASS),
    ROW(TERMINATING, PLAIN, END_SIGNAL, 200, TERMINATING, PASS),
    ROW(TERMINATING, PLAIN, PROGRAM_GONE, 200, KILLING, KILL),
    ROW(TERMINATING, PLAIN, COMMAND_EXITED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, COMMAND_KILLED, 200, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, TREE_EMPTY, 200, DONE, 0),
    ROW_COUNTED(1500, TERMINATING, PLAIN, 700, TERMINATING, 0),
    ROW(TERMINATING, PLAIN, TERM_DUE, TERM_MS, TERMINATING, 0),
    ROW(TERMINATING, BY_LEASE, KILL_DUE, KILL_MS, KILLING, KILL),
    ROW(TERMINATING, PLAIN, END_DUE, 400, KILLING, KILL),

    ROW_WITH(NEW_LEASE, PAUSED, PAUSES, LEASE_EXTENDED, 1010, RUNNING, AGREED),
    ROW_WITH(OLD_LEASE, PAUSED, PAUSES, LEASE_EXTENDED, 1010, PAUSED, AGREED | FREEZE),
    ROW_WITH(NEW_LEASE, PAUSED, FROZEN, LEASE_EXTENDED, 3000, RUNNING, AGREED),
    ROW_WITH(NEW_LEASE, PAUSED, FROZEN_ALL, LEASE_EXTENDED, 3000, RUNNING, AGREED),
    ROW_WITH(OLD_LEASE, PAUSED, FROZEN, LEASE_EXTENDED, 3000, PAUSED, FROZE),
    ROW_WITH(KILL_AT(1300), PAUSED, PAUSES, END_ASKED, 1010, KILLING, KILL),
    ROW_WITH(KILL_AT(3300), PAUSED, FROZEN, END_ASKED, 3000, KILLING, KILL),
    ROW(PAUSED, PAUSES, SIGNAL, 1010, PAUSED, PASS | FREEZE),
    ROW(PAUSED, FROZEN, SIGNAL, 3000, PAUSED, PASS),
    ROW(PAUSED, FROZEN, END_SIGNAL, 3000, KILLING, KILL),
    ROW(PAUSED, FROZEN, PROGRAM_GONE, 3000, KILLING, KILL),
    ROW(PAUSED, PAUSES, COMMAND_EXITED, 1010, DONE, 0),
    ROW(PAUSED, FROZEN, COMMAND_EXITED, 3000, DONE, 0),
    ROW(PAUSED, FROZEN_ALL, COMMAND_EXITED, 3000, PAUSED, 0),
    ROW(PAUSED, FROZEN, COMMAND_KILLED, 3000, KILLING, KILL),
    ROW(PAUSED, FROZEN, TREE_EMPTY, 3000, DONE, 0),
    ROW(PAUSED, PAUSES, TREE_FROZEN, 1010, PAUSED, FROZE),
    ROW(PAUSED, PAUSES, TREE_FROZEN, KILL_MS, KILLING, KILL),
    ROW(PAUSED, PAUSES, KILL_DUE, KILL_MS, KILLING, KILL),

    ROW_WITH(NEW_LEASE, KILLING, PLAIN, LEASE_EXTENDED, 500, KILLING, AGREED | KILL),
    ROW_WITH(NEW_LEASE, KILLING, BY_LEASE, LEASE_EXTENDED, 2500, KILLING, KILL),
    ROW_WITH(KILL_AT(800), KILLING, PLAIN, END_ASKED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, SIGNAL, 500, KILLING, PASS | KILL),
    ROW(KILLING, PLAIN, END_SIGNAL, 500, KILLING, PASS | KILL),
    ROW(KILLING, PLAIN, PROGRAM_GONE, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, COMMAND_EXITED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, COMMAND_KILLED, 500, KILLING, KILL),
    ROW(KILLING, PLAIN, TREE_EMPTY, 500, DONE, 0),
    ROW_WITH(NEW_LEASE, KILLING, FROZEN, LEASE_EXTENDED, 2500, KILLING, FROZE | KILL),
    ROW(KILLING, PLAIN, KILL_DUE, KILL_MS, KILLING, KILL),
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

static void reach(struct guard_machine *m, enum guard_state state, enum path path)
{
    const struct deadlines lease = {TERM_MS, KILL_MS};
    const struct deadlines none = {0, 0};
    bool was_frozen = path == FROZEN || path == FROZEN_ALL;
    bool pauses = path == PAUSES || was_frozen;

    guard_state_start(m,
                      (struct guard_rules){.pauses = pauses,
                                           .wait_all = path == WAIT_ALL || path == FROZEN_ALL,
                                           .grace_ms = GRACE_MS},
                      lease, 0);
    if (state == GUARD_STATE_PAUSED || was_frozen || path == BY_LEASE)
        send_event(m, GUARD_EVENT_TERM_DUE, TERM_MS, none);
    else if (state == GUARD_STATE_TERMINATING)
        send_event(m, GUARD_EVENT_END_ASKED, 100, (struct deadlines){0, 400});
    if (was_frozen)
        send_event(m, GUARD_EVENT_TREE_FROZEN, TERM_MS + 5, none);
    if (state == GUARD_STATE_KILLING && path == BY_LEASE)
        send_event(m, GUARD_EVENT_KILL_DUE, KILL_MS, none);
    else if (state == GUARD_STATE_KILLING)
        send_event(m, GUARD_EVENT_PROGRAM_GONE, was_frozen ? TERM_MS + 7 : 400, none);
    if (state == GUARD_STATE_DONE)
        send_event(m, GUARD_EVENT_TREE_EMPTY, 100, none);
    if (m->state != state)
        okf(false, "reach() brings the guard into %s", state_names[state]);
}

static void test_table_cells(void)
{
    bool was_tried[GUARD_STATES][GUARD_EVENTS] = {{false}};
    struct guard_machine m;
    unsigned actions;
    enum guard_state s;
    enum guard_event e;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];

        reach(&m, row->from, row->path);
        actions = send_input(&m, row->event,
                             (struct guard_input){.now_ms = row->now_ms,
                                                  .lease = row->lease,
                                                  .kill_ms = row->lease.kill_ms,
                                                  .n_processes = row->n_processes});
        okf(m.state == row->to && actions == row->actions,
            "%s, path %s: %s at %d ms leads to %s (got %s) with actions %#x (got %#x)",
            state_names[row->from], path_names[row->path], event_names[row->event],
            (int)row->now_ms, state_names[row->to], state_names[m.state], row->actions, actions);
        was_tried[row->from][row->event] = true;
    }
    for (s = 0; s < GUARD_STATE_DONE; s++)
        for (e = 0; e < GUARD_EVENTS; e++)
            okf(was_tried[s][e] == guard_state_can_happen(s, e),
                "%s in %s: a row tests this cell (%d) if the table has it (%d)", event_names[e],
                state_names[s], was_tried[s][e], guard_state_can_happen(s, e));
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
            reach(&m, s, s == GUARD_STATE_PAUSED ? FROZEN : PLAIN);
            actions = send_event(&m, e, TERM_MS + 10, (struct deadlines)NEW_LEASE);
            if (s == GUARD_STATE_DONE)
                okf(m.state == GUARD_STATE_DONE && actions == 0, "DONE: %s changes nothing",
                    event_names[e]);
            else
                okf(m.state == GUARD_STATE_KILLING && (actions & GUARD_ACTION_KILL) != 0,
                    "%s: %s cannot happen, so it makes the guard send KILL", state_names[s],
                    event_names[e]);
        }
}

/* ---- tests of deadlines ---- */

static void test_deadlines(void)
{
    const struct deadlines none = {0, 0};
    struct guard_machine m;

    reach(&m, GUARD_STATE_RUNNING, PLAIN);
    is_int(guard_state_next_ms(&m, 5), COUNT_MS);
    is_int(guard_state_due(&m, COUNT_MS - 1), GUARD_EVENTS);
    is_int(guard_state_due(&m, COUNT_MS), GUARD_EVENT_COUNT_DUE);
    send_event(&m, GUARD_EVENT_COUNT_DUE, COUNT_MS, none);
    is_int(guard_state_next_ms(&m, COUNT_MS), TERM_MS);
    is_int(guard_state_due(&m, TERM_MS - 1), GUARD_EVENTS);
    is_int(guard_state_due(&m, TERM_MS), GUARD_EVENT_TERM_DUE, "RUNNING: TERM is due at its time");
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_TERM_DUE);
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, 500, (struct deadlines)NEW_LEASE);
    is_int(guard_state_next_ms(&m, 500), 3500);
    send_event(&m, GUARD_EVENT_COUNT_DUE, 3500, none);
    is_int(guard_state_next_ms(&m, 3500), 5000);
    send_event(&m, GUARD_EVENT_END_ASKED, 500, (struct deadlines){0, 900});
    is_int(guard_state_next_ms(&m, 500), 900);
    send_event(&m, GUARD_EVENT_END_ASKED, 500, (struct deadlines){0, 1200});
    is_int(guard_state_next_ms(&m, 500), 900);
    send_event(&m, GUARD_EVENT_END_ASKED, 500, (struct deadlines){0, 700});
    is_int(guard_state_next_ms(&m, 500), 700, "TERMINATING: another END_ASKED makes KILL earlier");
    is_int(guard_state_due(&m, 699), GUARD_EVENTS, "TERMINATING: no event is due before that KILL");
    is_int(guard_state_due(&m, 700), GUARD_EVENT_END_DUE);
    send_event(&m, GUARD_EVENT_END_DUE, 700, none);
    is_int(guard_state_due(&m, 701), GUARD_EVENTS, "KILLING: END_DUE does not come again");
    is_int(guard_state_next_ms(&m, 710), 710, "KILLING: the guard repeats KILL at once");
    ok(!m.lease_ended_first, "END_ASKED, not the lease, is noted as the reason of this end");
    is_int(guard_state_due(&m, 5999), GUARD_EVENTS);
    is_int(guard_state_due(&m, 6000), GUARD_EVENT_KILL_DUE);
    send_event(&m, GUARD_EVENT_KILL_DUE, 6000, none);
    ok(m.lease_ended_first, "KILLING: the lease counts as ended before the tree");
    is_int(guard_state_due(&m, 6001), GUARD_EVENTS, "KILLING: KILL_DUE does not come again");

    reach(&m, GUARD_STATE_RUNNING, PLAIN);
    send_event(&m, GUARD_EVENT_COMMAND_KILLED, 50, none);
    is_int(guard_state_next_ms(&m, 50), 50 + GRACE_MS);

    reach(&m, GUARD_STATE_TERMINATING, BY_LEASE);
    ok(m.lease_ended_first, "TERM at the lease's time: the lease is noted as the reason");
    is_int(guard_state_next_ms(&m, TERM_MS), KILL_MS);
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_KILL_DUE);

    reach(&m, GUARD_STATE_PAUSED, PAUSES);
    is_int(guard_state_next_ms(&m, KILL_MS - 2), KILL_MS);
    ok(guard_state_next_ms(&m, TERM_MS) < TERM_MS + 20);
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_KILL_DUE);
    ok(!m.lease_ended_first);
    reach(&m, GUARD_STATE_PAUSED, FROZEN);
    is_int(guard_state_next_ms(&m, 9000), RLOCK_NEVER);
    is_int(guard_state_due(&m, 9000), GUARD_EVENTS);
    is_int(m.frozen_since_ms, TERM_MS + 5, "PAUSED: frozen_since_ms is when nothing ran any more");
    reach(&m, GUARD_STATE_KILLING, FROZEN);
    is_int(guard_state_due(&m, 9000), GUARD_EVENTS);
    reach(&m, GUARD_STATE_PAUSED, FROZEN_ALL);
    send_event(&m, GUARD_EVENT_COMMAND_EXITED, 3000, none);
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, 3000, (struct deadlines)NEW_LEASE);
    is_int(m.state, GUARD_STATE_RUNNING);
    guard_state_start(&m, (struct guard_rules){.wait_all = true},
                      (struct deadlines){RLOCK_NEVER, RLOCK_NEVER}, 0);
    is_int(guard_state_next_ms(&m, 9000), RLOCK_NEVER, "--on-lost ignore: there is no deadline");
}

/* A process that runs already, and is not the guard's child. */
static void test_bound(void)
{
    const struct deadlines none = {0, 0};
    struct guard_machine m;

    guard_state_start(&m, (struct guard_rules){.is_bound = true},
                      (struct deadlines){TERM_MS, KILL_MS}, 0);
    is_int(send_event(&m, GUARD_EVENT_PROGRAM_GONE, 100, none), 0);
    is_int(send_event(&m, GUARD_EVENT_TERM_DUE, TERM_MS, none), TERM);
    is_int(guard_state_work(&m), TERM, "the guard goes on to look for its descendants");
    ok(guard_state_next_ms(&m, TERM_MS) < TERM_MS + 100, "and does so again and again");
    is_int(send_event(&m, GUARD_EVENT_PROGRAM_GONE, TERM_MS + 10, none), TERM);
    is_int(guard_state_due(&m, KILL_MS), GUARD_EVENT_KILL_DUE, "KILL is due at the lease's time");
}

/* Brings the guard into RUNNING, and reports n_processes to it when the count is due. */
static void reach_counted(struct guard_machine *m, enum path path, size_t n_processes)
{
    reach(m, GUARD_STATE_RUNNING, path);
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
    is_int(guard_state_due(&m, TERM_MS - 225), GUARD_EVENT_TERM_DUE);
    send_event(&m, GUARD_EVENT_TERM_DUE, TERM_MS - 225, none);
    ok(m.lease_ended_first, "an earlier TERM: the lease is still noted as the reason");
    is_int(guard_state_next_ms(&m, TERM_MS), KILL_MS - 75, "1000 processes: KILL comes earlier");
    send_input(&m, GUARD_EVENT_TREE_COUNTED,
               (struct guard_input){.now_ms = TERM_MS, .n_processes = 4500});
    is_int(guard_state_next_ms(&m, TERM_MS), KILL_MS - 600);
    is_int(guard_state_due(&m, KILL_MS - 600), GUARD_EVENT_KILL_DUE);

    reach_counted(&m, PLAIN, 20000);
    is_int(guard_state_due(&m, COUNT_MS), GUARD_EVENT_TERM_DUE);
    send_event(&m, GUARD_EVENT_TERM_DUE, COUNT_MS, none);
    is_int(m.state, GUARD_STATE_KILLING);

    reach_counted(&m, PLAIN, 4500);
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, COUNT_MS + 1, (struct deadlines)NEW_LEASE);
    ok(guard_state_next_ms(&m, COUNT_MS + 1) > KILL_MS);

    reach(&m, GUARD_STATE_TERMINATING, PLAIN);
    send_event(&m, GUARD_EVENT_END_ASKED, 100, (struct deadlines){0, RLOCK_NEVER});
    send_input(&m, GUARD_EVENT_TREE_COUNTED,
               (struct guard_input){.now_ms = 100, .n_processes = 4500});
    is_int(guard_state_next_ms(&m, 100), 400);
    send_event(&m, GUARD_EVENT_LEASE_EXTENDED, 200, (struct deadlines)NEW_LEASE);
    is_int(m.due.kill_ms, 6000 - 600);

    reach_counted(&m, PAUSES, 1000);
    send_event(&m, GUARD_EVENT_TERM_DUE, TERM_MS - 225, none);
    is_int(m.state, GUARD_STATE_PAUSED, "--on-lost pause, 1000 processes: freezing begins earlier");
    is_int(guard_state_due(&m, KILL_MS - 75), GUARD_EVENT_KILL_DUE);
}

/* ---- a random walk over states and events ---- */

static uint64_t random_state;

/* The pseudo-random number generator splitmix64, by Sebastiano Vigna. */
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

/*
 * The simulated processes, and what the guard has promised. The walk keeps its own record, to
 * compare the decisions of `machine` with it.
 */
static struct world {
    struct guard_machine machine;
    int64_t now_ms;
    int64_t turn_ms; /* now_ms when the guard looked for due events at this turn */
    enum command command;
    int n_running; /* running processes of the tree; the command isn't counted */
    int n_stopped; /* frozen processes of the tree; the command isn't counted */
    bool program_lives;
    bool command_is_zombie; /* the command has ended, and the guard has not reaped it */
    struct guard_rules rules;
    struct deadlines lease;   /* the last that the guard has agreed to */
    struct deadlines offered; /* the lease of the event that the guard handles now */
    bool told_paused;         /* the guard has told the program that nothing runs */
    bool is_ending;           /* the guard has sent TERM or KILL */
    int64_t asked_kill_ms;    /* the earliest KILL that an END_ASKED has set; or RLOCK_NEVER */
    enum guard_event event;   /* the event that the guard handles now */
    size_t n_counted;         /* the result of the last count, see count_tree() */
    int64_t counted_ms;       /* when the last count was */
    int64_t told_term_ms;     /* the guard has told rlock that it sends no TERM before then */
    bool has_sent_kill;       /* at this turn */
    bool has_frozen;          /* at this turn */
} w;

static bool was_visited[GUARD_STATES][GUARD_EVENTS];
static long n_violations;
static long n_guards;
static long step_now;

/* Counts broken promises of the guard, and reports the first of a walk. */
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
    w.command_is_zombie = true;
}

static void act(unsigned actions);

static void dispatch(enum guard_event event, struct deadlines lease)
{
    bool can_happen = guard_state_can_happen(w.machine.state, event);

    if (w.machine.state == GUARD_STATE_DONE)
        return;
    was_visited[w.machine.state][event] = true;
    if (!can_happen) /* the walk simulates only events that can happen */
        must(false, event_names[event]);
    w.event = event;
    w.offered = lease;
    act(guard_state_handle(&w.machine, event,
                           (struct guard_input){.now_ms = w.now_ms,
                                                .lease = lease,
                                                .kill_ms = lease.kill_ms,
                                                .n_processes = w.n_counted}));
}

/* Most processes stop at once, some at a later turn, and some fork before they stop. */
static void freeze_tree(void)
{
    bool was_still = !something_runs();

    w.has_frozen = true;
    if (one_in(10)) /* the scheduler keeps the guard from running meanwhile */
        w.now_ms += random_from(0, 400);
    for (int i = w.n_running; i > 0; i--)
        if (!one_in(4)) {
            w.n_running--;
            w.n_stopped++;
        }
    if (w.command == COMMAND_RUNS && !one_in(4))
        w.command = COMMAND_STOPPED;
    if (something_runs() && one_in(6))
        w.n_running++;
    if (was_still)
        dispatch(GUARD_EVENT_TREE_FROZEN, (struct deadlines){0, 0});
}

static void kill_tree(void)
{
    w.has_sent_kill = w.is_ending = true;
    for (int i = w.n_running + w.n_stopped; i > 0; i--)
        if (!one_in(5)) {
            if (w.n_running > 0)
                w.n_running--;
            else
                w.n_stopped--;
        }
    if (command_is_there() && !one_in(5))
        end_command_of_world(COMMAND_KILLED);
}

/*
 * Makes up a count, as the simulated tree is small: only with more than 500 processes TERM and KILL
 * come earlier.
 */
static void count_tree(void)
{
    w.n_counted = (size_t)(one_in(2) ? random_from(0, 500) : random_from(501, 3000));
    w.counted_ms = w.now_ms;
    dispatch(GUARD_EVENT_TREE_COUNTED, (struct deadlines){0, 0});
}

static void note_told_deadlines(void)
{
    if (w.event == GUARD_EVENT_LEASE_EXTENDED) {
        w.lease = w.offered;
        w.told_term_ms = w.lease.term_ms;
        return;
    }
    must(w.event == GUARD_EVENT_TREE_COUNTED && w.n_counted > 500 &&
             w.machine.due.term_ms < w.told_term_ms,
         "the guard tells the program deadlines that have not changed");
    w.told_term_ms = w.machine.due.term_ms;
}

/* As the guard does at each turn: only in PAUSED and KILLING a process may be frozen. */
static void thaw_tree(void)
{
    enum guard_state state = w.machine.state;

    if (state == GUARD_STATE_PAUSED || state == GUARD_STATE_KILLING || state == GUARD_STATE_DONE)
        return;
    if (w.n_stopped > 0 || w.command == COMMAND_STOPPED)
        must(w.turn_ms < (state == GUARD_STATE_TERMINATING ? w.lease.kill_ms : w.lease.term_ms),
             "the guard lets a frozen tree run without a confirmed renewal");
    w.n_running += w.n_stopped;
    w.n_stopped = 0;
    if (w.command == COMMAND_STOPPED)
        w.command = COMMAND_RUNS;
    w.told_paused = false;
}

static void act(unsigned actions)
{
    if (actions & GUARD_ACTION_TELL_DEADLINES)
        note_told_deadlines();
    if (actions & GUARD_ACTION_TELL_PAUSED && !w.told_paused) {
        must(!something_runs(), "the guard tells the program of a pause while a process runs");
        must(w.now_ms < w.lease.kill_ms,
             "the guard tells the program of a pause that may have begun after the lease's KILL");
        w.told_paused = true;
    }
    if (w.machine.state == GUARD_STATE_DONE && w.n_stopped > 0)
        must(w.command == COMMAND_EXITED && !w.rules.wait_all && !w.is_ending,
             "the guard lets a process run on that it had to end");
    if (actions & GUARD_ACTION_TERM) {
        must(!w.is_ending, "the guard sends TERM twice");
        must(w.event != GUARD_EVENT_TERM_DUE || w.now_ms >= w.told_term_ms,
             "the guard sends TERM earlier than it has told the program");
        w.is_ending = true;
        if (w.n_running > 0 && one_in(2))
            w.n_running--;
        if (w.command == COMMAND_RUNS && one_in(3))
            end_command_of_world(COMMAND_KILLED);
        count_tree();
    }
    if (actions & GUARD_ACTION_COUNT)
        count_tree();
    if (actions & GUARD_ACTION_FREEZE)
        freeze_tree();
    if (actions & GUARD_ACTION_KILL)
        kill_tree();
}

/*
 * Moves the clock to the guard's next turn. This turn often comes sooner than the guard has asked
 * for, as if a message had woken it, and seldom up to 3 s later, as if somebody had stopped it.
 */
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

static void change_tree(void)
{
    if (w.n_running > 0 && one_in(8))
        w.n_running--;
    if (something_runs() && w.n_running < 5 && one_in(6))
        w.n_running++;
    if (w.command == COMMAND_RUNS && one_in(40))
        end_command_of_world(COMMAND_EXITED);
    else if (command_is_there() && one_in(60)) /* somebody outside kills the command */
        end_command_of_world(COMMAND_KILLED);
    else if (w.command == COMMAND_STOPPED && one_in(60)) /* the command was frozen in exit(3) */
        end_command_of_world(COMMAND_EXITED);
    if (w.n_stopped > 0 && one_in(30))
        w.n_stopped--;
}

static void send_program_events(void)
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
    bool command_is_zombie = w.command_is_zombie;

    w.command_is_zombie = false;
    if (tree_is_empty())
        dispatch(GUARD_EVENT_TREE_EMPTY, none);
    else if (command_is_zombie)
        dispatch(w.command == COMMAND_KILLED ? GUARD_EVENT_COMMAND_KILLED
                                             : GUARD_EVENT_COMMAND_EXITED,
                 none);
}

static void handle_clock(void)
{
    enum guard_event due;
    int n = 0;

    w.turn_ms = w.now_ms;
    while ((due = guard_state_due(&w.machine, w.now_ms)) != GUARD_EVENTS && n++ < GUARD_EVENTS)
        dispatch(due, (struct deadlines){0, 0});
    must(due == GUARD_EVENTS, "an event of the clock is still due after the guard has handled it");
    thaw_tree();
    act(guard_state_work(&w.machine));
}

/*
 * When KILL is due: for each counted process beyond 500 it is 0.15 ms earlier than the lease's
 * KILL, but not before the count or the lease's TERM, whichever comes first.
 */
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
    bool is_running = state == GUARD_STATE_RUNNING;
    bool was_asked = w.asked_kill_ms != RLOCK_NEVER;

    if (state == GUARD_STATE_DONE) {
        must(!command_is_there(), "the guard is done while the command is there");
        must(tree_is_empty() || (!w.rules.wait_all && !w.is_ending && !was_asked &&
                                 w.program_lives && w.command == COMMAND_EXITED),
             "the guard is done while a process is there that it had to end");
        return;
    }
    if (w.told_paused && !w.has_sent_kill)
        must(!something_runs() || w.has_frozen,
             "a process of the frozen tree runs, and the guard does not freeze it");
    if (something_runs() && !w.told_paused) {
        must(w.turn_ms < w.lease.term_ms || w.is_ending || w.has_frozen,
             "after the lease's TERM the guard has neither sent TERM nor frozen the tree");
        must(w.turn_ms < w.lease.kill_ms || w.has_sent_kill,
             "after the lease's KILL the guard has sent no KILL");
        must(next_ms <= w.lease.kill_ms || w.has_sent_kill,
             "the guard's next turn comes after the lease's KILL");
    }
    if (state == GUARD_STATE_TERMINATING) {
        must(w.turn_ms < kill_due_ms(),
             "the guard has sent no KILL when it was due for that many processes");
        must(next_ms <= kill_due_ms(),
             "the guard's next turn comes after KILL is due for that many processes");
    }
    if (was_asked) {
        must(w.is_ending && !is_running, "the guard has forgotten an END_ASKED");
        must(w.turn_ms < w.asked_kill_ms || w.has_sent_kill,
             "the guard has sent no KILL when END_ASKED had set it");
        must(next_ms <= w.asked_kill_ms || w.has_sent_kill,
             "the guard's next turn comes after the KILL that END_ASKED had set");
    }
    must(!w.is_ending || state == GUARD_STATE_TERMINATING || w.has_sent_kill,
         "the guard has sent TERM, and no KILL will follow");
    must(w.program_lives || w.has_sent_kill, "the program is gone, and the guard has sent no KILL");
}

static void start_guard(void)
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
    n_guards++;
}

static void test_random_walk(uint64_t seed)
{
    enum guard_state s;
    enum guard_event e;

    printf("# seed %llu\n", (unsigned long long)seed);
    random_state = seed;
    start_guard();
    for (step_now = 0; step_now < STEPS && n_violations == 0; step_now++) {
        w.has_sent_kill = w.has_frozen = false;
        let_time_pass();
        change_tree();
        send_program_events();
        reap_tree();
        handle_clock();
        check_invariants();
        if (w.machine.state == GUARD_STATE_DONE)
            start_guard();
    }
    okf(n_violations == 0, "seed %llu: %ld steps, %ld guards from start to DONE, no promise broken",
        (unsigned long long)seed, step_now, n_guards);
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
    RUN_ALL(test_table_cells, test_impossible_events, test_deadlines, test_many_processes,
            test_bound);
    RUN(test_random_walk(seed));
    return done_testing();
}
