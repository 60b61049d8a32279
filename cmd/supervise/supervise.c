/* SPDX-License-Identifier: MIT */
/*
 * supervise: runs the command under a grant, releases the lock, and returns the reason to exit.
 *
 * The table in supervise_state.c decides what to do; this file receives the events and carries out
 * the actions. A fork copies only the thread that forks, so the guard is forked before the
 * renewer's thread starts, 0.1 s after the grant.
 */
#include "supervise/supervise.h"

#include "base/clock.h"
#include "options/mistake.h"
#include "options/units.h"
#include "output/wall_time.h"
#include "process/child.h"
#include "process/fds.h"
#include "process/timer.h"
#include "wire/url.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* how long a process for which nobody waits tries to release: a forked one, or the renew daemon */
#define RELEASE_LATER_MS 10000

struct supervisor {
    const struct supervise_plan *plan;
    struct session *session; /* plan->session */
    struct supervise_result *result;
    struct guard_client *guard;
    struct supervision run;
    int renewer;       /* readable when the renewer's thread has sent an event; -1: none runs */
    char trouble[512]; /* why the last renewal failed; "": it succeeded */
    int timer;         /* -1: not open */
    struct signal_seen signal;     /* the signal that SUPERVISE_ACTION_PASS_SIGNAL passes on */
    unsigned unsaid;               /* enum supervise_action: messages that are not written yet */
    struct guard_news last;        /* the guard's last message; all zero: not received yet */
    struct rlock_error no_renewer; /* why the renewer could not be started */
    char lost_why[512];            /* how the lock was lost, as the renewer's event says it */
    struct rlock_loss loss;        /* why the lock was lost, and who has it now or broke it */
    /* a message said that the command is being ended; another one must say when it has ended */
    bool has_announced_end;
    char guard_fate[100]; /* how the guard failed, as text */
};

/* ---- messages to the user ---- */

/* False: the lock is for a process that runs already, or for a hold. */
static bool runs_command(const struct supervisor *s)
{
    return s->plan->kind == SUPERVISE_COMMAND;
}

static void say(const struct supervisor *s, enum report_level level, enum event what,
                const char *why, const char *hint)
{
    report_event(&s->session->report, level, what, why, hint);
}

/* Writes to `why` that no renewal came; with --on-lost pause also that freezing failed. */
static void put_overdue(const struct supervisor *s, char *why, size_t room)
{
    bool was_not_frozen = s->run.on_lost == ON_LOST_PAUSE && s->last.lease_ended_first;

    snprintf(why, room, "no renewal was confirmed in time%s%s%s", s->trouble[0] != '\0' ? ": " : "",
             s->trouble, was_not_frozen ? ", and the command could not be frozen in time" : "");
}

/*
 * Writes to `ending` and to `hint` what rlock does to the command: the command got TERM now, and
 * gets KILL at a known time; a frozen command gets KILL at once; or the command has ended.
 */
static void put_ending(const struct supervisor *s, struct ending *ending, char hint[300])
{
    const char *command = guard_command(s->plan->guard_plan);
    bool is_frozen = s->run.frozen_since_ms != 0;
    char steps[ENDING_BYTES];

    *ending = s->last.ending;
    if (s->run.state < SUPERVISE_STATE_RELEASING)
        *ending = (struct ending){.term_ms = is_frozen ? 0 : rlock_clock_ms(),
                                  .kill_ms = is_frozen ? rlock_clock_ms() : s->run.kill_at_ms};
    ending_text(steps, ending);
    snprintf(hint, 300,
             s->run.state >= SUPERVISE_STATE_RELEASING ? "%.64s: %s"
             : is_frozen                               ? "%.64s is being ended: %s"
                         : "%.64s is being ended: %s unless it ends before",
             command, steps);
}

/* With --on-lost ignore: write to `hint` that the command runs on, and the time of day. */
static void put_running(const struct supervisor *s, char hint[300])
{
    char now[WALL_TIME_BYTES];

    wall_time_local(now, wall_time_now_ms());
    snprintf(hint, 300, "at %s: %.64s runs on (--on-lost ignore)", now,
             guard_command(s->plan->guard_plan));
}

/* Why the lock was lost, as a word for JSON. */
static const char *cause_of(const struct supervisor *s)
{
    static const char *const names[] = {[SUPERVISE_LOSS_NOT_RENEWED] = "not-renewed",
                                        [SUPERVISE_LOSS_GUARD_SILENT] = "guard-silent",
                                        [SUPERVISE_LOSS_TOLD] = "gone",
                                        [SUPERVISE_LOSS_SERVER_GONE] = "server-gone",
                                        [SUPERVISE_LOSS_GUARD_ALONE] = "guard-alone",
                                        [SUPERVISE_LOSS_MISSING] = "missing"};

    if (s->run.loss == SUPERVISE_LOSS_TOLD && s->loss.cause == RLOCK_LOSS_HELD)
        return "held";
    return s->run.loss == SUPERVISE_LOSS_TOLD && s->loss.cause == RLOCK_LOSS_BROKEN
               ? "broken"
               : names[s->run.loss];
}

static void say_loss(const struct supervisor *s)
{
    static const char *const causes[] = {
        [SUPERVISE_LOSS_GUARD_SILENT] = "the process that guards the command doesn't answer",
        [SUPERVISE_LOSS_SERVER_GONE] = "the private server has ended, and with it the lock",
        [SUPERVISE_LOSS_GUARD_ALONE] =
            "the process that guards the command took rlock for dead, and ended the command",
        [SUPERVISE_LOSS_MISSING] =
            "when the command had ended, the server no longer had the lock, or another owner did"};
    char hint[300] = "the hold is over";
    char why[640];
    struct lost lost = {.cause = cause_of(s), .why = why, .hint = hint, .loss = &s->loss};
    bool runs_on = s->run.on_lost == ON_LOST_IGNORE;

    if (s->plan->kind != SUPERVISE_HOLD) {
        lost.subject = guard_subject(s->plan->guard_plan);
        if (runs_on && (s->run.state < SUPERVISE_STATE_RELEASING || !runs_command(s)))
            put_running(s, hint);
        else
            put_ending(s, &lost.ending, hint);
    }
    if (s->run.loss == SUPERVISE_LOSS_NOT_RENEWED)
        put_overdue(s, why, sizeof why);
    else
        lost.why = s->run.loss == SUPERVISE_LOSS_TOLD ? s->lost_why : causes[s->run.loss];
    say_lost(&s->session->report, &lost);
}

/* Report what was done to the command, if a message has announced it. */
static void say_ended(const struct supervisor *s)
{
    const char *command = guard_command(s->plan->guard_plan);
    struct message message = {.what = EVENT_ENDED};
    char steps[ENDING_BYTES];
    char why[300];

    if (!s->has_announced_end || s->last.ending.ended_ms == 0)
        return;
    ending_text(steps, &s->last.ending);
    snprintf(why, sizeof why, "%.64s: %s", command, steps);
    message.why = why;
    message_add(&message, guard_subject(s->plan->guard_plan));
    ending_add_facts(&message, &s->last.ending);
    report_say(&s->session->report, REPORT_NOTICE, message);
}

/* The bound process has ended by itself. */
static void say_bound_ended(const struct supervisor *s)
{
    char why[100];

    snprintf(why, sizeof why, "%.64s has ended", guard_command(s->plan->guard_plan));
    report_say(&s->session->report, REPORT_STEP,
               (struct message){
                   .what = EVENT_ENDED, .why = why, .facts = {guard_subject(s->plan->guard_plan)}});
}

static void say_paused(const struct supervisor *s)
{
    char why[640];

    put_overdue(s, why, sizeof why);
    say(s, REPORT_NOTICE, EVENT_PAUSED, why,
        "the command goes on if rlock finds that it still has the lock");
}

static void say_resumed(const struct supervisor *s)
{
    int64_t ms = s->run.last_pause_ms;
    char why[100];

    snprintf(why, sizeof why, "after %lld.%01d s, as rlock still has the lock",
             (long long)(ms / 1000), (int)(ms % 1000 / 100));
    report_say(&s->session->report, REPORT_NOTICE,
               (struct message){
                   .what = EVENT_RESUMED, .why = why, .facts = {fact_number("paused_ms", ms)}});
}

static void say_refusal(const struct supervisor *s)
{
    say_refused(&s->session->report, s->run.refused_pid,
                s->run.lease == SUPERVISE_LEASE_HELD
                    ? "rlock keeps the lock until that process ends"
                    : "that process runs on without the lock");
}

/* Say that the kernel didn't find or execute the command, and what its first word may mean. */
static void say_not_executed(const struct supervisor *s, const char *word)
{
    struct mistake mistake = mistake_in_command(word);
    char *shown = url_masked_copy(word);
    char why[300];

    snprintf(why, sizeof why, "%.200s: %s", shown != NULL ? shown : "the command",
             strerror(s->last.error));
    say(s, REPORT_FAILURE, event_of_reason(s->run.reason), why, mistake.hint);
    free(shown);
}

static void say_not_started(const struct supervisor *s)
{
    const struct report *report = &s->session->report;
    int failed = s->last.error;

    if (failed == SPAWN_TOO_LATE) {
        report_fault(report, s->run.reason,
                     "the lease ended before the command was started: use a longer --ttl", 0);
        return;
    }
    if (!s->last.is_exec_error) {
        report_fault(report, s->run.reason, "the command can't be started", failed);
        return;
    }
    say_not_executed(s, s->plan->guard_plan->spawn.argv[0]);
}

static void say_guard_lost(const struct supervisor *s)
{
    const char *hint = s->run.state == SUPERVISE_STATE_REPLACING ? "the command is being ended"
                                                                 : "the command was ended";
    char why[200];

    snprintf(why, sizeof why, "the process that guards the command %s", s->guard_fate);
    say(s, REPORT_FAILURE, EVENT_GUARD_LOST, why, hint);
}

static void say_max_hold(const struct supervisor *s)
{
    int64_t limit_ms = s->plan->max_hold_ms;
    struct message message = {.what = EVENT_MAX_HOLD};
    struct ending ending;
    char limit[UNITS_TEXT_BYTES];
    char hint[300];
    char why[100];

    if (s->plan->kind == SUPERVISE_HOLD) {
        say(s, REPORT_NOTICE, EVENT_ENDED, "the time of the hold is over", NULL);
        return;
    }
    units_tenths(limit, limit_ms);
    snprintf(why, sizeof why, "the command ran for %s, the limit", limit);
    put_ending(s, &ending, hint);
    message.why = why;
    message.hint = hint;
    message_add(&message, fact_number("limit_ms", limit_ms));
    message_add(&message, fact_text("command", guard_command(s->plan->guard_plan)));
    ending_add_facts(&message, &ending);
    report_say(&s->session->report, REPORT_FAILURE, message);
}

/* The renewal after a failed one is a notice, as the failure was. */
static void say_renewed(struct supervisor *s, bool was_restored)
{
    if (was_restored)
        say(s, REPORT_NOTICE, EVENT_RESTORED,
            "the key had vanished, and rlock wrote it again: no other rlock was granted the lock "
            "since",
            NULL);
    else
        say(s, s->trouble[0] != '\0' ? REPORT_NOTICE : REPORT_STEP, EVENT_RENEWED, NULL, NULL);
    s->trouble[0] = '\0';
}

static void say_no_renewer(const struct supervisor *s)
{
    say(s, REPORT_NOTICE, EVENT_RENEWAL_FAILED, s->no_renewer.text,
        "rlock tries again; look at the limits ulimit -u and -n");
}

static void say_all(struct supervisor *s)
{
    static const struct {
        enum supervise_action action;
        void (*say)(const struct supervisor *);
    } rows[] = {{SUPERVISE_ACTION_SAY_LOST, say_loss},
                {SUPERVISE_ACTION_SAY_GUARD_LOST, say_guard_lost},
                {SUPERVISE_ACTION_SAY_PAUSED, say_paused},
                {SUPERVISE_ACTION_SAY_RESUMED, say_resumed},
                {SUPERVISE_ACTION_SAY_REFUSED, say_refusal},
                {SUPERVISE_ACTION_SAY_MAX_HOLD, say_max_hold},
                {SUPERVISE_ACTION_SAY_NOT_STARTED, say_not_started},
                {SUPERVISE_ACTION_SAY_NO_RENEWER, say_no_renewer}};
    bool loses = (s->unsaid & SUPERVISE_ACTION_SAY_LOST) != 0 && s->run.on_lost != ON_LOST_IGNORE;
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((s->unsaid & rows[i].action) != 0)
            rows[i].say(s);
    if ((loses || (s->unsaid & SUPERVISE_ACTION_SAY_MAX_HOLD) != 0) &&
        s->run.state < SUPERVISE_STATE_RELEASING)
        s->has_announced_end = true;
    s->unsaid = 0;
}

/* ---- carrying out actions ---- */

static void handle(struct supervisor *s, enum supervise_event event, struct supervise_input input);

/*
 * Called 100 ms after the grant: a shorter run needs neither the renewer's thread nor the list of
 * our children. The list is opened first, so that the renewer's connection can't take the last free
 * descriptor. From now on, until rlock_unkeep(), this process may not fork.
 */
static void start_renewer(struct supervisor *s)
{
    enum rlock_status st;
    int events;

    guard_client_stand_by(s->guard);
    st = rlock_keep(s->session->lock, &events, &s->no_renewer);
    s->renewer = st == RLOCK_OK ? events : -1;
    handle(s, st == RLOCK_OK ? SUPERVISE_EVENT_RENEWER_STARTED : SUPERVISE_EVENT_RENEWER_FAILED,
           (struct supervise_input){0});
}

static void pass_signal(struct supervisor *s)
{
    if (runs_command(s))
        guard_client_signal(s->guard, s->signal.number, s->signal.from_terminal);
    else if (!proctree_signal_root(&s->guard->tree, s->signal.number))
        handle(s, SUPERVISE_EVENT_TERM_REFUSED,
               (struct supervise_input){.pid = s->guard->tree.root});
}

/*
 * Carry out the actions, in the order of enum supervise_action. If the guard has failed, the
 * messages wait until replace_guard() has begun to kill the command.
 */
static void act(struct supervisor *s, unsigned actions)
{
    if ((actions & SUPERVISE_ACTION_DISMISS_GUARD) != 0)
        guard_client_dismiss(s->guard);
    if ((actions & SUPERVISE_ACTION_EXTEND_GUARD) != 0)
        guard_client_extend(s->guard, supervise_state_deadlines(&s->run));
    if ((actions & SUPERVISE_ACTION_PASS_SIGNAL) != 0)
        pass_signal(s);
    if ((actions & SUPERVISE_ACTION_LOOK) != 0)
        proctree_look(&s->guard->tree);
    if ((actions & SUPERVISE_ACTION_FORGET) != 0)
        proctree_forget(&s->guard->tree);
    if ((actions & SUPERVISE_ACTION_END_COMMAND) != 0)
        guard_client_end(s->guard, s->run.kill_at_ms);
    if ((actions & SUPERVISE_ACTION_START_RENEWER) != 0)
        start_renewer(s);
    s->unsaid |= actions & ~(SUPERVISE_ACTION_SAY_LOST - 1U);
    if (s->run.state != SUPERVISE_STATE_REPLACING)
        say_all(s);
}

static void handle(struct supervisor *s, enum supervise_event event, struct supervise_input input)
{
    act(s, supervise_state_handle(&s->run, event, rlock_clock_ms(), input));
}

/* ---- receiving events ---- */

static bool is_watching(const struct supervisor *s)
{
    return s->run.state < SUPERVISE_STATE_REPLACING;
}

/* If rlock runs no command, nothing is lost when another process releases the lock by its token. */
static void take_loss(struct supervisor *s, const struct rlock_event *event)
{
    if (event->kind == RLOCK_KEPT_RELEASED && !runs_command(s)) {
        say(s, s->plan->kind == SUPERVISE_HOLD ? REPORT_NOTICE : REPORT_STEP, EVENT_RELEASED,
            "another process released the lock by its token", NULL);
        handle(s, SUPERVISE_EVENT_GIVEN_BACK, (struct supervise_input){0});
        return;
    }
    snprintf(s->lost_why, sizeof s->lost_why, "%s", event->text);
    s->loss = event->loss;
    handle(s, SUPERVISE_EVENT_LOCK_LOST, (struct supervise_input){0});
}

/* Acts upon each event before it is reported: a message may block for 200 ms. */
static void take_events(struct supervisor *s)
{
    struct rlock_event event;

    while (read(s->renewer, &event, sizeof event) == (ssize_t)sizeof event)
        switch (event.kind) {
        case RLOCK_KEPT_RENEWED:
        case RLOCK_KEPT_RESTORED:
            s->result->renewals++;
            handle(
                s, SUPERVISE_EVENT_RENEWED,
                (struct supervise_input){.sent_ms = event.sent_ms, .expires_ms = event.expires_ms});
            say_renewed(s, event.kind == RLOCK_KEPT_RESTORED);
            break;
        case RLOCK_KEPT_RELEASED:
        case RLOCK_KEPT_LOST:
            take_loss(s, &event);
            break;
        case RLOCK_KEPT_TROUBLE:
            snprintf(s->trouble, sizeof s->trouble, "%s", event.text);
            say(s, REPORT_NOTICE, EVENT_RENEWAL_FAILED, event.text, NULL);
            break;
        }
}

static enum exit_reason reason_not_started(const struct guard_news *news)
{
    if (news->error == SPAWN_TOO_LATE)
        return REASON_LOST;
    if (!news->is_exec_error)
        return REASON_SYSTEM;
    return news->error == ENOENT ? REASON_NOT_FOUND : REASON_NOT_EXECUTABLE;
}

static void take_message(struct supervisor *s, const struct guard_news *news)
{
    struct supervise_input input = {
        .news = news, .is_behind = news->answered != s->guard->asked, .pid = news->pid};

    switch (news->kind) {
    case GUARD_NEWS_AGREES:
        handle(s, SUPERVISE_EVENT_GUARD_AGREED, input);
        break;
    case GUARD_NEWS_PAUSED:
        handle(s, SUPERVISE_EVENT_GUARD_PAUSED, input);
        break;
    case GUARD_NEWS_REFUSED:
        handle(s, news->was_kill ? SUPERVISE_EVENT_KILL_REFUSED : SUPERVISE_EVENT_TERM_REFUSED,
               input);
        break;
    case GUARD_NEWS_FAILED:
        s->last = *news;
        handle(s, SUPERVISE_EVENT_NOT_STARTED,
               (struct supervise_input){.news = news, .reason = reason_not_started(news)});
        break;
    case GUARD_NEWS_DONE:
        s->last = *news;
        handle(s, SUPERVISE_EVENT_COMMAND_ENDED, input);
        break;
    }
}

static void take_news(struct supervisor *s)
{
    struct guard_news news;
    int heard;

    while (is_watching(s) && (heard = guard_client_hear(s->guard, &news)) != 0)
        if (heard < 0)
            handle(s, SUPERVISE_EVENT_GUARD_GONE, (struct supervise_input){0});
        else
            take_message(s, &news);
}

/*
 * The guard's messages come first: one that it sent before it ended the bound process may be in its
 * socket only now.
 */
static void take_bound_end(struct supervisor *s)
{
    take_news(s);
    handle(s, SUPERVISE_EVENT_BOUND_ENDED, (struct supervise_input){0});
}

/*
 * A signal of job control: let the guard stop the command, unless the terminal has sent the signal
 * to the command as well. Then stop rlock, because the shell waits until rlock has stopped.
 */
static void stop_with_the_job(struct supervisor *s, const struct signal_seen *seen)
{
    if (!seen->from_terminal)
        guard_client_signal(s->guard, seen->number, false);
    signals_yield(seen->number);
}

/*
 * Reads one signal in each turn of the loop. Signals may come faster than they are passed on, and
 * the guard's answers have to be read meanwhile: its last message is lost if the socket is full.
 */
static void take_signal(struct supervisor *s)
{
    if (!signals_take(&s->session->signals, &s->signal) ||
        (!runs_command(s) && s->signal.action != SIGNAL_ENDS))
        return;
    if (s->signal.action == SIGNAL_STOPS) {
        stop_with_the_job(s, &s->signal);
        return;
    }
    if (s->signal.from_terminal)
        s->result->from_terminal = s->signal.number;
    handle(s, SUPERVISE_EVENT_SIGNAL, (struct supervise_input){0});
    report_say(&s->session->report, REPORT_STEP,
               (struct message){.what = EVENT_SIGNAL,
                                .why = strsignal(s->signal.number),
                                .facts = {fact_number("signal", s->signal.number)}});
    if (s->plan->kind == SUPERVISE_HOLD)
        say(s, REPORT_NOTICE, EVENT_ENDED, "a signal has ended the hold", NULL);
}

/*
 * A key such as ^C sends a signal to the command and to rlock. The command may have ended by that
 * signal before we have read it from our descriptor. So read it now: rlock exits by the signal.
 */
static void note_pending_signals(struct supervisor *s)
{
    struct signal_seen seen;

    while (signals_take(&s->session->signals, &seen))
        if (seen.from_terminal)
            s->result->from_terminal = seen.number;
}

/*
 * Handle the deadlines that are due. If this process was stopped past a deadline, the guard may
 * have told in time that the command has ended: so its messages are read first.
 */
static void take_deadlines(struct supervisor *s)
{
    int64_t now_ms = rlock_clock_ms();
    enum supervise_event event;

    if (supervise_state_due(&s->run, now_ms, &event))
        take_news(s);
    while (supervise_state_due(&s->run, now_ms, &event))
        handle(s, event, (struct supervise_input){0});
}

/* Else the guard ends the bound process, and tells when the whole tree has ended. */
static bool may_end_by_itself(const struct supervisor *s)
{
    return s->plan->kind == SUPERVISE_BOUND && s->run.state == SUPERVISE_STATE_RUNNING;
}

static void watch_command(struct supervisor *s)
{
    enum { SIGNALS, RENEWER, GUARD, BOUND, TIMER, SERVER, HOOK, WATCHED };
    struct pollfd watch[WATCHED] = {
        [SIGNALS] = {.fd = s->session->signals.fd, .events = POLLIN},
        [RENEWER] = {.fd = s->renewer, .events = POLLIN},
        [GUARD] = {.fd = s->guard->fd, .events = POLLIN},
        [BOUND] = {.fd = may_end_by_itself(s) ? s->guard->tree.root_fd : -1, .events = POLLIN},
        [TIMER] = {.fd = s->timer, .events = POLLIN},
        [SERVER] = {.fd = s->session->private_server.alive_fd, .events = POLLIN},
        [HOOK] = {.fd = s->session->event_hook.fd, .events = POLLIN}};

    timer_set(s->timer, supervise_state_next_ms(&s->run));
    poll(watch, WATCHED, -1);
    if (watch[RENEWER].revents != 0)
        take_events(s);
    if (watch[SERVER].revents != 0 && private_server_has_ended(&s->session->private_server))
        handle(s, SUPERVISE_EVENT_SERVER_GONE, (struct supervise_input){0});
    if (watch[GUARD].revents != 0)
        take_news(s);
    if (watch[BOUND].revents != 0)
        take_bound_end(s);
    if (is_watching(s) && watch[SIGNALS].revents != 0)
        take_signal(s);
    take_deadlines(s);
    if (watch[HOOK].revents != 0)
        session_check_hook(s->session);
    if (!is_watching(s))
        note_pending_signals(s);
}

/* ---- replacing a guard that is dead or silent ---- */

/*
 * Called while a process of the command has not ended after KILL. `refused` is a process to which
 * the kernel refuses our KILL; 0: the processes only take long to end.
 */
static void note_survivor(void *context, pid_t refused)
{
    struct supervisor *s = context;
    enum supervise_event event;

    if (refused != 0) {
        handle(s, SUPERVISE_EVENT_KILL_REFUSED, (struct supervise_input){.pid = refused});
        if (supervise_state_due(&s->run, rlock_clock_ms(), &event)) /* start the renewer, if due */
            handle(s, event, (struct supervise_input){0});
    }
    say_all(s);
}

static void replace_guard(struct supervisor *s)
{
    /* guard_client_fate() comes first, because guard_client_replace() kills the guard. */
    guard_client_fate(s->guard, s->guard_fate, sizeof s->guard_fate);
    guard_client_replace(s->guard, note_survivor, s);
    handle(s, SUPERVISE_EVENT_TREE_ENDED, (struct supervise_input){0});
}

/* ---- starting the command ---- */

static void init_run(struct supervision *run, const struct supervise_plan *plan)
{
    supervise_state_init(run, plan->kind, plan->grant, plan->granted_ms,
                         (enum on_lost)plan->session->options->on_lost, plan->max_hold_ms);
}

static struct guard_request start_request(const struct supervise_plan *plan,
                                          const struct supervision *run)
{
    /* with --on-lost ignore, term_ms is RLOCK_NEVER, but the command must not start too late */
    return (struct guard_request){.kind = GUARD_REQUEST_START,
                                  .grace_ms = plan->grant->timing.grace_ms,
                                  .lease = run->agreed,
                                  .not_after_ms = run->agreed.term_ms < run->expires_ms
                                                      ? run->agreed.term_ms
                                                      : run->expires_ms};
}

/* Must supervise_prepare() fork a guard? With --on-lost ignore a guard has nothing to end. */
static bool needs_guard(const struct supervise_plan *plan)
{
    return plan->kind == SUPERVISE_BOUND && plan->session->options->on_lost != ON_LOST_IGNORE;
}

int supervise_prepare(const struct supervise_plan *plan)
{
    return needs_guard(plan) ? guard_client_prepare(plan->guard, plan->guard_plan) : 0;
}

int supervise_bind(const struct supervise_plan *plan)
{
    struct supervision run;
    struct guard_request request;
    int failed;

    if (!needs_guard(plan))
        return 0;
    init_run(&run, plan);
    request = start_request(plan, &run);
    if (rlock_clock_ms() >= request.not_after_ms)
        return ETIMEDOUT;
    failed = guard_client_start(plan->guard, plan->guard_plan, &request);
    return failed ? failed : guard_client_await(plan->guard, request.not_after_ms);
}

static void start(struct supervisor *s)
{
    const struct supervise_plan *plan = s->plan;
    struct guard_request request = start_request(plan, &s->run);
    int failed;

    s->timer = plan->timer >= 0 ? plan->timer : timer_open();
    failed = s->timer < 0 ? errno : 0;
    if (!runs_command(s))
        return;
    if (session_is_interrupted(s->session)) {
        guard_client_reap(s->guard);
        handle(s, SUPERVISE_EVENT_NOT_STARTED,
               (struct supervise_input){.reason = REASON_INTERRUPTED});
        return;
    }
    environment_put_grant(request.variables, plan->grant);
    if (failed == 0)
        failed = guard_client_start(s->guard, plan->guard_plan, &request);
    /* START is sent first, because a write to the terminal may block. */
    progress_say_granted(&s->session->progress, plan->granted_ms, plan->grant->fence);
    if (failed == 0)
        return;
    report_fault(&s->session->report, REASON_SYSTEM,
                 s->timer < 0 ? "no timer can be made"
                              : "the process that guards the command can't be started",
                 failed);
    guard_client_reap(s->guard);
    handle(s, SUPERVISE_EVENT_NOT_STARTED, (struct supervise_input){.reason = REASON_SYSTEM});
}

/* ---- releasing the lock ---- */

/*
 * How to release the lock: free it, keep it for the rest of --min-hold, or leave the mark of --once
 * that the work is done. `stay_ms` is for how long the key stays on the server.
 */
static enum rlock_ending ending_of(const struct supervisor *s, int64_t *stay_ms)
{
    const struct options *options = s->session->options;
    int64_t rest_ms = s->plan->granted_ms + options->min_hold_ms - rlock_clock_ms();

    *stay_ms = rest_ms;
    if (!s->run.has_run || !runs_command(s))
        return RLOCK_ENDS_FREE;
    if (s->run.reason == REASON_GRANTED && options->once_ms > 0 && s->last.status == 0) {
        *stay_ms = options->once_ms > rest_ms ? options->once_ms : rest_ms;
        return RLOCK_ENDS_DONE;
    }
    return options->min_hold_ms > 0 && rest_ms > 0 ? RLOCK_ENDS_REST : RLOCK_ENDS_FREE;
}

/*
 * The server didn't reply to the release in time, for example because it runs a slow script. Fork a
 * process that tries to release the lock until `expires_ms`, while rlock exits.
 *
 * The renewer's thread was stopped before this fork. A thread that looks up a host name is not
 * copied to the child, so the child starts that look-up again.
 */
static bool release_later(const struct supervisor *s, enum rlock_ending ending, int64_t stay_ms,
                          int64_t expires_ms)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid > 0;
    (void)!child_leave_session("rlock-release", -1);
    child_reset_signals();
    (void)!chdir("/");
    if (s->guard->pid > 0)
        close(s->guard->fd); /* else the guard would wait until this process has ended */
    (void)!rlock_release(s->session->lock, (struct rlock_deadline){expires_ms, -1}, ending, stay_ms,
                         NULL);
    _exit(0);
}

/* Until when a process that stays behind tries to release the lock. */
static int64_t release_by_ms(const struct supervisor *s)
{
    return clock_earlier(rlock_clock_ms() + RELEASE_LATER_MS, s->run.expires_ms);
}

static void say_not_released(const struct supervisor *s, enum rlock_ending ending, int64_t stay_ms,
                             const struct rlock_error *err)
{
    int64_t now = rlock_clock_ms();
    int64_t deadline = release_by_ms(s);
    bool may_pass = err->status == RLOCK_E_UNREACHABLE || err->status == RLOCK_E_SERVER ||
                    err->status == RLOCK_E_NO_QUORUM;
    const char *mark = ending == RLOCK_ENDS_DONE
                           ? "the work may not be marked as done, so another run may repeat it; "
                           : "";
    char more[60] = "";
    char hint[200];

    s->result->is_releasing = runs_command(s) && s->run.lease == SUPERVISE_LEASE_HELD && may_pass &&
                              deadline > now && release_later(s, ending, stay_ms, deadline);
    if (s->result->is_releasing)
        snprintf(more, sizeof more, ", or sooner: rlock tries for another %d s",
                 (int)((deadline - now + 999) / 1000));
    snprintf(hint, sizeof hint, "%sthe lock is free when its ttl ends%s", mark, more);
    say(s, REPORT_NOTICE, EVENT_NOT_RELEASED, err->text, hint);
}

/* Tell the history of the lock how the command ended. */
static void set_end(const struct supervisor *s, enum rlock_ending ending)
{
    enum exit_reason reason = s->run.reason;
    bool has_ended = reason == REASON_GRANTED;
    int status = s->last.status;
    struct rlock_end end = {.status = session_status(s->session, reason),
                            .reason = exit_reason_row(reason)->name,
                            .held_ms = rlock_clock_ms() - s->plan->granted_ms,
                            .renewals = s->result->renewals};

    if (has_ended) {
        end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        end.reason = WIFSIGNALED(status) ? "signal" : "exited";
    }
    if (ending == RLOCK_ENDS_DONE)
        end.reason = "done";
    rlock_set_end(s->session->lock, &end);
}

static void release(struct supervisor *s)
{
    struct rlock_deadline deadline = {rlock_clock_ms() + SESSION_RELEASE_MS, -1};
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t stay_ms;
    enum rlock_ending ending = ending_of(s, &stay_ms);
    enum rlock_status st;

    rlock_unkeep(s->session->lock);
    if (s->run.lease != SUPERVISE_LEASE_HELD)
        deadline.at_ms = rlock_clock_ms() + s->plan->grant->timing.reply_ms;
    if (runs_command(s))
        set_end(s, ending);
    else if (s->run.lease == SUPERVISE_LEASE_HELD)
        deadline.at_ms = release_by_ms(s);
    st = rlock_release(s->session->lock, deadline, ending, stay_ms, &err);
    if (st == RLOCK_LOST || st == RLOCK_GONE) {
        handle(s, SUPERVISE_EVENT_LOCK_MISSING, (struct supervise_input){0});
        return;
    }
    if (st == RLOCK_OK)
        say(s, REPORT_STEP, EVENT_RELEASED, NULL, NULL);
    else if (!private_server_has_ended(&s->session->private_server)) /* else the lock is free */
        say_not_released(s, ending, stay_ms, &err);
    handle(s, SUPERVISE_EVENT_RELEASED, (struct supervise_input){0});
}

/* ---- a whole run ---- */

enum exit_reason supervise(const struct supervise_plan *plan, struct supervise_result *result)
{
    struct supervisor s = {.plan = plan,
                           .session = plan->session,
                           .result = result,
                           .guard = plan->guard,
                           .renewer = -1,
                           .timer = -1};

    *result = (struct supervise_result){.status = 0};
    init_run(&s.run, plan);
    start(&s);
    while (is_watching(&s))
        watch_command(&s);
    if (s.run.state == SUPERVISE_STATE_REPLACING)
        replace_guard(&s);
    result->status = s.last.status;
    result->paused_ms = s.run.paused_ms;
    if (plan->kind == SUPERVISE_BOUND)
        guard_client_reap(s.guard); /* after a release by the token the process runs on */
    if (plan->kind == SUPERVISE_BOUND && s.run.state == SUPERVISE_STATE_RELEASING &&
        s.run.reason == REASON_GRANTED)
        say_bound_ended(&s);
    if (s.run.state == SUPERVISE_STATE_RELEASING)
        release(&s);
    rlock_unkeep(plan->session->lock);
    guard_client_dismiss(s.guard);
    say_ended(&s);
    fds_close(&s.timer);
    return s.run.reason;
}
