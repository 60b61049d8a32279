/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_supervise: the table of states and events of a run, tested without processes or waits.
 *
 * First the test checks each cell of the table by itself. Then it makes a random walk of a million
 * steps on a fake clock: at each step a random event of the guard, the renewer, the server or the
 * kernel happens. The same seed makes the same walk: test_cmd_supervise SEED.
 */
#include "base/clock.h"
#include "chance.h"
#include "supervise/supervise_state.h"
#include "tap.h"

#define SENT_MS 1000000
#define GRANTED_MS (SENT_MS + 10)
#define EXPIRES_MS (SENT_MS + 29698)
#define NOW_MS (SENT_MS + 5000)
#define E(event) SUPERVISE_EVENT_##event
#define S(state) SUPERVISE_STATE_##state
#define A(action) SUPERVISE_ACTION_##action
#define PID 7
#define OTHER_PID 8

static const struct rlock_grant grant = {.sent_ms = SENT_MS,
                                         .expires_ms = EXPIRES_MS,
                                         .timing = {.ttl_ms = 30000,
                                                    .renew_ms = 10000,
                                                    .reply_ms = 2000,
                                                    .grace_ms = 5000,
                                                    .kill_margin_ms = 300}};

static bool is_live(enum supervise_state state)
{
    return state >= S(RUNNING) && state <= S(UNKILLABLE);
}

/* ---- tests of each cell of the table ---- */

static const struct guard_news usual_news = {
    .kind = GUARD_NEWS_DONE, .lease = {NOW_MS + 20000, NOW_MS + 25000}, .stopped_since_ms = NOW_MS};

static unsigned tell(struct supervision *run, enum supervise_event event)
{
    struct supervise_input input = {.expires_ms = EXPIRES_MS + 10000,
                                    .news = &usual_news,
                                    .pid = OTHER_PID,
                                    .reason = REASON_NOT_FOUND};

    return supervise_state_handle(run, event, NOW_MS, input);
}

static struct supervision run_in(enum supervise_state state)
{
    static const struct {
        enum supervise_event event[2];
        int n;
    } ways[SUPERVISE_STATES] = {[S(RUNNING)] = {{0}, 0},
                                [S(PAUSED)] = {{E(GUARD_PAUSED)}, 1},
                                [S(ENDING)] = {{E(MAX_HOLD_DUE)}, 1},
                                [S(UNKILLABLE)] = {{E(KILL_REFUSED)}, 1},
                                [S(REPLACING)] = {{E(GUARD_GONE)}, 1},
                                [S(RELEASING)] = {{E(COMMAND_ENDED)}, 1},
                                [S(DONE)] = {{E(COMMAND_ENDED), E(RELEASED)}, 2}};
    struct supervision run;

    supervise_state_init(&run, SUPERVISE_COMMAND, &grant, GRANTED_MS,
                         state == S(PAUSED) ? ON_LOST_PAUSE : ON_LOST_KILL, 0);
    for (int i = 0; i < ways[state].n; i++)
        tell(&run, ways[state].event[i]);
    run.refused_pid = 0;
    return run;
}

#define AT(state) (1U << S(state))
#define ENDABLE (AT(RUNNING) | AT(PAUSED) | AT(ENDING))
#define LIVE (ENDABLE | AT(UNKILLABLE))
#define SAME SUPERVISE_STATES /* the event doesn't change the state */
#define KEPT EXIT_REASONS     /* nor the reason to exit */

static const struct cell {
    unsigned states; /* in each of which the event has this effect */
    enum supervise_event event;
    enum supervise_state next;
    unsigned actions;
    enum exit_reason reason;
} cells[] = {
    {LIVE, E(SIGNAL), SAME, A(PASS_SIGNAL), KEPT},
    {LIVE, E(RENEWED), SAME, A(EXTEND_GUARD), KEPT},
    {LIVE, E(TERM_REFUSED), SAME, A(SAY_REFUSED), KEPT},
    {LIVE, E(COMMAND_ENDED), S(RELEASING), A(DISMISS_GUARD), KEPT},
    {LIVE | AT(REPLACING), E(RENEWER_STARTED), SAME, 0, KEPT},
    {LIVE | AT(REPLACING), E(RENEWER_FAILED), SAME, A(SAY_NO_RENEWER), KEPT},
    {LIVE | AT(REPLACING), E(RENEWER_DUE), SAME, A(START_RENEWER), KEPT},
    {AT(RUNNING) | AT(ENDING), E(NOT_STARTED), S(RELEASING), A(SAY_NOT_STARTED) | A(DISMISS_GUARD),
     REASON_NOT_FOUND},
    {ENDABLE, E(LOCK_LOST), S(ENDING), A(SAY_LOST) | A(END_COMMAND), REASON_LOST},
    {AT(UNKILLABLE), E(LOCK_LOST), SAME, A(SAY_LOST) | A(END_COMMAND), REASON_LOST},
    {ENDABLE, E(SERVER_GONE), S(ENDING), A(SAY_LOST) | A(END_COMMAND), REASON_LOST},
    {AT(UNKILLABLE), E(SERVER_GONE), SAME, A(SAY_LOST) | A(END_COMMAND), REASON_LOST},
    {AT(RUNNING) | AT(ENDING), E(LEASE_DUE), S(ENDING), A(SAY_LOST) | A(END_COMMAND), REASON_LOST},
    {AT(UNKILLABLE), E(LEASE_DUE), SAME, A(SAY_LOST) | A(END_COMMAND), REASON_LOST},
    {ENDABLE, E(MAX_HOLD_DUE), S(ENDING), A(SAY_MAX_HOLD) | A(END_COMMAND), REASON_MAX_HOLD},
    {AT(UNKILLABLE), E(MAX_HOLD_DUE), SAME, A(SAY_MAX_HOLD) | A(END_COMMAND), REASON_LOST},
    {AT(RUNNING), E(GIVEN_BACK), S(DONE), 0, KEPT},
    {AT(RUNNING) | AT(ENDING) | AT(UNKILLABLE), E(GUARD_AGREED), SAME, 0, KEPT},
    {AT(PAUSED), E(GUARD_AGREED), S(RUNNING), A(SAY_RESUMED), KEPT},
    {AT(RUNNING), E(GUARD_PAUSED), S(PAUSED), A(SAY_PAUSED), KEPT},
    {AT(PAUSED), E(GUARD_PAUSED), SAME, 0, KEPT},
    {AT(ENDING) | AT(UNKILLABLE), E(GUARD_PAUSED), SAME, A(SAY_PAUSED), KEPT},
    {LIVE, E(KILL_REFUSED), S(UNKILLABLE), A(SAY_REFUSED), REASON_LOST},
    {AT(REPLACING), E(KILL_REFUSED), SAME, A(SAY_REFUSED), REASON_LOST},
    {AT(RUNNING), E(BOUND_ENDED), S(RELEASING), 0, KEPT},
    {ENDABLE, E(GUARD_GONE), S(REPLACING), A(SAY_GUARD_LOST), REASON_SYSTEM},
    {AT(UNKILLABLE), E(GUARD_GONE), S(REPLACING), A(SAY_GUARD_LOST), REASON_LOST},
    {AT(RUNNING) | AT(ENDING) | AT(UNKILLABLE), E(LOOK_DUE), SAME, A(LOOK), KEPT},
    /* only an answer is late, and for the first time */
    {AT(RUNNING) | AT(PAUSED) | AT(UNKILLABLE), E(GUARD_LATE), SAME, A(EXTEND_GUARD), KEPT},
    {AT(ENDING), E(GUARD_LATE), SAME, A(END_COMMAND), KEPT},
    {AT(REPLACING), E(TREE_ENDED), S(RELEASING), 0, KEPT},
    {AT(RELEASING), E(LOCK_MISSING), S(DONE), A(SAY_LOST), REASON_LOST},
    {AT(RELEASING), E(RELEASED), S(DONE), 0, KEPT},
};

static void check_cell(enum supervise_state state, enum supervise_event event)
{
    const struct cell none = {0, event, SAME, 0, KEPT};
    const struct cell *cell = &none;
    struct supervision run = run_in(state);
    enum exit_reason reason = run.reason;
    unsigned actions;

    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        if (cells[i].event == event && (cells[i].states & 1U << state) != 0)
            cell = &cells[i];
    okf(run.state == state && supervise_state_can_happen(state, event) == (cell != &none),
        "state %d, event %d: it can happen", state, event);
    actions = tell(&run, event);
    okf(run.state == (cell->next == SAME ? state : cell->next) && actions == cell->actions &&
            run.reason == (cell->reason == KEPT ? reason : cell->reason),
        "state %d, event %d: now state %d, actions %#x, reason %d", state, event, run.state,
        actions, run.reason);
}

static void test_cells(void)
{
    for (int state = 0; state < SUPERVISE_STATES; state++)
        for (int event = 0; event < SUPERVISE_EVENTS; event++)
            check_cell((enum supervise_state)state, (enum supervise_event)event);
}

/* rlock reports why the command didn't start, even after it has reported the lock as lost. */
static void test_too_short_a_lease(void)
{
    struct supervise_input input = {.news = &usual_news, .reason = REASON_LOST};
    struct supervision run = run_in(S(RUNNING));
    unsigned actions = supervise_state_handle(&run, E(NOT_STARTED), NOW_MS, input);

    ok((actions & A(SAY_NOT_STARTED)) != 0);
    run = run_in(S(RUNNING));
    tell(&run, E(LEASE_DUE));
    actions = supervise_state_handle(&run, E(NOT_STARTED), NOW_MS, input);
    ok((actions & A(SAY_NOT_STARTED)) != 0);
    run = run_in(S(RUNNING));
    input = (struct supervise_input){.reason = REASON_INTERRUPTED};
    actions = supervise_state_handle(&run, E(NOT_STARTED), NOW_MS, input);
    ok(actions == A(DISMISS_GUARD) && run.state == S(RELEASING));
    is_int(run.reason, REASON_INTERRUPTED, "a signal came before the guard was asked");
}

/*
 * When rlock continues after a stop, the renewer's thread may renew the lease before the main
 * thread sees that the lease has ended.
 */
static void test_renewal_after_the_end(void)
{
    struct supervision run = run_in(S(RUNNING));
    struct supervise_input late = {.sent_ms = run.expires_ms, .expires_ms = run.expires_ms + 9000};
    unsigned actions;

    run.on_lost = ON_LOST_IGNORE;
    actions = supervise_state_handle(&run, E(RENEWED), late.sent_ms + 1, late);
    ok((actions & A(SAY_LOST)) != 0);
    is_int(run.reason, REASON_LOST);
    run = run_in(S(RUNNING));
    run.on_lost = ON_LOST_IGNORE;
    late.sent_ms--;
    actions = supervise_state_handle(&run, E(RENEWED), late.sent_ms + 2, late);
    ok((actions & A(SAY_LOST)) == 0);
}

static void test_renewer_times(void)
{
    struct supervision run = run_in(S(RUNNING));
    struct supervise_input none = {.expires_ms = 0};
    enum supervise_event event;

    is_int(supervise_state_next_ms(&run), GRANTED_MS + 100);
    ok(supervise_state_due(&run, GRANTED_MS + 100, &event) && event == E(RENEWER_DUE));
    ok(!supervise_state_due(&run, GRANTED_MS + 99, &event), "the renewer is not due earlier");
    is_int(supervise_state_handle(&run, E(RENEWER_FAILED), GRANTED_MS + 100, none), 0);
    is_int(supervise_state_next_ms(&run), SENT_MS + 5000);
    is_int(supervise_state_handle(&run, E(RENEWER_FAILED), SENT_MS + 5000, none),
           A(SAY_NO_RENEWER));
    is_int(supervise_state_next_ms(&run), SENT_MS + 7000);
    supervise_state_init(&run, SUPERVISE_COMMAND, &grant, SENT_MS + 8000, ON_LOST_KILL, 0);
    is_int(supervise_state_next_ms(&run), SENT_MS + 5000);
}

/* A run in which the guard doesn't answer a signal that comes at NOW_MS. */
static struct supervision run_unanswered(enum on_lost on_lost, bool is_frozen)
{
    struct supervision run;

    supervise_state_init(&run, SUPERVISE_COMMAND, &grant, GRANTED_MS, on_lost, 0);
    tell(&run, E(RENEWER_STARTED));
    tell(&run, is_frozen ? E(GUARD_PAUSED) : E(GUARD_AGREED));
    tell(&run, E(SIGNAL));
    return run;
}

/* The first limit that passes may be the fault of a machine that stood still. */
static void test_silent_guard(void)
{
    static const struct {
        enum on_lost on_lost;
        bool is_frozen;
    } rows[] = {{ON_LOST_KILL, false},
                {ON_LOST_PAUSE, false},
                {ON_LOST_PAUSE, true},
                {ON_LOST_IGNORE, false}};
    const struct supervise_input none = {.pid = 0};
    enum supervise_event event;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct supervision run = run_unanswered(rows[i].on_lost, rows[i].is_frozen);
        enum supervise_state state = run.state;

        is_int(supervise_state_next_ms(&run), NOW_MS + 5000, "the guard has 5 s to answer");
        ok(supervise_state_due(&run, NOW_MS + 5000, &event) && event == E(GUARD_LATE));
        is_int(supervise_state_handle(&run, event, NOW_MS + 5100, none), A(EXTEND_GUARD),
               "rlock asks again: the request or the answer may have been lost");
        ok(run.state == state && supervise_state_next_ms(&run) == NOW_MS + 10100);
        is_int(supervise_state_handle(&run, event, NOW_MS + 10100, none), A(SAY_GUARD_LOST),
               "a guard that is silent at two limits is replaced");
        ok(run.state == S(REPLACING) && run.reason == REASON_SYSTEM);
    }
}

/* execve(2) may take long: a guard that has not answered START is not replaced for its silence. */
static void test_slow_exec(void)
{
    const struct supervise_input none = {.pid = 0};
    struct supervise_input input = {.news = &usual_news, .is_behind = true};
    struct supervision run;

    supervise_state_init(&run, SUPERVISE_COMMAND, &grant, GRANTED_MS, ON_LOST_IGNORE, 0);
    supervise_state_handle(&run, E(RENEWER_STARTED), NOW_MS, none);
    supervise_state_handle(&run, E(SIGNAL), NOW_MS, none);
    is_int(supervise_state_next_ms(&run), EXPIRES_MS, "it is not replaced");
    supervise_state_handle(&run, E(GUARD_AGREED), NOW_MS + 15000, input);
    is_int(supervise_state_next_ms(&run), NOW_MS + 20000, "now it has to answer the signal");
}

/* A message that the guard sent before it read the request is no answer, but the guard lives. */
static void test_answers(void)
{
    struct supervise_input input = {.news = &usual_news, .is_behind = true};
    struct supervision run = run_unanswered(ON_LOST_PAUSE, true);

    supervise_state_handle(&run, E(GUARD_LATE), NOW_MS + 5000, (struct supervise_input){.pid = 0});
    supervise_state_handle(&run, E(GUARD_PAUSED), NOW_MS + 6000, input);
    is_int(supervise_state_next_ms(&run), NOW_MS + 11000);
    ok(!run.was_late, "it has two limits again");
    tell(&run, E(GUARD_PAUSED));
    is_int(supervise_state_next_ms(&run), RLOCK_NEVER);
}

/* At the latest when the command should have ended, rlock itself ends it. */
static void test_late_guard(void)
{
    struct supervision run = run_in(S(ENDING));
    const struct supervise_input none = {.pid = 0};
    int64_t late_ms = EXPIRES_MS - 300 + 150;
    enum supervise_event event = E(GUARD_LATE);

    tell(&run, E(GUARD_AGREED));
    run.agreed = supervise_state_deadlines(&run);
    ok(!supervise_state_due(&run, late_ms - 1, &event) || event != E(GUARD_LATE));
    is_int(supervise_state_handle(&run, E(GUARD_LATE), late_ms, none),
           A(SAY_LOST) | A(SAY_GUARD_LOST));
    ok(run.state == S(REPLACING) && run.reason == REASON_LOST);
    run = run_in(S(UNKILLABLE));
    tell(&run, E(RENEWER_STARTED));
    is_int(supervise_state_next_ms(&run), NOW_MS + 5000, "a guard that kills goes on to tell it");
}

/* ---- what rlock supervises without having started it ---- */

static struct supervision run_of(enum supervise_kind kind, enum on_lost on_lost)
{
    struct supervision run;

    supervise_state_init(&run, kind, &grant, GRANTED_MS, on_lost, 60000);
    return run;
}

/* KILL comes before the lease's end, and TERM, or freezing, so long before KILL as it takes. */
static void test_agreed(void)
{
    static const struct deadlines wanted[] = {
        [ON_LOST_KILL] = {EXPIRES_MS - 300 - 5000, EXPIRES_MS - 300},
        [ON_LOST_PAUSE] = {EXPIRES_MS - 300 - 2000, EXPIRES_MS - 300},
        [ON_LOST_IGNORE] = {RLOCK_NEVER, RLOCK_NEVER}};

    for (int i = ON_LOST_KILL; i <= ON_LOST_IGNORE; i++) {
        struct supervision run = run_of(SUPERVISE_COMMAND, (enum on_lost)i);

        is_int(run.agreed.term_ms, wanted[i].term_ms);
        is_int(run.agreed.kill_ms, wanted[i].kill_ms);
    }
}

static void test_bound(void)
{
    struct supervision run = run_of(SUPERVISE_BOUND, ON_LOST_IGNORE);
    const struct supervise_input none = {.expires_ms = 0};

    is_int(tell(&run, E(LEASE_DUE)), A(SAY_LOST));
    is_int(run.state, S(RUNNING));
    is_int(tell(&run, E(LOCK_LOST)), 0, "the loss is not reported again");
    is_int(run.state, S(RELEASING));
    run = run_of(SUPERVISE_BOUND, ON_LOST_KILL);
    tell(&run, E(COMMAND_ENDED));
    is_int(tell(&run, E(LOCK_MISSING)), 0);
    is_int(run.reason, REASON_GRANTED, "the lock counts as held to the end");
    run = run_of(SUPERVISE_BOUND, ON_LOST_KILL);
    supervise_state_handle(&run, E(BOUND_ENDED), run.agreed.term_ms, none);
    is_int(run.state, S(RUNNING));
    supervise_state_handle(&run, E(BOUND_ENDED), run.agreed.term_ms - 1, none);
    ok(run.state == S(RELEASING) && run.reason == REASON_GRANTED);
    run = run_of(SUPERVISE_BOUND, ON_LOST_IGNORE);
    supervise_state_handle(&run, E(BOUND_ENDED), EXPIRES_MS, none);
    ok(run.state == S(RELEASING) && run.reason == REASON_LOST);
}

/* What the main process must know if it has to kill the tree for a guard that is dead. */
static void test_look(void)
{
    struct supervision run = run_of(SUPERVISE_BOUND, ON_LOST_KILL);
    struct supervise_input input = {.news = &usual_news};
    enum supervise_event event;
    int64_t near_ms;

    tell(&run, E(RENEWER_STARTED));
    run.max_hold_at_ms = RLOCK_NEVER;
    is_int(tell(&run, E(GUARD_AGREED)), A(FORGET));
    near_ms = run.agreed.term_ms - run.timing.kill_margin_ms;
    is_int(supervise_state_next_ms(&run), near_ms, "shortly before TERM rlock looks at the tree");
    is_int(supervise_state_handle(&run, E(LOOK_DUE), near_ms, input), A(LOOK),
           "that is all it does");
    is_int(supervise_state_next_ms(&run), near_ms + 20, "and it looks again and again");
    is_int(supervise_state_handle(&run, E(GUARD_AGREED), near_ms + 20, input), 0);
    ok(supervise_state_due(&run, run.agreed.term_ms, &event) && event == E(LEASE_DUE));
    is_int(tell(&run, E(LOCK_LOST)), A(LOOK) | A(END_COMMAND) | A(SAY_LOST));
    tell(&run, E(GUARD_AGREED));
    is_int(supervise_state_next_ms(&run), near_ms + 20, "and goes on looking until all have ended");
    run = run_of(SUPERVISE_COMMAND, ON_LOST_KILL);
    is_int(tell(&run, E(LOCK_LOST)), A(END_COMMAND) | A(SAY_LOST));
}

static void test_hold(void)
{
    struct supervision run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    struct supervise_input late;

    is_int(tell(&run, E(SIGNAL)), 0, "a hold has no process for a signal");
    is_int(run.state, S(RELEASING), "so a signal ends the hold");
    run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    is_int(tell(&run, E(MAX_HOLD_DUE)), A(SAY_MAX_HOLD));
    ok(run.state == S(RELEASING) && run.reason == REASON_GRANTED);
    run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    is_int(tell(&run, E(LOCK_LOST)), A(SAY_LOST));
    is_int(run.state, S(RELEASING), "a lost hold is over");
    run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    tell(&run, E(RENEWER_STARTED));
    is_int(supervise_state_next_ms(&run), GRANTED_MS + 60000);
    late = (struct supervise_input){.sent_ms = run.expires_ms, .expires_ms = run.expires_ms + 9000};
    is_int(supervise_state_handle(&run, E(RENEWED), late.sent_ms + 1, late), A(EXTEND_GUARD),
           "a lock that it got back is no loss");
    ok(run.lease == SUPERVISE_LEASE_HELD && run.expires_ms == late.expires_ms);
}

/* ---- a random walk over states and events ---- */

#define STEPS 1000000
#define ANSWER_MS 5000 /* how long a guard has to answer */
#define STEPS_OF_A_RUN_MAX 400

static struct walk {
    int64_t n_steps;
    enum supervise_event event; /* that is being handled */
    int n_broken;
    bool visited[SUPERVISE_STATES][SUPERVISE_EVENTS];

    /*
     * One run, its fake clock, and what the test itself concludes from the events. The test doesn't
     * ask the table of supervise_state.c, so that it can check what the table does.
     */
    struct supervision run;
    int64_t now_ms;
    int64_t frozen_since_ms;   /* 0: the command isn't frozen */
    int64_t paused_ms;         /* the sum of all pauses that have ended */
    bool has_begun;            /* the guard has answered START */
    bool is_asked;             /* the guard has not answered all requests */
    int64_t answer_by_ms;      /* when the guard must have sent a message; or RLOCK_NEVER */
    bool was_late;             /* the guard was silent at one limit, and nothing was done yet */
    struct deadlines extended; /* the deadlines that were sent to the guard last */
    bool is_unproven;          /* the lease was not proven for the whole run */
    bool is_server_gone;
    bool is_given_back; /* another process has released the lock of a bound process */
    int n_lost_told;
    int n_releases;
    int n_run_steps;
} w;

static int64_t below(int64_t n)
{
    return chance_from(0, n - 1);
}

/* Counts broken promises, and reports the first. */
static void must(bool holds, const char *what)
{
    if (holds || w.n_broken++ > 0)
        return;
    okf(false, "step %lld, event %d, now in state %d, on_lost %d: not so: %s", (long long)w.n_steps,
        w.event, w.run.state, w.run.on_lost, what);
}

static void end_pause(void)
{
    if (w.frozen_since_ms != 0)
        w.paused_ms += w.now_ms - w.frozen_since_ms;
    w.frozen_since_ms = 0;
}

/* When a guard that acts by a deadline must have kept it, before this process keeps it. */
static int64_t deadline_ms(void)
{
    const struct supervision *run = &w.run;

    return w.frozen_since_ms != 0 || run->state == S(UNKILLABLE) || run->on_lost == ON_LOST_IGNORE
               ? RLOCK_NEVER
               : run->agreed.kill_ms + run->timing.kill_margin_ms / 2;
}

/* Both processes may have been stopped, and this one runs first. */
static bool has_second_chance(void)
{
    return w.now_ms < deadline_ms() && !w.was_late;
}

/* Records what the event means by the promises of the manual, not by the table under test. */
static void note_event(enum supervise_event event, const struct supervise_input *input)
{
    const struct guard_news *news = input->news;

    if (news != NULL) {
        w.has_begun = true;
        w.is_asked = input->is_behind;
        w.was_late = false;
        w.answer_by_ms = RLOCK_NEVER;
    }
    switch ((int)event) {
    case E(LOCK_LOST):
    case E(SERVER_GONE):
    case E(LEASE_DUE):
    case E(KILL_REFUSED):
        w.is_unproven = true;
        w.is_server_gone = w.is_server_gone || event == E(SERVER_GONE);
        break;
    case E(GUARD_PAUSED):
        if (w.frozen_since_ms == 0)
            w.frozen_since_ms = news->stopped_since_ms;
        break;
    case E(GUARD_AGREED):
        end_pause();
        break;
    case E(COMMAND_ENDED):
        w.is_unproven = w.is_unproven || news->lease_ended_first || news->main_was_gone ||
                        news->stopped_since_ms >= w.run.expires_ms;
        end_pause();
        break;
    case E(GUARD_LATE):
        if (has_second_chance()) {
            w.was_late = true;
            w.answer_by_ms = w.now_ms + ANSWER_MS;
            break;
        }
        w.is_unproven = w.is_unproven || w.now_ms >= deadline_ms();
        end_pause();
        break;
    case E(GUARD_GONE):
        end_pause();
        break;
    case E(GIVEN_BACK):
        w.is_given_back = true;
        break;
    case E(LOCK_MISSING):
        w.is_unproven =
            w.is_unproven || (w.run.kind == SUPERVISE_COMMAND && w.now_ms < w.run.expires_ms);
        break;
    }
}

static void note_actions(enum supervise_event event, unsigned actions)
{
    const struct supervision *run = &w.run;
    bool has_guard = run->kind == SUPERVISE_COMMAND || run->on_lost != ON_LOST_IGNORE;

    if ((actions & A(SAY_LOST)) != 0) {
        must(++w.n_lost_told == 1, "a lost lock is reported exactly once");
        if (is_live(run->state) && run->on_lost != ON_LOST_IGNORE)
            must((actions & A(END_COMMAND)) != 0 &&
                     run->kill_at_ms <= w.now_ms + run->timing.grace_ms &&
                     run->kill_at_ms <= run->agreed.kill_ms,
                 "when the lock is lost, rlock asks the guard at once to end the command");
    }
    if ((actions & A(EXTEND_GUARD)) != 0)
        w.extended = supervise_state_deadlines(run);
    if ((actions & A(END_COMMAND)) != 0)
        must(run->on_lost != ON_LOST_IGNORE || event == E(MAX_HOLD_DUE) || event == E(GUARD_LATE),
             "with --on-lost ignore only --max-hold ends the command");
    if ((actions & (A(EXTEND_GUARD) | A(END_COMMAND))) != 0 ||
        ((actions & A(PASS_SIGNAL)) != 0 && run->kind == SUPERVISE_COMMAND))
        w.is_asked = has_guard;
    /* a guard that can't kill a process repeats that */
    if (w.answer_by_ms == RLOCK_NEVER && w.has_begun && (w.is_asked || run->state == S(UNKILLABLE)))
        w.answer_by_ms = w.now_ms + ANSWER_MS;
}

/*
 * Returns when the main process must have replaced a guard that is silent. The test computes this
 * time from its own records, not by the table under test.
 */
static int64_t replaced_by_ms(void)
{
    return is_live(w.run.state) ? clock_earlier(deadline_ms(), w.answer_by_ms) : RLOCK_NEVER;
}

static void step(enum supervise_event event, struct supervise_input input)
{
    enum supervise_state before = w.run.state;
    bool is_first_limit = event == E(GUARD_LATE) && has_second_chance();
    unsigned actions;

    w.n_steps++;
    w.n_run_steps++;
    w.visited[before][event] = true;
    w.event = event;
    must(event != E(GUARD_LATE) || w.now_ms >= replaced_by_ms(),
         "a guard has its whole time to answer");
    note_event(event, &input);
    actions = supervise_state_handle(&w.run, event, w.now_ms, input);
    note_actions(event, actions);
    w.n_releases += before != S(RELEASING) && w.run.state == S(RELEASING);
    must(!is_first_limit || w.run.state == before, "a guard has a second chance to answer");
    must(supervise_state_next_ms(&w.run) <= replaced_by_ms(),
         "a guard that doesn't answer by its limit is replaced in time");
    if ((actions & A(START_RENEWER)) != 0)
        step(below(3) > 0 ? E(RENEWER_STARTED) : E(RENEWER_FAILED),
             (struct supervise_input){.expires_ms = 0});
}

static void pass_time(int64_t ms)
{
    enum supervise_event event;
    int n = 0;

    w.now_ms += ms;
    while (supervise_state_due(&w.run, w.now_ms, &event) && n++ < SUPERVISE_EVENTS)
        step(event, (struct supervise_input){.expires_ms = 0});
    must(n <= SUPERVISE_EVENTS, "a deadline that was handled isn't due any more");
    must(w.now_ms <= replaced_by_ms(),
         "a guard that doesn't answer by its limit is replaced in time");
}

/* Draw how much time passes: mostly little, sometimes up to a deadline, sometimes much more. */
static int64_t draw_ms(void)
{
    int64_t next_ms = supervise_state_next_ms(&w.run);

    switch (below(8)) {
    case 0:
        return below(60000);
    case 1:
    case 2:
        if (next_ms != RLOCK_NEVER)
            return clock_later(0, next_ms - w.now_ms + below(3) - 1);
        return below(2000);
    default:
        return below(1000);
    }
}

/*
 * True if the walk may draw this event now. Deadlines become due in pass_time(), and a renewer is
 * started only when the table asks for one.
 */
static bool is_free(enum supervise_event event)
{
    if (!supervise_state_can_happen(w.run.state, event) || event >= E(RENEWER_DUE))
        return false;
    if (event == E(GUARD_PAUSED))
        return w.run.on_lost == ON_LOST_PAUSE;
    if (event == E(GIVEN_BACK) || event == E(BOUND_ENDED))
        return w.run.kind == SUPERVISE_BOUND;
    return event != E(RENEWER_STARTED) && event != E(RENEWER_FAILED);
}

/* Draw an event. Events that end a run are drawn rarely, so that runs are long. */
static enum supervise_event draw_event(void)
{
    enum supervise_event event;

    do
        event = (enum supervise_event)below(E(RENEWER_DUE));
    while (!is_free(event) ||
           (is_live(w.run.state) &&
            (event == E(COMMAND_ENDED) || event == E(GUARD_GONE) || event == E(NOT_STARTED) ||
             event == E(LOCK_LOST) || event == E(SERVER_GONE) || event == E(KILL_REFUSED) ||
             event == E(GIVEN_BACK) || event == E(BOUND_ENDED)) &&
            below(12) > 0));
    return event;
}

static void bring(enum supervise_event event)
{
    struct guard_news news = {.lease = w.extended,
                              .stopped_since_ms = w.now_ms - below(500),
                              .lease_ended_first = w.run.on_lost != ON_LOST_IGNORE && below(4) == 0,
                              .main_was_gone = below(16) == 0};
    bool is_message = event == E(GUARD_AGREED) || event == E(GUARD_PAUSED) ||
                      event == E(TERM_REFUSED) || event == E(KILL_REFUSED) ||
                      event == E(COMMAND_ENDED) || (event == E(NOT_STARTED) && below(2));
    struct supervise_input input = {.news = is_message ? &news : NULL,
                                    .is_behind = w.is_asked && below(3) == 0,
                                    .expires_ms = w.now_ms - below(2000) + 29698,
                                    .pid = (pid_t)(PID + below(2)),
                                    .reason = below(2) ? REASON_NOT_FOUND : REASON_LOST};

    step(event, input);
}

/*
 * Let only time pass: with --on-lost kill, or after a request, the run has to end although the
 * guard is silent.
 */
static void be_silent(void)
{
    bool must_end = w.run.on_lost == ON_LOST_KILL || (w.has_begun && w.is_asked);

    while (is_live(w.run.state) && supervise_state_next_ms(&w.run) != RLOCK_NEVER &&
           w.n_run_steps < 10 * STEPS_OF_A_RUN_MAX)
        pass_time(clock_later(0, supervise_state_next_ms(&w.run) - w.now_ms));
    if (must_end)
        must(!is_live(w.run.state), "a guard that doesn't answer by its limit is replaced in time");
}

static void end_run(void)
{
    if (is_live(w.run.state))
        bring(below(2) ? E(COMMAND_ENDED) : E(GUARD_GONE));
    if (w.run.state == S(REPLACING))
        bring(E(TREE_ENDED));
    if (w.run.state == S(RELEASING))
        bring(below(4) ? E(RELEASED) : E(LOCK_MISSING));
}

static void check_end(void)
{
    const struct supervision *run = &w.run;

    must(run->state == S(DONE), "the run is done after some time");
    must(w.n_lost_told == (run->lease != SUPERVISE_LEASE_HELD) ||
             (w.is_given_back && w.n_lost_told == 0),
         "a lost lock is reported exactly once");
    if (run->has_run)
        must((run->reason == REASON_LOST) == w.is_unproven,
             "the exit reason is lost if and only if the lease was not proven for the whole run");
    must(run->paused_ms == w.paused_ms, "the paused time is the sum of all pauses");
    must(w.n_releases == !(w.is_server_gone || w.is_given_back),
         "the release is tried once, or never for a lock that is gone for good");
}

static void walk_once(void)
{
    int64_t max_hold_ms = below(2) ? 1 + below(60000) : 0;
    int64_t n = below(STEPS_OF_A_RUN_MAX / 4);

    w.now_ms = GRANTED_MS + below(100);
    w.frozen_since_ms = w.paused_ms = 0;
    w.answer_by_ms = RLOCK_NEVER;
    w.has_begun = w.is_asked = w.is_unproven = w.is_server_gone = w.is_given_back = w.was_late =
        false;
    w.n_lost_told = w.n_releases = w.n_run_steps = 0;
    supervise_state_init(&w.run, below(4) ? SUPERVISE_COMMAND : SUPERVISE_BOUND, &grant, GRANTED_MS,
                         (enum on_lost)below(ON_LOST_IGNORE + 1), max_hold_ms);
    w.extended = supervise_state_deadlines(&w.run);
    while (n-- > 0 && w.run.state != S(DONE)) {
        pass_time(draw_ms());
        if (w.run.state != S(DONE))
            bring(draw_event());
    }
    if (below(2))
        be_silent();
    end_run();
    check_end();
}

static void test_walk(void)
{
    enum supervise_state state;
    int n_missed = 0;

    while (w.n_steps < STEPS)
        walk_once();
    okf(w.n_broken == 0, "%d random steps break no promise", STEPS);
    for (state = 0; state < SUPERVISE_STATES; state++)
        for (int i = 0; i < SUPERVISE_EVENTS; i++)
            n_missed +=
                supervise_state_can_happen(state, (enum supervise_event)i) && !w.visited[state][i];
    is_int(n_missed, 0, "the random walk visits every cell of the table");
}

int main(int argc, char **argv)
{
    chance_seed(argc, argv);
    RUN_ALL(test_cells, test_too_short_a_lease, test_renewal_after_the_end, test_renewer_times,
            test_silent_guard, test_slow_exec, test_answers, test_late_guard, test_agreed,
            test_bound, test_look, test_hold, test_walk);
    return done_testing();
}
