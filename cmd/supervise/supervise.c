/* SPDX-License-Identifier: MIT */
/*
 * supervise: from a grant to an exit reason: the command, its guard, the renewer, the release.
 *
 * The guard starts the command; the renewer comes when the command takes long
 * enough to need renewals; the release comes after the guard's last word.
 * Between them everything is one poll: signals, the renewer's events, the
 * guard's news, and one timer.
 *
 * The end of the lease is a matter of time, held by two processes: an end that
 * the renewer reports counts once the guard has agreed to it. A guard that
 * doesn't answer therefore never outlives what it knew, and is replaced.
 */
#include "supervise/supervise.h"

#include "process/fds.h"
#include "process/secret.h"
#include "process/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RELEASE_MS 2000 /* the longest a release may keep us */
#define LATER_MS 10000  /* the longest that it is tried after our end */
#define KEEP_PART 2     /* of the time to the first renewal, the part without a renewer at most */
#define KEEP_AFTER_MS \
    100 /* it is to know the other nodes of a Cluster before the first one fails */

struct supervisor {
    const struct supervise_plan *plan;
    struct supervise_result *result;
    struct guard_client *guard;
    int events; /* the renewer's; -1: there is none */
    int timer;
    int64_t expires_ms;      /* of the lease, as the renewer last saw it */
    struct deadlines agreed; /* what the guard acts by */
    int64_t keep_ms;         /* when the renewer is started; RLOCK_NEVER: it was */
    int64_t max_hold_ms;     /* when --max-hold ends the command; RLOCK_NEVER */
    int64_t paused_ms;       /* since when the tree is frozen; 0: it isn't */
    int64_t answer_ms;       /* by when the guard of a frozen tree must answer; RLOCK_NEVER */
    struct guard_news last;  /* the guard's last word */
    bool is_over;
    bool guard_failed;  /* it was killed, or doesn't move */
    bool guard_is_gone; /* of those: it was killed */
    bool is_lost;
    bool is_held_long; /* --max-hold ended the command */
    bool is_bereft;    /* the private server has ended, with all of its locks */
    pid_t refused;     /* one of the tree that may not be signalled; 0: none */
    bool is_unending;  /* it should have been killed */
    char trouble[256]; /* why the last renewal failed; "": it didn't */
};

static void say(const struct supervisor *h, enum report_level level, const char *what,
                const char *why)
{
    report_say(h->plan->report, level, (struct message){.what = what, .why = why});
}

static bool pauses(const struct supervisor *h)
{
    return h->plan->options->on_lost == ON_LOST_PAUSE;
}

/* From when the tree is to end, or to stop, until it is killed. */
static int64_t notice_ms(const struct supervisor *h)
{
    const struct rlock_timing *timing = &h->plan->grant->timing;

    if (!pauses(h))
        return timing->grace_ms;
    return timing->reply_ms > timing->kill_margin_ms ? timing->reply_ms : timing->kill_margin_ms;
}

static struct deadlines deadlines_of(const struct supervisor *h, int64_t expires_ms)
{
    struct deadlines lease = {RLOCK_NEVER, RLOCK_NEVER};

    if (h->plan->options->on_lost == ON_LOST_IGNORE)
        return lease;
    lease.kill_ms = expires_ms - h->plan->grant->timing.kill_margin_ms;
    lease.term_ms = lease.kill_ms - notice_ms(h);
    return lease;
}

/* A guard whose tree is frozen has no deadline until it is asked for something. */
static void expect_answer(struct supervisor *h, int64_t in_time_ms)
{
    int64_t now = rlock_clock_ms();

    if (h->paused_ms != 0 && h->answer_ms == RLOCK_NEVER)
        h->answer_ms =
            (in_time_ms > now ? in_time_ms : now) + h->plan->grant->timing.kill_margin_ms;
}

static void end_command(struct supervisor *h, int64_t kill_ms)
{
    guard_client_end(h->guard, kill_ms);
    expect_answer(h, 0);
}

/* The lock is not ours, or can't be shown to be: say so once, and end the command if wanted. */
static void lose(struct supervisor *h, const char *why)
{
    int64_t kill_ms = rlock_clock_ms() + h->plan->grant->timing.grace_ms;
    bool kills = h->plan->options->on_lost != ON_LOST_IGNORE;
    const char *hint =
        kills ? "the command is being ended" : "the command runs on (--on-lost ignore)";

    if (h->is_lost)
        return;
    h->is_lost = true;
    report_say(h->plan->report, REPORT_FAILURE,
               (struct message){.what = "lost", .why = why, .hint = h->is_over ? NULL : hint});
    if (kills && !h->is_over)
        end_command(h, kill_ms < h->agreed.kill_ms ? kill_ms : h->agreed.kill_ms);
}

/* Why the end of the lease is near; `what` follows. */
static void say_why(const struct supervisor *h, char *why, size_t room, const char *what)
{
    snprintf(why, room, "no renewal was confirmed in time%s%s%s", h->trouble[0] != '\0' ? ": " : "",
             h->trouble, what);
}

static void lose_by_time(struct supervisor *h)
{
    char why[400];
    char what[100] = "";

    if (pauses(h) && h->last.by_lease)
        snprintf(what, sizeof what, ", and the command could not be frozen%s%.60s",
                 h->last.refused ? ": " : "", h->last.refused ? strerror(h->last.refused) : "");
    say_why(h, why, sizeof why, what);
    if (h->expires_ms - h->plan->grant->timing.kill_margin_ms > h->agreed.kill_ms)
        snprintf(why, sizeof why, "the guard of the command doesn't answer");
    lose(h, why);
}

/* ---- a command that is frozen ---- */

static void note_pause(struct supervisor *h, int64_t since_ms)
{
    char why[400];

    h->answer_ms = RLOCK_NEVER;
    if (h->paused_ms != 0)
        return;
    h->paused_ms = since_ms;
    say_why(h, why, sizeof why, "");
    report_say(h->plan->report, REPORT_NOTICE,
               (struct message){.what = "paused",
                                .why = why,
                                .hint = "the command goes on if the lock proves to be ours still"});
}

/* It goes on, or it has ended. */
static void add_pause(struct supervisor *h)
{
    if (h->paused_ms != 0)
        h->result->paused_ms += rlock_clock_ms() - h->paused_ms;
    h->paused_ms = 0;
    h->answer_ms = RLOCK_NEVER;
}

static void note_agreement(struct supervisor *h, struct deadlines agreed)
{
    int64_t ms = rlock_clock_ms() - h->paused_ms;
    char why[100];

    h->agreed = agreed;
    if (h->paused_ms == 0)
        return;
    add_pause(h);
    snprintf(why, sizeof why, "after %lld.%01d s, as the lock is ours still",
             (long long)(ms / 1000), (int)(ms % 1000 / 100));
    say(h, REPORT_NOTICE, "resumed", why);
}

/* ---- a command that can't be ended ---- */

static void keep(struct supervisor *h);

/* As long as it runs it is to have the lock, if that is ours still: we wait for it, and renew. */
static void note_refused(struct supervisor *h, pid_t pid)
{
    if (h->refused == pid)
        return;
    h->refused = pid;
    guard_say_refused(h->plan->report, pid,
                      h->is_lost ? "it runs on without the lock"
                                 : "the lock is kept as long as it runs");
}

static void replace_refused(void *context, pid_t pid)
{
    struct supervisor *h = context;

    h->is_unending = true;
    note_refused(h, pid);
    if (rlock_clock_ms() >= h->keep_ms)
        keep(h);
}

/* ---- what the others say ---- */

/* An end that comes late is told, too: the guard decides whether it still serves. */
static void extend(struct supervisor *h, int64_t expires_ms)
{
    struct deadlines lease = deadlines_of(h, expires_ms);

    h->expires_ms = expires_ms;
    guard_client_extend(h->guard, lease);
    expect_answer(h, lease.kill_ms);
}

static void take_event(struct supervisor *h, const struct rlock_event *event)
{
    switch (event->kind) {
    case RLOCK_KEPT_RENEWED:
    case RLOCK_KEPT_RESTORED:
        h->result->renewals++;
        extend(h, event->expires_ms);
        if (event->kind == RLOCK_KEPT_RESTORED)
            say(h, REPORT_NOTICE, "restored",
                "the key had vanished and was put back: it was granted to no other rlock since");
        else
            say(h, h->trouble[0] != '\0' ? REPORT_NOTICE : REPORT_STEP, "renewed", NULL);
        h->trouble[0] = '\0';
        break;
    case RLOCK_KEPT_TROUBLE:
        snprintf(h->trouble, sizeof h->trouble, "%s", event->text);
        say(h, REPORT_NOTICE, "renewal-failed", event->text);
        break;
    case RLOCK_KEPT_RELEASED:
    case RLOCK_KEPT_LOST:
        lose(h, event->text);
        break;
    }
}

static void take_events(struct supervisor *h)
{
    struct rlock_event event;

    while (read(h->events, &event, sizeof event) == (ssize_t)sizeof event)
        take_event(h, &event);
}

/* The private server is ours alone, so with its end all of its locks are gone. */
static void look_after_server(struct supervisor *h)
{
    if (!local_has_ended(h->plan->local))
        return;
    h->is_bereft = true;
    lose(h, "the private server has ended, and with it the lock");
}

static void take_news(struct supervisor *h)
{
    struct guard_news news;
    int heard;

    while (!h->is_over && (heard = guard_client_hear(h->guard, &news)) != 0) {
        if (heard < 0) {
            h->guard_failed = true;
            h->guard_is_gone = true;
            h->is_over = true;
        } else if (news.says == GUARD_AGREES) {
            note_agreement(h, news.lease);
        } else if (news.says == GUARD_PAUSED) {
            note_pause(h, news.frozen_since_ms);
        } else if (news.says == GUARD_REFUSED) {
            h->is_unending = h->is_unending || news.was_kill;
            note_refused(h, news.pid);
        } else {
            h->last = news;
            h->is_over = true;
        }
    }
}

/* As the shell expects of a job: whoever it stops, it sees stopped. */
static void stop_with_the_job(struct supervisor *h, const struct signal_seen *seen)
{
    if (!seen->from_terminal)
        guard_client_signal(h->guard, seen->number, false);
    signals_yield(seen->number);
}

/* What the terminal sent to the job ended the command, perhaps before we came to look. */
static void note_last_signals(struct supervisor *h)
{
    struct signal_seen seen;

    while (signals_take(h->plan->signals, &seen))
        if (seen.from_terminal)
            h->result->from_terminal = seen.number;
}

static void take_signals(struct supervisor *h)
{
    struct signal_seen seen;

    while (signals_take(h->plan->signals, &seen)) {
        if (seen.action == SIGNAL_STOPS) {
            stop_with_the_job(h, &seen);
            continue;
        }
        if (seen.from_terminal)
            h->result->from_terminal = seen.number;
        guard_client_signal(h->guard, seen.number, seen.from_terminal);
        say(h, REPORT_STEP, "signal", strsignal(seen.number));
    }
}

/* Until when the guard may be silent: a little longer than it may let the tree live. */
static int64_t guard_limit_ms(const struct supervisor *h)
{
    if (h->is_unending)
        return RLOCK_NEVER; /* it does what can be done */
    if (h->paused_ms != 0)
        return h->answer_ms;
    return h->agreed.kill_ms == RLOCK_NEVER
               ? RLOCK_NEVER
               : h->agreed.kill_ms + h->plan->grant->timing.kill_margin_ms / 2;
}

/*
 * When the renewer is needed for certain: counted, as the first renewal, from before the grant was
 * asked for, as the grant may have come late.
 */
static int64_t keep_late_ms(const struct supervisor *h)
{
    const struct rlock_grant *grant = h->plan->grant;

    return grant->sent_ms + grant->timing.renew_ms / KEEP_PART;
}

/* Most commands have ended before that, and need no thread at all. */
static void keep(struct supervisor *h)
{
    struct rlock_error err;

    h->keep_ms = RLOCK_NEVER;
    if (rlock_keep(h->plan->lock, &h->events, &err) == RLOCK_OK)
        return;
    if (rlock_clock_ms() < keep_late_ms(h)) {
        h->keep_ms = keep_late_ms(h);
        return;
    }
    say(h, REPORT_NOTICE, "renewal-failed", err.text);
    h->keep_ms = rlock_clock_ms() + h->plan->grant->timing.reply_ms;
}

static void judge(struct supervisor *h)
{
    int64_t now = rlock_clock_ms();

    if (now >= h->keep_ms)
        keep(h);
    if (!pauses(h) && (now >= h->agreed.term_ms || now >= h->expires_ms))
        lose_by_time(h);
    if (now >= h->max_hold_ms) {
        h->max_hold_ms = RLOCK_NEVER;
        h->is_held_long = true;
        say(h, REPORT_FAILURE, "max-hold", "the command ran for too long and is being ended");
        end_command(h, now + h->plan->grant->timing.grace_ms);
    }
    if (now >= guard_limit_ms(h))
        take_news(h); /* we may have been stopped while it said all there was to say */
    if (now >= guard_limit_ms(h) && !h->is_over) {
        if (h->paused_ms == 0)
            lose_by_time(h);
        h->guard_failed = true;
        h->is_over = true;
    }
}

/* The earliest time that there is something to judge. */
static int64_t earliest(const struct supervisor *h)
{
    int64_t at = guard_limit_ms(h);

    if (!pauses(h) && !h->is_lost && h->agreed.term_ms < at)
        at = h->agreed.term_ms;
    if (!pauses(h) && !h->is_lost && h->expires_ms < at)
        at = h->expires_ms;
    if (h->max_hold_ms < at)
        at = h->max_hold_ms;
    return h->keep_ms < at ? h->keep_ms : at;
}

static void say_guard_lost(const struct supervisor *h)
{
    char fate[100];
    char why[200];

    guard_client_fate(h->guard, h->guard_is_gone, fate, sizeof fate);
    snprintf(why, sizeof why, "the process that guards the command %s", fate);
    report_say(
        h->plan->report, REPORT_FAILURE,
        (struct message){.what = "guard-lost", .why = why, .hint = "the command is being ended"});
}

static void watch_command(struct supervisor *h)
{
    struct pollfd watch[] = {{.fd = h->plan->signals->fd, .events = POLLIN},
                             {.fd = -1, .events = POLLIN},
                             {.fd = h->guard->fd, .events = POLLIN},
                             {.fd = h->timer, .events = POLLIN},
                             {.fd = -1, .events = POLLIN}};

    while (!h->is_over) {
        timer_set(h->timer, earliest(h));
        watch[1].fd = h->events;
        watch[4].fd = h->plan->local->alive;
        poll(watch, sizeof watch / sizeof watch[0], -1);
        if (watch[1].revents != 0)
            take_events(h);
        if (watch[4].revents != 0)
            look_after_server(h);
        if (watch[2].revents != 0)
            take_news(h);
        if (!h->is_over && watch[0].revents != 0)
            take_signals(h);
        if (!h->is_over)
            judge(h);
    }
    add_pause(h);
    note_last_signals(h);
    if (!h->guard_failed) {
        if (!h->plan->has_waited || h->last.by_lease) /* it is to know that we have heard that */
            guard_client_dismiss(h->guard);
        return;
    }
    say_guard_lost(h);
    guard_client_replace(h->guard, replace_refused, h);
}

/* ---- before and after the command ---- */

/* The guard starts the command. The renewer comes later: nothing may fork beside a thread. */
static enum exit_reason start(struct supervisor *h)
{
    const struct supervise_plan *plan = h->plan;
    struct guard_word word = {.order = GUARD_START, .grant = *plan->grant};
    int failed;

    h->expires_ms = plan->grant->expires_ms;
    h->agreed = word.lease = deadlines_of(h, h->expires_ms);
    /* however the loss of a lease is taken, a command is never started after its end */
    word.not_after_ms = h->agreed.term_ms < h->expires_ms ? h->agreed.term_ms : h->expires_ms;
    h->keep_ms = plan->granted_ms + KEEP_AFTER_MS;
    if (h->keep_ms > keep_late_ms(h))
        h->keep_ms = keep_late_ms(h);
    h->max_hold_ms = plan->options->max_hold_ms > 0 ? plan->granted_ms + plan->options->max_hold_ms
                                                    : RLOCK_NEVER;
    h->timer = timer_open();
    if (h->timer < 0)
        return report_fault(plan->report, REASON_SYSTEM, "timer", errno);
    failed = guard_client_start(h->guard, plan->guard_plan, &word);
    if (failed)
        return report_fault(plan->report, REASON_SYSTEM, "fork", failed);
    return REASON_GRANTED;
}

static enum exit_reason not_started(const struct supervisor *h)
{
    const struct report *report = h->plan->report;
    int failed = h->last.failed;
    enum exit_reason reason;
    char *command;

    if (failed == SPAWN_TOO_LATE)
        return report_fault(report, REASON_LOST, "the lease ended before the command was started",
                            0);
    if (!h->last.forked)
        return report_fault(report, REASON_SYSTEM, "the command can't be started", failed);
    command = secret_shown(h->plan->guard_plan->spawn.argv[0]);
    reason = report_fault(report, failed == ENOENT ? REASON_NOT_FOUND : REASON_NOT_EXECUTABLE,
                          command != NULL ? command : "the command", failed);
    free(command);
    return reason;
}

/* Was the lease proven until after the end? Then the command's status is worth something. */
static enum exit_reason judge_end(struct supervisor *h)
{
    if (h->last.says == GUARD_DONE &&
        (h->last.by_lease || h->last.frozen_since_ms >= h->expires_ms))
        lose_by_time(h);
    if (h->last.says == GUARD_DONE && h->last.is_alone)
        lose(h, "the guard took rlock for dead, and ended the command");
    if (h->is_lost)
        return REASON_LOST;
    if (h->is_unending)
        return REASON_LOST;
    if (h->guard_failed)
        return REASON_SYSTEM;
    return h->is_held_long ? REASON_MAX_HOLD : REASON_GRANTED;
}

/* What becomes of the lock: it may have to stay taken for a while, or for having been done. */
static enum rlock_ending ending_of(const struct supervisor *h, enum exit_reason reason,
                                   int64_t *stay_ms)
{
    const struct options *options = h->plan->options;
    int64_t rest_ms = h->plan->granted_ms + options->min_hold_ms - rlock_clock_ms();

    *stay_ms = rest_ms;
    if (h->last.says == GUARD_FAILED && !h->guard_failed)
        return RLOCK_ENDS_FREE; /* nothing ran */
    if (reason == REASON_GRANTED && options->once_ms > 0 && h->last.status == 0) {
        *stay_ms = options->once_ms > rest_ms ? options->once_ms : rest_ms;
        return RLOCK_ENDS_DONE;
    }
    return options->min_hold_ms > 0 && rest_ms > 0 ? RLOCK_ENDS_REST : RLOCK_ENDS_FREE;
}

/*
 * A server that is busy, say with a script that runs for long, takes the release later. Nobody is
 * to wait for that but a process of its own, which has none of the job's descriptors: who reads
 * what the job writes, or waits for rlock, isn't held up. It ends with the lease at the latest.
 * The renewer has ended by now, so it is no thread of ours that is missing there; a name that is
 * being resolved is given up with its thread.
 */
static bool release_later(const struct supervisor *h, enum rlock_ending ending, int64_t stay_ms,
                          int64_t expires_ms)
{
    pid_t pid = fork();
    int fd;

    if (pid != 0)
        return pid > 0;
    prctl(PR_SET_NAME, "rlock-release");
    setsid(); /* it is no part of the job: nothing that is typed reaches it */
    (void)!chdir("/");
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &h->plan->signals->inherited, NULL);
    fds_drop_inherited();
    if (h->guard->pid > 0)
        close(h->guard->fd); /* the guard ends with us, not with it */
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int each = 0; each <= 2 && fd >= 0; each++)
        dup2(fd, each);
    (void)!rlock_release(h->plan->lock, (struct rlock_deadline){expires_ms, -1}, ending, stay_ms,
                         NULL);
    _exit(0);
}

/* It isn't released: is that tried on, and for how long? */
static void say_not_released(const struct supervisor *h, enum rlock_ending ending, int64_t stay_ms,
                             const struct rlock_error *err)
{
    int64_t now = rlock_clock_ms();
    int64_t deadline = now + LATER_MS < h->expires_ms ? now + LATER_MS : h->expires_ms;
    bool may_pass = err->status == RLOCK_E_UNREACHABLE || err->status == RLOCK_E_SERVER ||
                    err->status == RLOCK_E_NO_QUORUM;
    char hint[120] = "the lock is free when its ttl ends";

    h->result->is_releasing =
        !h->is_lost && may_pass && deadline > now && release_later(h, ending, stay_ms, deadline);
    if (h->result->is_releasing)
        snprintf(hint, sizeof hint,
                 "the lock is free when its ttl ends, or sooner: rlock tries on for %d s",
                 (int)((deadline - now + 999) / 1000));
    report_say(h->plan->report, REPORT_NOTICE,
               (struct message){.what = "not-released", .why = err->text, .hint = hint});
}

/* Last, when nothing runs any more. A lock that turns out not to be ours was not proven. */
static enum exit_reason release(struct supervisor *h, enum exit_reason reason)
{
    struct rlock_deadline deadline = {rlock_clock_ms() + RELEASE_MS, -1};
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t stay_ms;
    enum rlock_ending ending = ending_of(h, reason, &stay_ms);
    enum rlock_status st;
    bool is_gone;

    rlock_unkeep(h->plan->lock);
    h->events = -1;
    if (h->is_bereft)
        return reason; /* there is nothing to give it back to */
    if (h->is_lost)
        deadline.at_ms = rlock_clock_ms() + h->plan->grant->timing.reply_ms;
    st = rlock_release(h->plan->lock, deadline, ending, stay_ms, &err);
    /* gone after its end is as it should be: by then the command had ended */
    is_gone = st == RLOCK_LOST || st == RLOCK_GONE;
    if (is_gone && !h->is_lost && rlock_clock_ms() < h->expires_ms)
        return report_fault(h->plan->report, REASON_LOST,
                            "at the end the lock was gone from the server, or another's", 0);
    if (st != RLOCK_OK && !is_gone && local_has_ended(h->plan->local))
        return reason; /* the server ended after the command did, and the lock with it */
    if (st != RLOCK_OK && !is_gone)
        say_not_released(h, ending, stay_ms, &err);
    else if (st == RLOCK_OK)
        say(h, REPORT_STEP, "released", NULL);
    return reason;
}

enum exit_reason supervise(const struct supervise_plan *plan, struct supervise_result *result)
{
    struct supervisor h = {.plan = plan,
                           .result = result,
                           .guard = plan->guard,
                           .events = -1,
                           .timer = -1,
                           .answer_ms = RLOCK_NEVER};
    enum exit_reason reason;

    *result = (struct supervise_result){.status = 0};
    say(&h, REPORT_STEP, "granted", NULL);
    if (signals_end(plan->signals, &result->interrupted_by))
        reason = REASON_INTERRUPTED;
    else
        reason = start(&h);
    if (reason == REASON_GRANTED) {
        watch_command(&h);
        reason = h.last.says == GUARD_FAILED && !h.guard_failed ? not_started(&h) : judge_end(&h);
    } else {
        guard_client_reap(h.guard);
    }
    result->status = h.last.status;
    reason = release(&h, reason);
    guard_client_reap(h.guard); /* its end is nobody's hurry by now */
    if (h.timer >= 0)
        close(h.timer);
    return reason;
}
