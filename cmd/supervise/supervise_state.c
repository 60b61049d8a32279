/* SPDX-License-Identifier: MIT */
/*
 * supervise_state: what a supervised run does next, as a table of states and events.
 *
 * The guard and this process each have a timer for the lease's end. After a renewal this process
 * sends the guard the new deadlines, which are `agreed` when the guard has answered. If the command
 * has not ended soon after `agreed.kill_ms`, or the guard doesn't answer a request, this process
 * kills the guard and the command. (The guard may be in order, and only a process slow to end.)
 */
#include "supervise/supervise_state.h"

#include "base/clock.h"
/*
 * The renewer must run before half of the time to the first renewal is over. If its thread could
 * not be started early (RENEWER_AFTER_MS), this process tries again then, and reports a failure.
 */
#define RENEWER_PART 2
/*
 * How long after the grant the renewer starts. A command that ends earlier needs no thread. A
 * longer command needs the thread early, as the renewer also asks a Cluster for its other nodes,
 * and has to know them before the first node fails.
 */
#define RENEWER_AFTER_MS 100
/*
 * How long the guard has to answer, and once more after this process has asked again: if the whole
 * machine stood still, this process may go on before the guard. The guard answers before it acts,
 * so a large tree needs no more time.
 */
#define ANSWER_MS 5000

typedef enum supervise_state transition(struct supervision *run);

/* ---- computing deadlines ---- */

/* How long the command has from TERM, or from the begin of freezing, to KILL. */
static int64_t grace_ms(const struct supervision *run)
{
    const struct rlock_timing *timing = &run->timing;

    return run->on_lost == ON_LOST_PAUSE ? clock_later(timing->reply_ms, timing->kill_margin_ms)
                                         : timing->grace_ms;
}

struct deadlines supervise_state_deadlines(const struct supervision *run)
{
    if (run->on_lost == ON_LOST_IGNORE)
        return (struct deadlines){RLOCK_NEVER, RLOCK_NEVER};
    return deadlines_of_lease(run->expires_ms, run->timing.kill_margin_ms, grace_ms(run));
}

/* Which actions send the guard a request. A bound process gets its signals from this process. */
static unsigned requests(const struct supervision *run)
{
    if (run->kind == SUPERVISE_COMMAND)
        return SUPERVISE_ACTION_EXTEND_GUARD | SUPERVISE_ACTION_PASS_SIGNAL |
               SUPERVISE_ACTION_END_COMMAND;
    return run->on_lost == ON_LOST_IGNORE
               ? 0 /* there is no guard */
               : SUPERVISE_ACTION_EXTEND_GUARD | SUPERVISE_ACTION_END_COMMAND;
}

/*
 * Called after each event. The guard has to answer each request in time, except START, as execve(2)
 * may take long. While the guard can't kill a process, it repeats GUARD_NEWS_REFUSED with each
 * KILL: if the guard is silent then, it hangs.
 */
static void expect_answer(struct supervision *run)
{
    bool expects = (run->actions & requests(run)) != 0;

    if (run->in.news != NULL) {
        run->has_begun = true;
        run->was_late = false;
        run->answer_by_ms = RLOCK_NEVER;
        expects |= run->in.is_behind || run->state == SUPERVISE_STATE_UNKILLABLE;
    }
    if (expects && run->has_begun && run->answer_by_ms == RLOCK_NEVER)
        run->answer_by_ms = run->in.now_ms + ANSWER_MS;
}

/* When the command must have ended or been frozen; RLOCK_NEVER: it is frozen, or may run on. */
static int64_t ended_by_ms(const struct supervision *run)
{
    if (run->frozen_since_ms != 0 || run->state == SUPERVISE_STATE_UNKILLABLE ||
        run->agreed.kill_ms == RLOCK_NEVER)
        return RLOCK_NEVER;
    return run->agreed.kill_ms + run->timing.kill_margin_ms / 2;
}

/*
 * When to report the lock as lost and to end the command, if no renewal comes. Never with --on-lost
 * pause: the guard freezes the command, and a late renewal may still prove that the lock is ours.
 */
static int64_t lease_due_ms(const struct supervision *run)
{
    if (run->on_lost == ON_LOST_PAUSE || run->lease != SUPERVISE_LEASE_HELD ||
        run->kind == SUPERVISE_HOLD)
        return RLOCK_NEVER;
    return clock_earlier(run->agreed.term_ms, run->expires_ms);
}

/*
 * From when on to look at the tree of a bound process; RLOCK_NEVER: it isn't to be ended. The guard
 * sends TERM at the same time at which this process sees that the lease is due, so this process
 * looks some time before.
 */
static int64_t look_from_ms(const struct supervision *run)
{
    if (run->kind != SUPERVISE_BOUND || run->on_lost == ON_LOST_IGNORE)
        return RLOCK_NEVER;
    return run->state == SUPERVISE_STATE_RUNNING ? run->agreed.term_ms - run->timing.kill_margin_ms
                                                 : 0;
}

static int64_t due_ms(const struct supervision *run, enum supervise_event event)
{
    if (!supervise_state_can_happen(run->state, event))
        return RLOCK_NEVER;
    if (event == SUPERVISE_EVENT_RENEWER_DUE)
        return run->renewer_at_ms;
    if (event == SUPERVISE_EVENT_LEASE_DUE)
        return lease_due_ms(run);
    if (event == SUPERVISE_EVENT_LOOK_DUE)
        return clock_later(look_from_ms(run), run->look_again_ms);
    if (event == SUPERVISE_EVENT_MAX_HOLD_DUE)
        return run->max_hold_at_ms;
    return clock_earlier(ended_by_ms(run), run->answer_by_ms);
}

int64_t supervise_state_next_ms(const struct supervision *run)
{
    int64_t next_ms = RLOCK_NEVER;
    enum supervise_event event;

    for (event = SUPERVISE_EVENT_RENEWER_DUE; event < SUPERVISE_EVENTS; event++)
        next_ms = clock_earlier(next_ms, due_ms(run, event));
    return next_ms;
}

bool supervise_state_due(const struct supervision *run, int64_t now_ms, enum supervise_event *event)
{
    for (*event = SUPERVISE_EVENT_RENEWER_DUE; *event < SUPERVISE_EVENTS; ++*event)
        if (now_ms >= due_ms(run, *event))
            return true;
    return false;
}

/* ---- functions that several cells call ---- */

/* Of several reasons to exit the gravest counts: lost lock, then failed guard, then --max-hold. */
static void end_with(struct supervision *run, enum exit_reason reason)
{
    static const int weight[EXIT_REASONS] = {
        [REASON_MAX_HOLD] = 1, [REASON_SYSTEM] = 2, [REASON_LOST] = 3};

    if (weight[reason] > weight[run->reason])
        run->reason = reason;
}

/* Note that the lock was lost, for the message to the user. False: it was lost before. */
static bool note_loss(struct supervision *run, enum supervise_loss loss)
{
    end_with(run, REASON_LOST);
    if (run->lease != SUPERVISE_LEASE_HELD)
        return false;
    run->lease = SUPERVISE_LEASE_LOST;
    run->loss = loss;
    run->actions |= SUPERVISE_ACTION_SAY_LOST;
    return true;
}

static enum supervise_loss loss_by_time(const struct supervision *run)
{
    return run->expires_ms - run->timing.kill_margin_ms > run->agreed.kill_ms
               ? SUPERVISE_LOSS_GUARD_SILENT
               : SUPERVISE_LOSS_NOT_RENEWED;
}

static enum supervise_state end_command(struct supervision *run, int64_t kill_at_ms)
{
    run->kill_at_ms = kill_at_ms;
    run->actions |= SUPERVISE_ACTION_END_COMMAND;
    if (run->kind == SUPERVISE_BOUND)
        run->actions |= SUPERVISE_ACTION_LOOK;
    return run->state == SUPERVISE_STATE_UNKILLABLE ? SUPERVISE_STATE_UNKILLABLE
                                                    : SUPERVISE_STATE_ENDING;
}

/*
 * With --on-lost ignore a command runs on after a loss, and rlock waits to exit with its status.
 * The status of a bound process goes to its parent, and a hold has no process: so rlock doesn't
 * wait.
 */
static enum supervise_state leave(const struct supervision *run, enum supervise_state next)
{
    return run->kind != SUPERVISE_COMMAND && run->on_lost == ON_LOST_IGNORE
               ? SUPERVISE_STATE_RELEASING
               : next;
}

static enum supervise_state lose(struct supervision *run, enum supervise_loss loss)
{
    if (!note_loss(run, loss) || run->on_lost == ON_LOST_IGNORE)
        return run->state;
    return end_command(run,
                       clock_earlier(run->in.now_ms + run->timing.grace_ms, run->agreed.kill_ms));
}

/* The command runs again after a pause, or has ended: add up how long the pause was. */
static void end_pause(struct supervision *run)
{
    if (run->frozen_since_ms == 0)
        return;
    run->last_pause_ms = run->in.now_ms - run->frozen_since_ms;
    run->paused_ms += run->last_pause_ms;
    run->frozen_since_ms = 0;
}

static void note_refused(struct supervision *run)
{
    if (run->refused_pid == run->in.pid)
        return;
    run->refused_pid = run->in.pid;
    run->actions |= SUPERVISE_ACTION_SAY_REFUSED;
}

/* ---- cells of the table: before the command is started ---- */

/* The reason `run->in.reason` outweighs even a lost lock: the command has not run at all. */
static enum supervise_state not_started(struct supervision *run)
{
    run->reason = run->in.reason;
    run->actions |= SUPERVISE_ACTION_DISMISS_GUARD;
    if (run->in.news != NULL)
        run->actions |= SUPERVISE_ACTION_SAY_NOT_STARTED;
    return SUPERVISE_STATE_RELEASING;
}

/* ---- cells of the table: the lease is renewed or lost ---- */

/*
 * Send the new deadlines to the guard, even if the renewal came late: the guard decides whether the
 * command may run on. With --on-lost ignore the guard has no deadlines: the lock was lost if the
 * renewal was sent after the lease's end. That is no loss to a hold: nothing ran, and the renewer
 * restores the key only if nobody else had the lock meanwhile.
 */
static enum supervise_state renew(struct supervision *run)
{
    if (run->on_lost == ON_LOST_IGNORE && run->kind != SUPERVISE_HOLD &&
        run->in.sent_ms >= run->expires_ms)
        note_loss(run, loss_by_time(run));
    run->expires_ms = run->in.expires_ms;
    run->actions |= SUPERVISE_ACTION_EXTEND_GUARD;
    return run->state;
}

/* The server has said that the lock isn't ours. */
static enum supervise_state lose_as_told(struct supervision *run)
{
    return leave(run, lose(run, SUPERVISE_LOSS_TOLD));
}

/* The private server keeps its locks in memory only, so the locks have ended with the server. */
static enum supervise_state lose_with_server(struct supervision *run)
{
    enum supervise_state next = lose(run, SUPERVISE_LOSS_SERVER_GONE);

    run->lease = SUPERVISE_LEASE_GONE;
    return leave(run, next);
}

static enum supervise_state give_back(struct supervision *run)
{
    run->lease = SUPERVISE_LEASE_GONE;
    return SUPERVISE_STATE_RELEASING;
}

static enum supervise_state lose_by_time(struct supervision *run)
{
    return lose(run, loss_by_time(run));
}

static enum supervise_state look(struct supervision *run)
{
    run->look_again_ms = run->in.now_ms + DEADLINES_LOOK_MS;
    run->actions |= SUPERVISE_ACTION_LOOK;
    return run->state;
}

static enum supervise_state end_by_max_hold(struct supervision *run)
{
    run->max_hold_at_ms = RLOCK_NEVER;
    run->actions |= SUPERVISE_ACTION_SAY_MAX_HOLD;
    if (run->kind == SUPERVISE_HOLD)
        return SUPERVISE_STATE_RELEASING;
    end_with(run, REASON_MAX_HOLD);
    return end_command(run, run->in.now_ms + run->timing.grace_ms);
}

/* ---- cells of the table: the renewer starts ---- */

static enum supervise_state start_renewer(struct supervision *run)
{
    run->actions |= SUPERVISE_ACTION_START_RENEWER;
    return run->state;
}

static enum supervise_state note_renewer(struct supervision *run)
{
    run->renewer_at_ms = RLOCK_NEVER;
    return run->state;
}

static enum supervise_state retry_renewer(struct supervision *run)
{
    if (run->in.now_ms < run->renewer_needed_ms) {
        run->renewer_at_ms = run->renewer_needed_ms;
        return run->state;
    }
    run->renewer_at_ms = run->in.now_ms + run->timing.reply_ms;
    run->actions |= SUPERVISE_ACTION_SAY_NO_RENEWER;
    return run->state;
}

/* ---- cells of the table: messages of the guard, and the command's end ---- */

static enum supervise_state pass_signal(struct supervision *run)
{
    if (run->kind == SUPERVISE_HOLD)
        return SUPERVISE_STATE_RELEASING;
    run->actions |= SUPERVISE_ACTION_PASS_SIGNAL;
    return run->state;
}

static enum supervise_state agree(struct supervision *run)
{
    run->agreed = run->in.news->lease;
    if (run->frozen_since_ms != 0)
        run->actions |= SUPERVISE_ACTION_SAY_RESUMED;
    if (run->kind == SUPERVISE_BOUND && run->in.now_ms < look_from_ms(run))
        run->actions |= SUPERVISE_ACTION_FORGET;
    end_pause(run);
    return run->state == SUPERVISE_STATE_PAUSED ? SUPERVISE_STATE_RUNNING : run->state;
}

/* The guard has frozen the command, or answers that it is still frozen. */
static enum supervise_state pause_command(struct supervision *run)
{
    if (run->frozen_since_ms == 0) {
        run->frozen_since_ms = run->in.news->stopped_since_ms;
        run->actions |= SUPERVISE_ACTION_SAY_PAUSED;
    }
    return run->state == SUPERVISE_STATE_RUNNING ? SUPERVISE_STATE_PAUSED : run->state;
}

static enum supervise_state tell_refused(struct supervision *run)
{
    note_refused(run);
    return run->state;
}

/*
 * The kernel refuses KILL to a process of the command, for example to one that sudo runs as root.
 * So the command runs until it ends by itself. Until then the renewer renews the lock, if we still
 * hold it, so that no other process gets the lock.
 */
static enum supervise_state wait_for_end(struct supervision *run)
{
    end_with(run, REASON_LOST);
    note_refused(run);
    return run->state == SUPERVISE_STATE_REPLACING ? SUPERVISE_STATE_REPLACING
                                                   : SUPERVISE_STATE_UNKILLABLE;
}

/*
 * The command has ended. If the lease ended first, the command may have run beside another holder
 * of the lock, so rlock reports the loss instead of the command's exit status.
 */
static enum supervise_state finish(struct supervision *run)
{
    run->has_run = true;
    run->actions |= SUPERVISE_ACTION_DISMISS_GUARD;
    end_pause(run);
    if (run->in.news->lease_ended_first || run->in.news->stopped_since_ms >= run->expires_ms)
        note_loss(run, loss_by_time(run));
    if (run->in.news->main_was_gone)
        note_loss(run, SUPERVISE_LOSS_GUARD_ALONE);
    return SUPERVISE_STATE_RELEASING;
}

/*
 * Before the time of TERM nobody ends a bound process: it has ended by itself, and its descendants
 * run on. Later the guard may have ended it, and tells when the whole tree has ended. A guard that
 * sends TERM earlier, to a large tree, tells the earlier time first.
 */
static enum supervise_state leave_bound(struct supervision *run)
{
    if (run->in.now_ms >= run->agreed.term_ms)
        return run->state;
    run->has_run = true;
    if (run->in.now_ms >= run->expires_ms)
        note_loss(run, loss_by_time(run));
    return SUPERVISE_STATE_RELEASING;
}

static enum supervise_state replace_dead_guard(struct supervision *run)
{
    run->has_run = true;
    run->actions |= SUPERVISE_ACTION_SAY_GUARD_LOST;
    end_with(run, REASON_SYSTEM);
    end_pause(run);
    return SUPERVISE_STATE_REPLACING;
}

/*
 * The guard is silent. If the command should have ended, it may have run until now, longer than the
 * lease allows: the lock counts as lost. If only an answer is late, ask again: the kernel may have
 * lost a message for lack of memory.
 */
static enum supervise_state replace_silent_guard(struct supervision *run)
{
    if (run->in.now_ms >= ended_by_ms(run)) {
        note_loss(run, loss_by_time(run));
    } else if (!run->was_late) {
        run->was_late = true;
        run->answer_by_ms = run->in.now_ms + ANSWER_MS;
        run->actions |=
            run->kill_at_ms != 0 ? SUPERVISE_ACTION_END_COMMAND : SUPERVISE_ACTION_EXTEND_GUARD;
        return run->state;
    }
    return replace_dead_guard(run);
}

static enum supervise_state tree_ended(struct supervision *run)
{
    (void)run;
    return SUPERVISE_STATE_RELEASING;
}

/* ---- cells of the table: the release ---- */

/*
 * The server no longer has our lock. That is a loss only before the lease's end, and only if a
 * command has run: else nothing ran without the lock. The lock of a bound process or of a hold may
 * have been released by its token.
 */
static enum supervise_state miss_lock(struct supervision *run)
{
    if (run->kind == SUPERVISE_COMMAND && run->has_run && run->lease == SUPERVISE_LEASE_HELD &&
        run->in.now_ms < run->expires_ms)
        note_loss(run, SUPERVISE_LOSS_MISSING);
    return SUPERVISE_STATE_DONE;
}

static enum supervise_state released(struct supervision *run)
{
    (void)run;
    return SUPERVISE_STATE_DONE;
}

/* ---- the table of states and events ---- */

/* The cells that are the same in each state in which the command may run. */
#define LIVE_CELLS                                                                                \
    [SUPERVISE_EVENT_SIGNAL] = pass_signal, [SUPERVISE_EVENT_RENEWED] = renew,                    \
    [SUPERVISE_EVENT_LOCK_LOST] = lose_as_told, [SUPERVISE_EVENT_SERVER_GONE] = lose_with_server, \
    [SUPERVISE_EVENT_GUARD_AGREED] = agree, [SUPERVISE_EVENT_GUARD_PAUSED] = pause_command,       \
    [SUPERVISE_EVENT_TERM_REFUSED] = tell_refused, [SUPERVISE_EVENT_KILL_REFUSED] = wait_for_end, \
    [SUPERVISE_EVENT_COMMAND_ENDED] = finish, [SUPERVISE_EVENT_GUARD_GONE] = replace_dead_guard,  \
    [SUPERVISE_EVENT_GUARD_LATE] = replace_silent_guard,                                          \
    [SUPERVISE_EVENT_RENEWER_STARTED] = note_renewer,                                             \
    [SUPERVISE_EVENT_RENEWER_FAILED] = retry_renewer,                                             \
    [SUPERVISE_EVENT_RENEWER_DUE] = start_renewer,                                                \
    [SUPERVISE_EVENT_MAX_HOLD_DUE] = end_by_max_hold

/* An event whose cell is NULL can't happen in that state; supervise_state_handle() ignores it. */
static transition *const transitions[SUPERVISE_STATES][SUPERVISE_EVENTS] = {
    [SUPERVISE_STATE_RUNNING] =
        {
            LIVE_CELLS,
            [SUPERVISE_EVENT_NOT_STARTED] = not_started,
            [SUPERVISE_EVENT_GIVEN_BACK] = give_back,
            [SUPERVISE_EVENT_BOUND_ENDED] = leave_bound,
            [SUPERVISE_EVENT_LEASE_DUE] = lose_by_time,
            [SUPERVISE_EVENT_LOOK_DUE] = look,
        },
    [SUPERVISE_STATE_PAUSED] = {LIVE_CELLS},
    [SUPERVISE_STATE_ENDING] =
        {
            LIVE_CELLS,
            [SUPERVISE_EVENT_NOT_STARTED] = not_started,
            [SUPERVISE_EVENT_LEASE_DUE] = lose_by_time,
            [SUPERVISE_EVENT_LOOK_DUE] = look,
        },
    [SUPERVISE_STATE_UNKILLABLE] =
        {
            LIVE_CELLS,
            [SUPERVISE_EVENT_LEASE_DUE] = lose_by_time,
            [SUPERVISE_EVENT_LOOK_DUE] = look,
        },
    [SUPERVISE_STATE_REPLACING] =
        {
            [SUPERVISE_EVENT_KILL_REFUSED] = wait_for_end,
            [SUPERVISE_EVENT_TREE_ENDED] = tree_ended,
            [SUPERVISE_EVENT_RENEWER_STARTED] = note_renewer,
            [SUPERVISE_EVENT_RENEWER_FAILED] = retry_renewer,
            [SUPERVISE_EVENT_RENEWER_DUE] = start_renewer,
        },
    [SUPERVISE_STATE_RELEASING] =
        {
            [SUPERVISE_EVENT_LOCK_MISSING] = miss_lock,
            [SUPERVISE_EVENT_RELEASED] = released,
        },
};

bool supervise_state_can_happen(enum supervise_state state, enum supervise_event event)
{
    return transitions[state][event] != NULL;
}

unsigned supervise_state_handle(struct supervision *run, enum supervise_event event, int64_t now_ms,
                                struct supervise_input input)
{
    run->actions = 0;
    if (!supervise_state_can_happen(run->state, event))
        return 0;
    run->in = input;
    run->in.now_ms = now_ms;
    run->state = transitions[run->state][event](run);
    expect_answer(run);
    if (run->state == SUPERVISE_STATE_RELEASING && run->lease == SUPERVISE_LEASE_GONE)
        run->state = SUPERVISE_STATE_DONE;
    return run->actions;
}

void supervise_state_init(struct supervision *run, enum supervise_kind kind,
                          const struct rlock_grant *grant, int64_t granted_ms, enum on_lost on_lost,
                          int64_t max_hold_ms)
{
    *run = (struct supervision){
        .state = SUPERVISE_STATE_RUNNING,
        .reason = REASON_GRANTED,
        .kind = kind,
        .on_lost = kind == SUPERVISE_HOLD ? ON_LOST_IGNORE : on_lost,
        .timing = grant->timing,
        .expires_ms = grant->expires_ms,
        /* counted from `sent_ms`, as the lease is: the reply may have taken long */
        .renewer_needed_ms = grant->sent_ms + grant->timing.renew_ms / RENEWER_PART,
        .max_hold_at_ms = max_hold_ms > 0 ? granted_ms + max_hold_ms : RLOCK_NEVER,
        .answer_by_ms = RLOCK_NEVER};
    run->renewer_at_ms = clock_earlier(granted_ms + RENEWER_AFTER_MS, run->renewer_needed_ms);
    run->agreed = supervise_state_deadlines(run);
}
