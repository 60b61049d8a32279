/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_guard_state: tells the guard some stories, and checks its promises in a random walk.
 * Processes and clock of the walk are simulated by this file.
 *
 *     build/plain/unit/test_cmd_guard_state SEED    repeats the walk that printed this seed
 */
#include "chance.h"
#include "supervise/guard_state.h"
#include "tap.h"
#include <rlock.h>

#define STEPS 1000000
#define GRACE_MS 300

/* ---- stories: what the guard does about one event after the other ---- */

enum rule { WAIT_ALL = 1, PAUSES = 2, BOUND = 4 };

enum {
    COUNT = GUARD_ACTION_COUNT,
    TELL = GUARD_ACTION_TELL,
    PASS = GUARD_ACTION_PASS_SIGNAL,
    TERM = GUARD_ACTION_TERM,
    FREEZE = GUARD_ACTION_FREEZE,
    KILL = GUARD_ACTION_KILL,
    BY_LEASE = 1 << 16 /* no action: the guard notes that the lease ended first */
};

struct step {
    int line;
    enum guard_event event; /* GUARD_EVENTS: a new guard starts */
    int64_t now_ms;
    struct deadlines lease; /* END_ASKED: only kill_ms is used */
    size_t n;               /* TREE_COUNTED: how many processes; a new guard: enum rule */
    enum guard_state state; /* after the event */
    unsigned actions;       /* what the guard has to do: at once, or at each turn in that state */
    int64_t next_ms;        /* when the guard looks again, if nothing wakes it */
};

#define NEVER RLOCK_NEVER
#define STEP(event, now, term, kill, n, state, ...)                                          \
    {                                                                                        \
        __LINE__, GUARD_EVENT##event, now, {term, kill}, n, GUARD_STATE_##state, __VA_ARGS__ \
    }
#define START(rules) STEP(S, 0, 1000, 2000, rules, RUNNING, 0, 667)
#define AT(now, event, ...) STEP(_##event, now, 0, 0, 0, __VA_ARGS__)
#define LEASE(now, term, kill, ...) STEP(_LEASE_EXTENDED, now, term, kill, 0, __VA_ARGS__)
#define ASKED(now, kill, ...) STEP(_END_ASKED, now, 0, kill, 0, __VA_ARGS__)
#define COUNTED(now, n, ...) STEP(_TREE_COUNTED, now, 0, 0, n, __VA_ARGS__)
#define FREEZING(rules_) START(rules_), AT(1000, TERM_DUE, PAUSED, FREEZE, 1005)
#define FROZEN(rules_) FREEZING(rules_), AT(1005, TREE_FROZEN, PAUSED, TELL, NEVER)
#define COUNTING(rules_) START(rules_), AT(667, COUNT_DUE, RUNNING, COUNT, 1000)

static const struct step steps[] = {
    /* the command ends by itself */
    START(0),
    LEASE(100, 5000, 6000, RUNNING, TELL, 3367),
    AT(110, SIGNAL, RUNNING, TELL | PASS, 3367),
    AT(110, END_SIGNAL, RUNNING, TELL | PASS, 3367),
    AT(3367, COUNT_DUE, RUNNING, COUNT, 5000),
    COUNTED(3368, 500, RUNNING, 0, 5000),
    COUNTED(3369, 3500, RUNNING, TELL, 5000 - 1350),
    AT(3400, COMMAND_EXITED, DONE, 0, NEVER),
    START(WAIT_ALL),
    AT(100, COMMAND_EXITED, RUNNING, 0, 667),
    AT(110, COMMAND_KILLED, TERMINATING, TERM, 110 + GRACE_MS),
    START(0),
    AT(50, COMMAND_KILLED, TERMINATING, TERM, 50 + GRACE_MS),
    AT(60, COMMAND_EXITED, TERMINATING, 0, 50 + GRACE_MS),
    AT(70, COMMAND_KILLED, TERMINATING, 0, 50 + GRACE_MS),
    AT(80, TREE_EMPTY, DONE, 0, NEVER),

    /* the program asks for the end, several times */
    START(0),
    ASKED(100, 900, TERMINATING, TELL | TERM, 900),
    ASKED(110, 1200, TERMINATING, TELL, 900),
    ASKED(120, 700, TERMINATING, TELL, 700),
    AT(130, SIGNAL, TERMINATING, TELL | PASS, 700),
    AT(130, END_SIGNAL, TERMINATING, TELL | PASS, 700),
    LEASE(140, 5000, 6000, TERMINATING, TELL, 700),
    AT(700, END_DUE, KILLING, KILL, 700),
    ASKED(710, 800, KILLING, TELL | KILL, 710),
    AT(710, SIGNAL, KILLING, TELL | PASS | KILL, 710),
    AT(710, END_SIGNAL, KILLING, TELL | PASS | KILL, 710),
    LEASE(720, 7000, 8000, KILLING, TELL | KILL, 720),
    AT(8000, KILL_DUE, KILLING, KILL | BY_LEASE, 8000),
    LEASE(8010, 8500, 8600, KILLING, TELL | KILL | BY_LEASE, 8010),
    AT(8020, TREE_EMPTY, DONE, BY_LEASE, NEVER),

    /* the lease ends */
    COUNTING(0),
    AT(1000, TERM_DUE, TERMINATING, TERM | BY_LEASE, 2000),
    LEASE(1010, 5000, 6000, TERMINATING, TELL | BY_LEASE, 2000),
    AT(2000, KILL_DUE, KILLING, KILL | BY_LEASE, 2000),
    START(0), /* the guard sees it late: once when KILL is due, once after END_ASKED */
    AT(2000, TERM_DUE, KILLING, KILL | BY_LEASE, 2000),
    START(0),
    ASKED(100, 900, TERMINATING, TELL | TERM, 900),
    AT(1000, TERM_DUE, TERMINATING, BY_LEASE, 900),
    AT(1000, END_DUE, KILLING, KILL | BY_LEASE, 1000),

    /* the program is gone: that ends a command at once, but no bound process */
    START(0),
    AT(100, MAIN_GONE, KILLING, KILL, 100),
    START(0),
    ASKED(100, 900, TERMINATING, TELL | TERM, 900),
    AT(200, MAIN_GONE, KILLING, KILL, 200),
    START(BOUND),
    AT(100, MAIN_GONE, RUNNING, 0, 667),
    AT(667, COUNT_DUE, RUNNING, COUNT, 1000),
    AT(1000, TERM_DUE, TERMINATING, TERM | BY_LEASE, 1020),
    AT(1010, MAIN_GONE, TERMINATING, TERM | BY_LEASE, 1030),
    AT(2000, KILL_DUE, KILLING, KILL | BY_LEASE, 2000),

    /* --on-lost pause: the tree is not frozen in time */
    FREEZING(PAUSES),
    AT(1010, SIGNAL, PAUSED, TELL | PASS | FREEZE, 1015),
    LEASE(1010, 900, 1900, PAUSED, TELL | FREEZE, 1015),
    AT(1899, SIGNAL, PAUSED, TELL | PASS | FREEZE, 1900),
    AT(1900, KILL_DUE, KILLING, KILL | BY_LEASE, 1900),
    FREEZING(PAUSES),
    AT(2000, TREE_FROZEN, KILLING, KILL | BY_LEASE, 2000),
    FREEZING(PAUSES),
    LEASE(1010, 5000, 6000, RUNNING, TELL, 3670),
    FREEZING(PAUSES),
    ASKED(1010, 1300, KILLING, TELL | KILL, 1010),

    /* the tree is frozen */
    FROZEN(PAUSES),
    AT(3000, SIGNAL, PAUSED, TELL | PASS, NEVER),
    LEASE(3000, 900, 1900, PAUSED, TELL, NEVER),
    LEASE(3000, 5000, 6000, RUNNING, TELL, 4334),
    AT(5000, TERM_DUE, PAUSED, FREEZE, 5005),
    FROZEN(PAUSES | WAIT_ALL),
    AT(3000, COMMAND_EXITED, PAUSED, 0, NEVER),
    LEASE(3000, 5000, 6000, RUNNING, TELL, 4334),
    FROZEN(PAUSES),
    AT(3000, COMMAND_KILLED, KILLING, KILL, 3000),
    FROZEN(PAUSES),
    ASKED(3000, 3300, KILLING, TELL | KILL, 3000),
    FROZEN(PAUSES),
    AT(1010, END_SIGNAL, KILLING, TELL | KILL, 1010),
    LEASE(2500, 5000, 6000, KILLING, TELL | KILL, 2500),

    /* many processes: TERM and KILL come earlier */
    COUNTING(0),
    COUNTED(667, 1000, RUNNING, TELL, 1000 - 225),
    AT(1000 - 225, TERM_DUE, TERMINATING, TERM | BY_LEASE, 2000 - 75),
    COUNTED(1000, 4500, TERMINATING, BY_LEASE, 2000 - 600),
    AT(2000 - 600, KILL_DUE, KILLING, KILL | BY_LEASE, 2000 - 600),
    COUNTING(0),
    COUNTED(667, 20000, RUNNING, TELL, 667),
    AT(667, TERM_DUE, KILLING, KILL | BY_LEASE, 667),
    COUNTING(0),
    COUNTED(667, 4500, RUNNING, TELL, 667),
    LEASE(668, 5000, 6000, RUNNING, TELL, 3556),
    START(0),
    ASKED(100, NEVER, TERMINATING, TELL | TERM, 2000),
    COUNTED(100, 4500, TERMINATING, 0, 2000 - 600),
    LEASE(200, 5000, 6000, TERMINATING, TELL, 6000 - 600),
    COUNTING(PAUSES),
    COUNTED(667, 1000, RUNNING, TELL, 1000 - 225),
    AT(1000 - 225, TERM_DUE, PAUSED, FREEZE, 1005 - 225),
    AT(2000 - 75, KILL_DUE, KILLING, KILL | BY_LEASE, 2000 - 75),

    /* --on-lost ignore */
    STEP(S, 0, NEVER, NEVER, WAIT_ALL, RUNNING, 0, NEVER),
    ASKED(100, NEVER, TERMINATING, TELL | TERM, NEVER),
    COUNTED(100, 4500, TERMINATING, 0, NEVER),
};

static struct guard_rules rules_of(size_t rules)
{
    return (struct guard_rules){.is_bound = (rules & BOUND) != 0,
                                .pauses = (rules & PAUSES) != 0,
                                .wait_all = (rules & WAIT_ALL) != 0,
                                .grace_ms = GRACE_MS};
}

static unsigned take_step(struct guard_machine *m, const struct step *step)
{
    const struct guard_input in = {.now_ms = step->now_ms,
                                   .lease = step->lease,
                                   .kill_ms = step->lease.kill_ms,
                                   .n_processes = step->n};
    unsigned actions = 0;

    if (step->event == GUARD_EVENTS)
        guard_state_start(m, rules_of(step->n), step->lease, step->now_ms);
    else
        actions = guard_state_handle(m, step->event, in);
    return actions | guard_state_work(m) | (m->lease_ended_first ? BY_LEASE : 0);
}

static void test_stories(void)
{
    struct guard_machine m;
    const struct step *step;

    for (step = steps; step < steps + sizeof steps / sizeof steps[0]; step++) {
        bool is_clock = step->event >= GUARD_EVENT_COUNT_DUE && step->event < GUARD_EVENTS;
        int64_t quiet_ms = step->state == GUARD_STATE_KILLING ? step->now_ms : step->next_ms - 1;
        unsigned actions;

        okf(!is_clock || guard_state_due(&m, step->now_ms) == step->event, "line %d: it is due",
            step->line);
        actions = take_step(&m, step);
        okf(m.state == step->state && actions == step->actions,
            "line %d: state %d (wanted %d), actions %#x (wanted %#x)", step->line, m.state,
            step->state, actions, step->actions);
        is_int(guard_state_next_ms(&m, step->now_ms), step->next_ms);
        okf(step->state == GUARD_STATE_TERMINATING || guard_state_due(&m, quiet_ms) == GUARD_EVENTS,
            "line %d: nothing is due earlier than the guard's next turn", step->line);
        if (step->event == GUARD_EVENT_TREE_FROZEN && step->state == GUARD_STATE_PAUSED)
            is_int(m.frozen_since_ms, step->now_ms, "frozen since nothing ran any more");
    }
}

static void test_impossible_events(void)
{
    struct guard_machine m;
    enum guard_state s;
    enum guard_event e;

    for (s = 0; s < GUARD_STATES; s++)
        for (e = 0; e < GUARD_EVENTS; e++) {
            if (guard_state_can_happen(s, e))
                continue;
            guard_state_start(&m, rules_of(0), (struct deadlines){1000, 2000}, 0);
            m.state = s;
            guard_state_handle(&m, e, (struct guard_input){.now_ms = 10});
            okf(m.state == (s == GUARD_STATE_DONE ? s : GUARD_STATE_KILLING),
                "event %d can't happen in state %d: the guard kills, or is done already", e, s);
        }
}

/* ---- a random walk over states and events ---- */

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
    bool main_lives;
    bool command_is_zombie; /* the command has ended, and the guard has not reaped it */
    struct guard_rules rules;
    struct deadlines lease;   /* the last that the guard has agreed to */
    struct deadlines offered; /* the lease of the event that the guard handles now */
    bool told_paused;         /* the guard has told the program that nothing runs */
    bool is_ending;           /* the guard has sent TERM or KILL */
    int64_t asked_kill_ms;    /* the earliest KILL that an END_ASKED has set; or RLOCK_NEVER */
    enum guard_event event;   /* the event that the guard handles now */
    bool has_sent_kill;       /* at this turn */
    bool has_frozen;          /* at this turn */
} w;

static const struct deadlines none = {0, 0};
static bool was_visited[GUARD_STATES][GUARD_EVENTS];
static long n_violations;
static long n_guards;
static long step_now;

/* Counts broken promises of the guard, and reports the first of a walk. */
static void must(bool holds, const char *what)
{
    if (holds || n_violations++ > 0)
        return;
    okf(false, "step %ld, state %d, event %d at %lld ms: %s", step_now, w.machine.state, w.event,
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

static bool is_same(struct deadlines a, struct deadlines b)
{
    return a.term_ms == b.term_ms && a.kill_ms == b.kill_ms;
}

/* The four requests of the program. */
static bool has_to_answer(enum guard_event event)
{
    return event == GUARD_EVENT_LEASE_EXTENDED || event == GUARD_EVENT_END_ASKED ||
           event == GUARD_EVENT_SIGNAL || event == GUARD_EVENT_END_SIGNAL;
}

static void dispatch(enum guard_event event, struct deadlines lease)
{
    bool can_happen = guard_state_can_happen(w.machine.state, event);
    bool was_frozen = w.machine.frozen_since_ms != 0;
    unsigned actions;

    if (w.machine.state == GUARD_STATE_DONE)
        return;
    was_visited[w.machine.state][event] = true;
    w.event = event;
    if (!can_happen)
        must(false, "the walk simulates only events that can happen");
    w.offered = lease;
    actions = guard_state_handle(
        &w.machine, event,
        (struct guard_input){
            .now_ms = w.now_ms, .lease = lease, .kill_ms = lease.kill_ms, .n_processes = 5});
    must(((actions & GUARD_ACTION_TELL) != 0) ==
             (has_to_answer(event) || (!was_frozen && w.machine.frozen_since_ms != 0)),
         "the guard answers each request, tells that it has frozen the tree, and nothing else");
    act(actions);
}

/* Most processes stop at once, some at a later turn, and some fork before they stop. */
static void freeze_tree(void)
{
    bool was_still = !something_runs();

    w.has_frozen = true;
    if (chance_one_in(10)) /* the scheduler keeps the guard from running meanwhile */
        w.now_ms += chance_from(0, 400);
    for (int i = w.n_running; i > 0; i--)
        if (!chance_one_in(4)) {
            w.n_running--;
            w.n_stopped++;
        }
    if (w.command == COMMAND_RUNS && !chance_one_in(4))
        w.command = COMMAND_STOPPED;
    if (something_runs() && chance_one_in(6))
        w.n_running++;
    if (was_still)
        dispatch(GUARD_EVENT_TREE_FROZEN, none);
}

static void kill_tree(void)
{
    w.has_sent_kill = w.is_ending = true;
    for (int i = w.n_running + w.n_stopped; i > 0; i--)
        if (!chance_one_in(5)) {
            if (w.n_running > 0)
                w.n_running--;
            else
                w.n_stopped--;
        }
    if (command_is_there() && !chance_one_in(5))
        end_command_of_world(COMMAND_KILLED);
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
}

static void act(unsigned actions)
{
    bool tells_pause = w.machine.frozen_since_ms != 0;

    if (actions & GUARD_ACTION_TELL && !tells_pause) {
        must(is_same(w.machine.lease, w.lease) ||
                 (w.event == GUARD_EVENT_LEASE_EXTENDED && is_same(w.machine.lease, w.offered)),
             "the guard tells deadlines that the program has not sent");
        w.lease = w.machine.lease;
        w.told_paused = false;
    }
    if (actions & GUARD_ACTION_TELL && tells_pause && !w.told_paused) {
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
        must(w.event != GUARD_EVENT_TERM_DUE || w.now_ms >= w.lease.term_ms,
             "the guard sends TERM earlier than it has told the program");
        w.is_ending = true;
        if (w.n_running > 0 && chance_one_in(2))
            w.n_running--;
        if (w.command == COMMAND_RUNS && chance_one_in(3))
            end_command_of_world(COMMAND_KILLED);
    }
    /* The simulated tree is small, so this moves no deadline: test_stories() has larger trees. */
    if (actions & (GUARD_ACTION_TERM | GUARD_ACTION_COUNT))
        dispatch(GUARD_EVENT_TREE_COUNTED, none);
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
    int64_t at_ms = w.now_ms + chance_from(0, chance_one_in(4) ? 400 : 20);

    if (chance_one_in(50))
        at_ms = w.now_ms + chance_from(0, 3000);
    else if (next_ms < at_ms || (next_ms != RLOCK_NEVER && chance_one_in(6)))
        at_ms = next_ms;
    if (at_ms > w.now_ms)
        w.now_ms = at_ms;
}

static void change_tree(void)
{
    if (w.n_running > 0 && chance_one_in(8))
        w.n_running--;
    if (something_runs() && w.n_running < 5 && chance_one_in(6))
        w.n_running++;
    if (w.command == COMMAND_RUNS && chance_one_in(40))
        end_command_of_world(COMMAND_EXITED);
    else if (command_is_there() && chance_one_in(60)) /* somebody outside kills the command */
        end_command_of_world(COMMAND_KILLED);
    else if (w.command == COMMAND_STOPPED &&
             chance_one_in(60)) /* the command was frozen in exit(3) */
        end_command_of_world(COMMAND_EXITED);
    if (w.n_stopped > 0 && chance_one_in(30))
        w.n_stopped--;
}

static void send_program_events(void)
{
    struct deadlines lease;

    if (!w.main_lives)
        return;
    if (chance_one_in(6)) {
        lease.term_ms = w.now_ms + chance_from(-100, 800);
        lease.kill_ms = lease.term_ms + chance_from(0, 300);
        dispatch(GUARD_EVENT_LEASE_EXTENDED, lease);
    }
    if (chance_one_in(40)) {
        lease = (struct deadlines){0, w.now_ms + chance_from(-20, 600)};
        if (w.machine.state != GUARD_STATE_DONE && lease.kill_ms < w.asked_kill_ms)
            w.asked_kill_ms = lease.kill_ms;
        dispatch(GUARD_EVENT_END_ASKED, lease);
    }
    if (chance_one_in(20))
        dispatch(GUARD_EVENT_SIGNAL, none);
    if (chance_one_in(60))
        dispatch(GUARD_EVENT_END_SIGNAL, none);
    if (chance_one_in(80)) {
        w.main_lives = false;
        dispatch(GUARD_EVENT_MAIN_GONE, none);
    }
}

static void reap_tree(void)
{
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
        dispatch(due, none);
    must(due == GUARD_EVENTS, "an event of the clock is still due after the guard has handled it");
    thaw_tree();
    act(guard_state_work(&w.machine));
}

static void check_invariants(void)
{
    enum guard_state state = w.machine.state;
    int64_t next_ms = guard_state_next_ms(&w.machine, w.now_ms);
    bool is_running = state == GUARD_STATE_RUNNING;
    bool was_asked = w.asked_kill_ms != RLOCK_NEVER;

    if (state == GUARD_STATE_DONE) {
        must(!command_is_there(), "the guard is done while the command is there");
        must(tree_is_empty() || (!w.rules.wait_all && !w.is_ending && !was_asked && w.main_lives &&
                                 w.command == COMMAND_EXITED),
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
    if (was_asked) {
        must(w.is_ending && !is_running, "the guard has forgotten an END_ASKED");
        must(w.turn_ms < w.asked_kill_ms || w.has_sent_kill,
             "the guard has sent no KILL when END_ASKED had set it");
        must(next_ms <= w.asked_kill_ms || w.has_sent_kill,
             "the guard's next turn comes after the KILL that END_ASKED had set");
    }
    must(!w.is_ending || state == GUARD_STATE_TERMINATING || w.has_sent_kill,
         "the guard has sent TERM, and no KILL will follow");
    must(w.main_lives || w.has_sent_kill, "the program is gone, and the guard has sent no KILL");
}

static void start_guard(void)
{
    w = (struct world){
        .main_lives = true,
        .now_ms = chance_from(1, 100000),
        .n_running = (int)chance_from(0, 3),
        .rules = {.pauses = chance_one_in(2), .wait_all = chance_one_in(2), .grace_ms = GRACE_MS},
        .asked_kill_ms = RLOCK_NEVER};
    w.lease.term_ms = w.now_ms + chance_from(0, 800);
    w.lease.kill_ms = w.lease.term_ms + chance_from(0, 300);
    guard_state_start(&w.machine, w.rules, w.lease, w.now_ms);
    n_guards++;
}

static void test_random_walk(void)
{
    enum guard_state s;
    enum guard_event e;

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
    okf(n_violations == 0, "%ld steps, %ld guards from start to DONE", step_now, n_guards);
    for (s = 0; s < GUARD_STATE_DONE; s++)
        for (e = 0; e < GUARD_EVENTS; e++)
            okf(was_visited[s][e] == guard_state_can_happen(s, e), "state %d, event %d: met: %d", s,
                e, was_visited[s][e]);
}

int main(int argc, char **argv)
{
    chance_seed(argc, argv);
    RUN_ALL(test_stories, test_impossible_events, test_random_walk);
    return done_testing();
}
