/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_supervise: the table of states and events of a run, tested without processes or waits.
 *
 * First the test checks each cell of the table by itself. Then it makes a random walk of a million
 * steps on a fake clock: at each step a random event of the guard, the renewer, the server or the
 * kernel happens. The same seed makes the same walk: test_cmd_supervise SEED.
 */
#include "chance.h"
#include "supervise/supervise_state.h"
#include "tap.h"

#define SENT_MS 1000000
#define GRANTED_MS (SENT_MS + 10)
#define EXPIRES_MS (SENT_MS + 29698)
#define NOW_MS (SENT_MS + 5000)
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
    return state >= SUPERVISE_STATE_RUNNING && state <= SUPERVISE_STATE_UNKILLABLE;
}

/* ---- tests of each cell of the table ---- */

static const struct guard_news usual_news = {
    .kind = GUARD_NEWS_DONE, .lease = {NOW_MS + 20000, NOW_MS + 25000}, .frozen_since_ms = NOW_MS};

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
    } ways[SUPERVISE_STATES] = {
        [SUPERVISE_STATE_RUNNING] = {{0}, 0},
        [SUPERVISE_STATE_PAUSED] = {{SUPERVISE_EVENT_GUARD_PAUSED}, 1},
        [SUPERVISE_STATE_ENDING] = {{SUPERVISE_EVENT_MAX_HOLD_DUE}, 1},
        [SUPERVISE_STATE_UNKILLABLE] = {{SUPERVISE_EVENT_KILL_REFUSED}, 1},
        [SUPERVISE_STATE_REPLACING] = {{SUPERVISE_EVENT_GUARD_GONE}, 1},
        [SUPERVISE_STATE_RELEASING] = {{SUPERVISE_EVENT_COMMAND_ENDED}, 1},
        [SUPERVISE_STATE_DONE] = {{SUPERVISE_EVENT_COMMAND_ENDED, SUPERVISE_EVENT_RELEASED}, 2}};
    struct supervision run;

    supervise_state_init(&run, SUPERVISE_COMMAND, &grant, GRANTED_MS,
                         state == SUPERVISE_STATE_PAUSED ? ON_LOST_PAUSE : ON_LOST_KILL, 0);
    for (int i = 0; i < ways[state].n; i++)
        tell(&run, ways[state].event[i]);
    run.refused_pid = 0;
    return run;
}

#define E(event) SUPERVISE_EVENT_##event
#define S(state) SUPERVISE_STATE_##state
#define A(action) SUPERVISE_ACTION_##action
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
    {AT(RUNNING) | AT(ENDING), E(GUARD_LATE), S(REPLACING), A(SAY_LOST) | A(SAY_GUARD_LOST),
     REASON_LOST},
    {AT(PAUSED), E(GUARD_LATE), S(REPLACING), A(SAY_GUARD_LOST), REASON_SYSTEM},
    {AT(UNKILLABLE), E(GUARD_LATE), S(REPLACING), A(SAY_GUARD_LOST), REASON_LOST},
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

static void test_gone_server(void)
{
    struct supervision run = run_in(SUPERVISE_STATE_RUNNING);

    tell(&run, SUPERVISE_EVENT_SERVER_GONE);
    tell(&run, SUPERVISE_EVENT_COMMAND_ENDED);
    is_int(run.state, SUPERVISE_STATE_DONE);
}

/* rlock reports why the command didn't start, even after it has reported the lock as lost. */
static void test_too_short_a_lease(void)
{
    struct supervise_input input = {.news = &usual_news, .reason = REASON_LOST};
    struct supervision run = run_in(SUPERVISE_STATE_RUNNING);
    unsigned actions = supervise_state_handle(&run, SUPERVISE_EVENT_NOT_STARTED, NOW_MS, input);

    ok((actions & SUPERVISE_ACTION_SAY_NOT_STARTED) != 0);
    run = run_in(SUPERVISE_STATE_RUNNING);
    tell(&run, SUPERVISE_EVENT_LEASE_DUE);
    actions = supervise_state_handle(&run, SUPERVISE_EVENT_NOT_STARTED, NOW_MS, input);
    ok((actions & SUPERVISE_ACTION_SAY_NOT_STARTED) != 0);
    run = run_in(SUPERVISE_STATE_RUNNING);
    input = (struct supervise_input){.reason = REASON_INTERRUPTED};
    actions = supervise_state_handle(&run, SUPERVISE_EVENT_NOT_STARTED, NOW_MS, input);
    ok(actions == SUPERVISE_ACTION_DISMISS_GUARD && run.state == SUPERVISE_STATE_RELEASING);
    is_int(run.reason, REASON_INTERRUPTED, "a signal came before the guard was asked");
}

/*
 * When rlock continues after a stop, the renewer's thread may renew the lease before the main
 * thread sees that the lease has ended.
 */
static void test_renewal_after_the_end(void)
{
    struct supervision run = run_in(SUPERVISE_STATE_RUNNING);
    struct supervise_input late = {.sent_ms = run.expires_ms, .expires_ms = run.expires_ms + 9000};
    unsigned actions;

    run.on_lost = ON_LOST_IGNORE;
    actions = supervise_state_handle(&run, SUPERVISE_EVENT_RENEWED, late.sent_ms + 1, late);
    ok((actions & SUPERVISE_ACTION_SAY_LOST) != 0);
    is_int(run.reason, REASON_LOST);
    run = run_in(SUPERVISE_STATE_RUNNING);
    run.on_lost = ON_LOST_IGNORE;
    late.sent_ms--;
    actions = supervise_state_handle(&run, SUPERVISE_EVENT_RENEWED, late.sent_ms + 2, late);
    ok((actions & SUPERVISE_ACTION_SAY_LOST) == 0);
}

static void test_renewer_times(void)
{
    struct supervision run = run_in(SUPERVISE_STATE_RUNNING);
    struct supervise_input none = {.expires_ms = 0};
    enum supervise_event event;

    is_int(supervise_state_next_ms(&run), GRANTED_MS + 100);
    ok(supervise_state_due(&run, GRANTED_MS + 100, &event) && event == SUPERVISE_EVENT_RENEWER_DUE);
    ok(!supervise_state_due(&run, GRANTED_MS + 99, &event), "the renewer is not due earlier");
    is_int(supervise_state_handle(&run, SUPERVISE_EVENT_RENEWER_FAILED, GRANTED_MS + 100, none), 0);
    is_int(supervise_state_next_ms(&run), SENT_MS + 5000);
    is_int(supervise_state_handle(&run, SUPERVISE_EVENT_RENEWER_FAILED, SENT_MS + 5000, none),
           SUPERVISE_ACTION_SAY_NO_RENEWER);
    is_int(supervise_state_next_ms(&run), SENT_MS + 7000);
    supervise_state_init(&run, SUPERVISE_COMMAND, &grant, SENT_MS + 8000, ON_LOST_KILL, 0);
    is_int(supervise_state_next_ms(&run), SENT_MS + 5000);
}

/* ---- what rlock supervises without having started it ---- */

static struct supervision run_of(enum supervise_kind kind, enum on_lost on_lost)
{
    struct supervision run;

    supervise_state_init(&run, kind, &grant, GRANTED_MS, on_lost, 60000);
    return run;
}

static void test_bound(void)
{
    struct supervision run = run_of(SUPERVISE_BOUND, ON_LOST_IGNORE);
    const struct supervise_input none = {.expires_ms = 0};

    is_int(tell(&run, SUPERVISE_EVENT_LEASE_DUE), SUPERVISE_ACTION_SAY_LOST);
    is_int(run.state, SUPERVISE_STATE_RUNNING);
    is_int(tell(&run, SUPERVISE_EVENT_LOCK_LOST), 0, "the loss is not reported again");
    is_int(run.state, SUPERVISE_STATE_RELEASING);
    run = run_of(SUPERVISE_BOUND, ON_LOST_KILL);
    tell(&run, SUPERVISE_EVENT_COMMAND_ENDED);
    is_int(tell(&run, SUPERVISE_EVENT_LOCK_MISSING), 0);
    is_int(run.reason, REASON_GRANTED, "the lock counts as held to the end");
    run = run_of(SUPERVISE_BOUND, ON_LOST_KILL);
    supervise_state_handle(&run, SUPERVISE_EVENT_BOUND_ENDED, run.agreed.term_ms, none);
    is_int(run.state, SUPERVISE_STATE_RUNNING);
    supervise_state_handle(&run, SUPERVISE_EVENT_BOUND_ENDED, run.agreed.term_ms - 1, none);
    ok(run.state == SUPERVISE_STATE_RELEASING && run.reason == REASON_GRANTED);
    run = run_of(SUPERVISE_BOUND, ON_LOST_IGNORE);
    supervise_state_handle(&run, SUPERVISE_EVENT_BOUND_ENDED, EXPIRES_MS, none);
    ok(run.state == SUPERVISE_STATE_RELEASING && run.reason == REASON_LOST);
}

/* What the main process must know if it has to kill the tree for a guard that is dead. */
static void test_look(void)
{
    struct supervision run = run_of(SUPERVISE_BOUND, ON_LOST_KILL);
    struct supervise_input input = {.news = &usual_news};
    enum supervise_event event;
    int64_t near_ms;

    tell(&run, SUPERVISE_EVENT_RENEWER_STARTED);
    run.max_hold_at_ms = RLOCK_NEVER;
    is_int(tell(&run, SUPERVISE_EVENT_GUARD_AGREED), SUPERVISE_ACTION_FORGET);
    near_ms = run.agreed.term_ms - run.timing.kill_margin_ms;
    is_int(supervise_state_next_ms(&run), near_ms, "shortly before TERM rlock looks at the tree");
    is_int(supervise_state_handle(&run, SUPERVISE_EVENT_LOOK_DUE, near_ms, input),
           SUPERVISE_ACTION_LOOK, "that is all it does");
    is_int(supervise_state_next_ms(&run), near_ms + 20, "and it looks again and again");
    is_int(supervise_state_handle(&run, SUPERVISE_EVENT_GUARD_AGREED, near_ms + 20, input), 0);
    ok(supervise_state_due(&run, run.agreed.term_ms, &event) && event == SUPERVISE_EVENT_LEASE_DUE);
    is_int(tell(&run, SUPERVISE_EVENT_LOCK_LOST),
           SUPERVISE_ACTION_LOOK | SUPERVISE_ACTION_END_COMMAND | SUPERVISE_ACTION_SAY_LOST);
    is_int(supervise_state_next_ms(&run), near_ms + 20, "and goes on looking until all have ended");
    run = run_of(SUPERVISE_COMMAND, ON_LOST_KILL);
    is_int(tell(&run, SUPERVISE_EVENT_LOCK_LOST),
           SUPERVISE_ACTION_END_COMMAND | SUPERVISE_ACTION_SAY_LOST);
}

static void test_hold(void)
{
    struct supervision run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    struct supervise_input late;

    is_int(tell(&run, SUPERVISE_EVENT_SIGNAL), 0, "a hold has no process for a signal");
    is_int(run.state, SUPERVISE_STATE_RELEASING, "so a signal ends the hold");
    run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    is_int(tell(&run, SUPERVISE_EVENT_MAX_HOLD_DUE), SUPERVISE_ACTION_SAY_MAX_HOLD);
    ok(run.state == SUPERVISE_STATE_RELEASING && run.reason == REASON_GRANTED);
    run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    is_int(tell(&run, SUPERVISE_EVENT_LOCK_LOST), SUPERVISE_ACTION_SAY_LOST);
    is_int(run.state, SUPERVISE_STATE_RELEASING, "a lost hold is over");
    run = run_of(SUPERVISE_HOLD, ON_LOST_KILL);
    tell(&run, SUPERVISE_EVENT_RENEWER_STARTED);
    is_int(supervise_state_next_ms(&run), GRANTED_MS + 60000);
    late = (struct supervise_input){.sent_ms = run.expires_ms, .expires_ms = run.expires_ms + 9000};
    is_int(supervise_state_handle(&run, SUPERVISE_EVENT_RENEWED, late.sent_ms + 1, late),
           SUPERVISE_ACTION_EXTEND_GUARD, "a lock that it got back is no loss");
    ok(run.lease == SUPERVISE_LEASE_HELD && run.expires_ms == late.expires_ms);
}

/* ---- a random walk over states and events ---- */

enum invariant {
    LOSS_TOLD_ONCE,
    END_ASKED_AT_ONCE,
    GUARD_REPLACED_IN_TIME,
    UNPROVEN_IS_76,
    IGNORE_ENDS_NOTHING,
    PAUSES_ADD_UP,
    RELEASED_ONCE,
    DONE_REACHED,
    NO_DEADLINE_LEFT
};

#define INVARIANTS (NO_DEADLINE_LEFT + 1)
#define STEPS 1000000
#define STEPS_OF_A_RUN_MAX 400

static const char *const names[INVARIANTS] = {
    [LOSS_TOLD_ONCE] = "a lost lock is reported exactly once",
    [END_ASKED_AT_ONCE] = "when the lock is lost, rlock asks the guard at once to end the command",
    [GUARD_REPLACED_IN_TIME] = "a guard that doesn't answer by its limit is replaced in time",
    [UNPROVEN_IS_76] =
        "the exit reason is lost if and only if the lease was not proven for the whole run",
    [IGNORE_ENDS_NOTHING] = "with --on-lost ignore only --max-hold ends the command",
    [PAUSES_ADD_UP] = "the paused time is the sum of all pauses",
    [RELEASED_ONCE] = "the release is tried once, or never for a lock that is gone for good",
    [DONE_REACHED] = "the run is done after some time",
    [NO_DEADLINE_LEFT] = "a deadline that was handled isn't due any more"};

struct walk {
    int64_t n_steps;
    int n_broken[INVARIANTS];
    bool visited[SUPERVISE_STATES][SUPERVISE_EVENTS];

    /*
     * One run, its fake clock, and what the test itself concludes from the events. The test doesn't
     * ask the table of supervise_state.c, so that it can check what the table does.
     */
    struct supervision run;
    int64_t now_ms;
    int64_t frozen_since_ms;   /* 0: the command isn't frozen */
    int64_t paused_ms;         /* the sum of all pauses that have ended */
    int64_t answer_by_ms;      /* if the command is frozen or can't be killed: when the guard must
                                  have sent its next message; or RLOCK_NEVER */
    struct deadlines extended; /* the deadlines that were sent to the guard last */
    bool end_is_asked;         /* the guard was asked to end the command */
    bool is_unproven;          /* the lease was not proven for the whole run */
    bool is_server_gone;
    bool is_given_back; /* another process has released the lock of a bound process */
    int n_lost_told;
    int n_releases;
    int n_run_steps;
};

static int64_t below(int64_t n)
{
    return chance_from(0, n - 1);
}

static void check(struct walk *w, enum invariant which, bool holds, enum supervise_event event)
{
    if (holds)
        return;
    if (w->n_broken[which]++ == 0)
        printf("# step %lld, event %d, now in state %d, on_lost %d: not so: %s\n",
               (long long)w->n_steps, event, w->run.state, w->run.on_lost, names[which]);
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void end_pause(struct walk *w)
{
    if (w->frozen_since_ms != 0)
        w->paused_ms += w->now_ms - w->frozen_since_ms;
    w->frozen_since_ms = 0;
    w->answer_by_ms = RLOCK_NEVER;
}

/* Records what the event means by the promises of the manual, not by the table under test. */
static void note_event(struct walk *w, enum supervise_event event,
                       const struct supervise_input *input)
{
    const struct guard_news *news = input->news;

    switch ((int)event) {
    case SUPERVISE_EVENT_LOCK_LOST:
    case SUPERVISE_EVENT_SERVER_GONE:
    case SUPERVISE_EVENT_LEASE_DUE:
    case SUPERVISE_EVENT_KILL_REFUSED:
        w->is_unproven = true;
        if (event == SUPERVISE_EVENT_KILL_REFUSED)
            w->answer_by_ms = w->now_ms + w->run.timing.renew_ms;
        w->is_server_gone = w->is_server_gone || event == SUPERVISE_EVENT_SERVER_GONE;
        break;
    case SUPERVISE_EVENT_GUARD_PAUSED:
        if (w->frozen_since_ms == 0)
            w->frozen_since_ms = news->frozen_since_ms;
        if (w->run.state == SUPERVISE_STATE_UNKILLABLE)
            w->answer_by_ms = w->now_ms + w->run.timing.renew_ms;
        else if (!w->end_is_asked) /* once asked for the end, the guard must report it */
            w->answer_by_ms = RLOCK_NEVER;
        else if (w->answer_by_ms == RLOCK_NEVER)
            w->answer_by_ms = w->now_ms + w->run.timing.kill_margin_ms;
        break;
    case SUPERVISE_EVENT_GUARD_AGREED:
        end_pause(w);
        if (w->run.state == SUPERVISE_STATE_UNKILLABLE)
            w->answer_by_ms = w->now_ms + w->run.timing.renew_ms;
        break;
    case SUPERVISE_EVENT_COMMAND_ENDED:
        w->is_unproven = w->is_unproven || news->lease_ended_first || news->main_was_gone ||
                         news->frozen_since_ms >= w->run.expires_ms;
        end_pause(w);
        break;
    case SUPERVISE_EVENT_GUARD_LATE:
        w->is_unproven = w->is_unproven || w->frozen_since_ms == 0;
        end_pause(w);
        break;
    case SUPERVISE_EVENT_GUARD_GONE:
        end_pause(w);
        break;
    case SUPERVISE_EVENT_GIVEN_BACK:
        w->is_given_back = true;
        break;
    case SUPERVISE_EVENT_LOCK_MISSING:
        w->is_unproven =
            w->is_unproven || (w->run.kind == SUPERVISE_COMMAND && w->now_ms < w->run.expires_ms);
        break;
    }
}

static void note_actions(struct walk *w, enum supervise_event event, unsigned actions)
{
    const struct supervision *run = &w->run;
    int64_t margin_ms = run->timing.kill_margin_ms;
    int64_t asked_ms = RLOCK_NEVER;

    if ((actions & SUPERVISE_ACTION_SAY_LOST) != 0) {
        check(w, LOSS_TOLD_ONCE, ++w->n_lost_told == 1, event);
        if (is_live(run->state) && run->on_lost != ON_LOST_IGNORE)
            check(w, END_ASKED_AT_ONCE,
                  (actions & SUPERVISE_ACTION_END_COMMAND) != 0 &&
                      run->kill_at_ms <= w->now_ms + run->timing.grace_ms &&
                      run->kill_at_ms <= run->agreed.kill_ms,
                  event);
    }
    if ((actions & SUPERVISE_ACTION_EXTEND_GUARD) != 0) {
        w->extended = supervise_state_deadlines(run);
        asked_ms = max(w->extended.kill_ms, w->now_ms);
    }
    if ((actions & SUPERVISE_ACTION_END_COMMAND) != 0) {
        asked_ms = w->now_ms;
        w->end_is_asked = true;
        check(w, IGNORE_ENDS_NOTHING,
              run->on_lost != ON_LOST_IGNORE || event == SUPERVISE_EVENT_MAX_HOLD_DUE, event);
    }
    if (w->frozen_since_ms != 0 && w->answer_by_ms == RLOCK_NEVER && asked_ms != RLOCK_NEVER)
        w->answer_by_ms = asked_ms + margin_ms;
}

/*
 * Returns when the main process must have replaced a guard that is silent. The test computes this
 * time from its own records, not by the table under test.
 */
static int64_t replaced_by_ms(const struct walk *w)
{
    const struct supervision *run = &w->run;

    if (!is_live(run->state))
        return RLOCK_NEVER;
    if (w->frozen_since_ms != 0 || run->state == SUPERVISE_STATE_UNKILLABLE)
        return w->answer_by_ms;
    return run->on_lost == ON_LOST_IGNORE ? RLOCK_NEVER
                                          : run->agreed.kill_ms + run->timing.kill_margin_ms;
}

static void step(struct walk *w, enum supervise_event event, struct supervise_input input)
{
    enum supervise_state before = w->run.state;
    unsigned actions;

    w->n_steps++;
    w->n_run_steps++;
    w->visited[before][event] = true;
    note_event(w, event, &input);
    actions = supervise_state_handle(&w->run, event, w->now_ms, input);
    note_actions(w, event, actions);
    w->n_releases +=
        before != SUPERVISE_STATE_RELEASING && w->run.state == SUPERVISE_STATE_RELEASING;
    check(w, GUARD_REPLACED_IN_TIME, supervise_state_next_ms(&w->run) <= replaced_by_ms(w), event);
    if ((actions & SUPERVISE_ACTION_START_RENEWER) != 0)
        step(w, below(3) > 0 ? SUPERVISE_EVENT_RENEWER_STARTED : SUPERVISE_EVENT_RENEWER_FAILED,
             (struct supervise_input){.expires_ms = 0});
}

static void pass_time(struct walk *w, int64_t ms)
{
    enum supervise_event event;
    int n = 0;

    w->now_ms += ms;
    while (supervise_state_due(&w->run, w->now_ms, &event) && n++ < SUPERVISE_EVENTS)
        step(w, event, (struct supervise_input){.expires_ms = 0});
    check(w, NO_DEADLINE_LEFT, n <= SUPERVISE_EVENTS, SUPERVISE_EVENT_SIGNAL);
    check(w, GUARD_REPLACED_IN_TIME, w->now_ms <= replaced_by_ms(w), SUPERVISE_EVENT_GUARD_LATE);
}

/* Draw how much time passes: mostly little, sometimes up to a deadline, sometimes much more. */
static int64_t draw_ms(struct walk *w)
{
    int64_t next_ms = supervise_state_next_ms(&w->run);

    switch (below(8)) {
    case 0:
        return below(60000);
    case 1:
    case 2:
        if (next_ms != RLOCK_NEVER)
            return max(0, next_ms - w->now_ms + below(3) - 1);
        return below(2000);
    default:
        return below(1000);
    }
}

/*
 * True if the walk may draw this event now. Deadlines become due in pass_time(), and a renewer is
 * started only when the table asks for one.
 */
static bool is_free(const struct walk *w, enum supervise_event event)
{
    if (!supervise_state_can_happen(w->run.state, event) || event >= SUPERVISE_EVENT_RENEWER_DUE)
        return false;
    if (event == SUPERVISE_EVENT_GUARD_PAUSED)
        return w->run.on_lost == ON_LOST_PAUSE;
    if (event == SUPERVISE_EVENT_GIVEN_BACK || event == SUPERVISE_EVENT_BOUND_ENDED)
        return w->run.kind == SUPERVISE_BOUND;
    return event != SUPERVISE_EVENT_RENEWER_STARTED && event != SUPERVISE_EVENT_RENEWER_FAILED;
}

/* Draw an event. Events that end a run are drawn rarely, so that runs are long. */
static enum supervise_event draw_event(struct walk *w)
{
    enum supervise_event event;

    do
        event = (enum supervise_event)below(SUPERVISE_EVENT_RENEWER_DUE);
    while (!is_free(w, event) ||
           (is_live(w->run.state) &&
            (event == SUPERVISE_EVENT_COMMAND_ENDED || event == SUPERVISE_EVENT_GUARD_GONE ||
             event == SUPERVISE_EVENT_NOT_STARTED || event == SUPERVISE_EVENT_LOCK_LOST ||
             event == SUPERVISE_EVENT_SERVER_GONE || event == SUPERVISE_EVENT_KILL_REFUSED ||
             event == SUPERVISE_EVENT_GIVEN_BACK || event == SUPERVISE_EVENT_BOUND_ENDED) &&
            below(12) > 0));
    return event;
}

static void bring(struct walk *w, enum supervise_event event)
{
    struct guard_news news = {.lease = w->extended,
                              .frozen_since_ms = w->now_ms - below(500),
                              .lease_ended_first =
                                  w->run.on_lost != ON_LOST_IGNORE && below(4) == 0,
                              .main_was_gone = below(16) == 0};
    struct supervise_input input = {.news = &news,
                                    .expires_ms = w->now_ms - below(2000) + 29698,
                                    .pid = (pid_t)(PID + below(2)),
                                    .reason = below(2) ? REASON_NOT_FOUND : REASON_LOST};

    step(w, event, input);
}

/* Let only time pass: with --on-lost kill, the run has to end although the guard is silent. */
static void be_silent(struct walk *w)
{
    while (is_live(w->run.state) && supervise_state_next_ms(&w->run) != RLOCK_NEVER &&
           w->n_run_steps < 10 * STEPS_OF_A_RUN_MAX)
        pass_time(w, max(0, supervise_state_next_ms(&w->run) - w->now_ms));
    if (w->run.on_lost == ON_LOST_KILL)
        check(w, GUARD_REPLACED_IN_TIME, !is_live(w->run.state), SUPERVISE_EVENT_GUARD_LATE);
}

static void end_run(struct walk *w)
{
    if (is_live(w->run.state))
        bring(w, below(2) ? SUPERVISE_EVENT_COMMAND_ENDED : SUPERVISE_EVENT_GUARD_GONE);
    if (w->run.state == SUPERVISE_STATE_REPLACING)
        bring(w, SUPERVISE_EVENT_TREE_ENDED);
    if (w->run.state == SUPERVISE_STATE_RELEASING)
        bring(w, below(4) ? SUPERVISE_EVENT_RELEASED : SUPERVISE_EVENT_LOCK_MISSING);
}

static void check_end(struct walk *w)
{
    const struct supervision *run = &w->run;

    check(w, DONE_REACHED, run->state == SUPERVISE_STATE_DONE, SUPERVISE_EVENT_RELEASED);
    check(w, LOSS_TOLD_ONCE,
          w->n_lost_told == (run->lease != SUPERVISE_LEASE_HELD) ||
              (w->is_given_back && w->n_lost_told == 0),
          SUPERVISE_EVENT_RELEASED);
    if (run->has_run)
        check(w, UNPROVEN_IS_76, (run->reason == REASON_LOST) == w->is_unproven,
              SUPERVISE_EVENT_RELEASED);
    check(w, PAUSES_ADD_UP, run->paused_ms == w->paused_ms, SUPERVISE_EVENT_RELEASED);
    check(w, RELEASED_ONCE, w->n_releases == !(w->is_server_gone || w->is_given_back),
          SUPERVISE_EVENT_RELEASED);
}

static void walk_once(struct walk *w)
{
    int64_t max_hold_ms = below(2) ? 1 + below(60000) : 0;
    int64_t n = below(STEPS_OF_A_RUN_MAX / 4);

    w->now_ms = GRANTED_MS + below(100);
    w->frozen_since_ms = w->paused_ms = 0;
    w->answer_by_ms = RLOCK_NEVER;
    w->end_is_asked = w->is_unproven = w->is_server_gone = w->is_given_back = false;
    w->n_lost_told = w->n_releases = w->n_run_steps = 0;
    supervise_state_init(&w->run, below(4) ? SUPERVISE_COMMAND : SUPERVISE_BOUND, &grant,
                         GRANTED_MS, (enum on_lost)below(ON_LOST_IGNORE + 1), max_hold_ms);
    w->extended = supervise_state_deadlines(&w->run);
    while (n-- > 0 && w->run.state != SUPERVISE_STATE_DONE) {
        pass_time(w, draw_ms(w));
        if (w->run.state != SUPERVISE_STATE_DONE)
            bring(w, draw_event(w));
    }
    if (below(2))
        be_silent(w);
    end_run(w);
    check_end(w);
}

static void test_walk(void)
{
    static struct walk w;
    enum supervise_state state;
    int n_missed = 0;

    while (w.n_steps < STEPS)
        walk_once(&w);
    for (int i = 0; i < INVARIANTS; i++)
        okf(w.n_broken[i] == 0, "%d random steps: %s", STEPS, names[i]);
    for (state = 0; state < SUPERVISE_STATES; state++)
        for (int i = 0; i < SUPERVISE_EVENTS; i++)
            n_missed +=
                supervise_state_can_happen(state, (enum supervise_event)i) && !w.visited[state][i];
    is_int(n_missed, 0, "the random walk visits every cell of the table");
}

int main(int argc, char **argv)
{
    chance_seed(argc, argv);
    RUN_ALL(test_cells, test_gone_server, test_too_short_a_lease, test_renewal_after_the_end,
            test_renewer_times, test_bound, test_look, test_hold, test_walk);
    return done_testing();
}
