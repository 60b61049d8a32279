/* SPDX-License-Identifier: MIT */
/*
 * run: hold a lock for as long as a command runs.
 *
 * acquire -> guard (which starts the command) -> keeper -> wait for the
 * guard's last word -> release -> verdict. While the command runs everything
 * is one poll: signals, the keeper's events, the guard's news, and one timer.
 *
 * The end of the lease is a matter of time, held by two processes: an end that
 * the keeper reports counts once the guard has agreed to it. A guard that
 * doesn't answer therefore never outlives what it knew, and is replaced.
 */
#include "run.h"

#include "credentials.h"
#include "environment.h"
#include "guard.h"
#include "local.h"
#include "report.h"
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define RELEASE_MS 2000 /* the longest a release may keep us */

extern char **environ;

struct run {
    const struct options *options;
    struct report report;
    struct signals signals;
    struct local local;
    struct rlock *lock;
    struct rlock_timing timing;
    struct rlock_grant grant;
    struct guard guard;
    int events; /* the keeper's; -1: there is none */
    int timer;

    int64_t end_ms;          /* of the lease, as the keeper last saw it */
    struct deadlines agreed; /* what the guard acts by */
    int64_t granted_ms;
    int64_t max_hold_ms;     /* when --max-hold ends the command; RLOCK_NEVER */
    int64_t renewals;
    struct ward_news last;   /* the guard's last word */
    bool is_over;
    bool guard_failed; /* it was killed, or doesn't move */
    bool is_lost;
    bool is_held_long; /* --max-hold ended the command */
    int from_terminal; /* the last signal that the terminal sent to all of us */
    char trouble[256]; /* why the last renewal failed; "": it didn't */
};

static void say(const struct run *run, enum report_level level, const char *what, const char *why)
{
    report_say(&run->report, level, (struct message){.what = what, .why = why});
}

/* ---- ending without a run ---- */

static const char *hint_for(const struct run *run, const struct rlock_error *err)
{
    if (verdict_of(err->status) == VERDICT_UNREACHABLE &&
        run->options->url_from == FROM_DEFAULT)
        return "-u URL names another server, and -u local: is one for this machine alone";
    if (err->status == RLOCK_E_REFUSED && getenv(ENVIRONMENT_STRIPPED) != NULL)
        return "an outer rlock took passwords out of the environment: use a configuration file, "
               "or --pass-credentials there";
    return NULL;
}

static enum verdict give_up(const struct run *run, const struct rlock_error *err)
{
    enum verdict verdict = verdict_of(err->status);

    report_say(&run->report, REPORT_FAILURE,
               (struct message){.what = verdict_row(verdict)->name,
                                .why = err->text,
                                .hint = hint_for(run, err)});
    return verdict;
}

static enum verdict give_up_for(const struct run *run, enum rlock_status status, const char *what,
                                int sys)
{
    struct rlock_error err = {.status = status};

    snprintf(err.text, sizeof err.text, "%.180s%s%s", what, sys ? ": " : "", sys ? strerror(sys) : "");
    return give_up(run, &err);
}

/* ---- waiting for the lock ---- */

/* A signal while waiting: true if it is to end rlock, which then is not here any more. */
static bool must_stop(const struct run *run, int *number)
{
    struct signal_seen seen;

    while (signals_take(&run->signals, &seen)) {
        *number = seen.number;
        if (seen.action == SIGNAL_ENDS)
            return true;
        if (seen.action == SIGNAL_STOPS)
            signals_yield(seen.number);
    }
    return false;
}

static enum verdict say_busy(const struct run *run, enum verdict verdict,
                             const struct rlock_obstacle *obstacle)
{
    char why[400];

    if (obstacle->holder[0] == '\0')
        snprintf(why, sizeof why, "not had in time");
    else if (obstacle->left_ms < 0)
        snprintf(why, sizeof why, "held by %s, without an end", obstacle->holder);
    else
        snprintf(why, sizeof why, "held by %s, for up to %lld.%01d s more", obstacle->holder,
                 (long long)(obstacle->left_ms / 1000), (int)(obstacle->left_ms % 1000 / 100));
    say(run, REPORT_NOTICE, verdict_row(verdict)->name, why);
    return verdict;
}

static enum verdict acquire(struct run *run, int *number)
{
    struct rlock_until until = {RLOCK_NEVER, run->signals.fd};
    struct rlock_obstacle obstacle = {.left_ms = -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    if (run->options->wait_ms >= 0)
        until.at_ms = run->report.start_ms + run->options->wait_ms;
    do
        st = rlock_acquire(run->lock, until, &run->grant, &obstacle, &err);
    while (st == RLOCK_STOPPED && !must_stop(run, number));
    run->granted_ms = rlock_clock_ms();
    if (st == RLOCK_OK)
        return VERDICT_GRANTED;
    if (st == RLOCK_STOPPED)
        return VERDICT_INTERRUPTED;
    if (st == RLOCK_BUSY || st == RLOCK_TIMEOUT)
        return say_busy(run, verdict_of(st), &obstacle);
    return give_up(run, &err);
}

/* ---- while the command runs ---- */

static struct deadlines deadlines_of(const struct run *run, int64_t end_ms)
{
    struct deadlines lease = {RLOCK_NEVER, RLOCK_NEVER};

    if (run->options->on_lost == ON_LOST_KILL) {
        lease.kill_ms = end_ms - run->timing.margin_ms;
        lease.term_ms = lease.kill_ms - run->timing.grace_ms;
    }
    return lease;
}

/* The lock is not ours, or can't be shown to be: say so once, and end the command if wanted. */
static void lose(struct run *run, const char *why)
{
    int64_t kill_ms = rlock_clock_ms() + run->timing.grace_ms;
    bool kills = run->options->on_lost == ON_LOST_KILL;

    if (run->is_lost)
        return;
    run->is_lost = true;
    report_say(&run->report, REPORT_FAILURE,
               (struct message){.what = "lost",
                                .why = why,
                                .hint = kills ? "the command is being ended"
                                              : "the command runs on (--on-lost ignore)"});
    if (kills)
        guard_end(&run->guard, kill_ms < run->agreed.kill_ms ? kill_ms : run->agreed.kill_ms);
}

static void lose_by_time(struct run *run)
{
    char why[300];

    snprintf(why, sizeof why, "no renewal was confirmed in time%s%s",
             run->trouble[0] != '\0' ? ": " : "", run->trouble);
    if (run->end_ms > run->agreed.kill_ms + run->timing.margin_ms)
        snprintf(why, sizeof why, "the guard of the command doesn't answer");
    lose(run, why);
}

static void take_event(struct run *run, const struct rlock_event *event)
{
    switch (event->kind) {
    case RLOCK_KEPT_RENEWED:
    case RLOCK_KEPT_RESTORED:
        run->renewals++;
        run->end_ms = event->until_ms;
        guard_extend(&run->guard, deadlines_of(run, event->until_ms));
        if (event->kind == RLOCK_KEPT_RESTORED)
            say(run, REPORT_NOTICE, "restored",
                "the key had vanished from the server and was put back; nobody had it since");
        else
            say(run, run->trouble[0] != '\0' ? REPORT_NOTICE : REPORT_STEP, "renewed", NULL);
        run->trouble[0] = '\0';
        break;
    case RLOCK_KEPT_TROUBLE:
        snprintf(run->trouble, sizeof run->trouble, "%s", event->text);
        say(run, REPORT_NOTICE, "renewal failed, trying again", event->text);
        break;
    case RLOCK_KEPT_LOST:
        lose(run, event->text);
        break;
    }
}

static void take_events(struct run *run)
{
    struct rlock_event event;

    while (read(run->events, &event, sizeof event) == (ssize_t)sizeof event)
        take_event(run, &event);
}

static void take_news(struct run *run)
{
    struct ward_news news;
    int heard;

    while (!run->is_over && (heard = guard_hear(&run->guard, &news)) != 0) {
        if (heard < 0) {
            run->guard_failed = true;
            run->is_over = true;
        } else if (news.says == WARD_AGREES) {
            run->agreed = news.lease;
        } else {
            run->last = news;
            run->is_over = true;
        }
    }
}

/* As the shell expects of a job: whoever it stops, it sees stopped. */
static void stop_with_the_job(struct run *run, const struct signal_seen *seen)
{
    if (!seen->from_terminal)
        guard_signal(&run->guard, seen->number);
    signals_yield(seen->number);
}

static void take_signals(struct run *run)
{
    struct signal_seen seen;

    while (signals_take(&run->signals, &seen)) {
        if (seen.action == SIGNAL_STOPS) {
            stop_with_the_job(run, &seen);
            continue;
        }
        if (seen.from_terminal)
            run->from_terminal = seen.number; /* the command has it already */
        else
            guard_signal(&run->guard, seen.number);
        say(run, REPORT_STEP, "signal", strsignal(seen.number));
    }
}

/* Until when the guard may be silent: a little longer than it may let the tree live. */
static int64_t guard_limit_ms(const struct run *run)
{
    return run->agreed.kill_ms == RLOCK_NEVER ? RLOCK_NEVER
                                              : run->agreed.kill_ms + run->timing.margin_ms / 2;
}

static void judge(struct run *run)
{
    int64_t now = rlock_clock_ms();

    if (now >= run->agreed.term_ms || now >= run->end_ms)
        lose_by_time(run);
    if (now >= run->max_hold_ms) {
        run->max_hold_ms = RLOCK_NEVER;
        run->is_held_long = true;
        say(run, REPORT_FAILURE, "max-hold", "the command ran for too long and is being ended");
        guard_end(&run->guard, now + run->timing.grace_ms);
    }
    if (now >= guard_limit_ms(run)) {
        run->guard_failed = true;
        run->is_over = true;
    }
}

static void set_timer(const struct run *run)
{
    struct itimerspec when = {.it_value = {.tv_sec = 0}};
    int64_t at = guard_limit_ms(run);

    if (!run->is_lost && run->agreed.term_ms < at)
        at = run->agreed.term_ms;
    if (!run->is_lost && run->end_ms < at)
        at = run->end_ms;
    if (run->max_hold_ms < at)
        at = run->max_hold_ms;
    if (at != RLOCK_NEVER) {
        when.it_value.tv_sec = (time_t)(at / 1000);
        when.it_value.tv_nsec = at % 1000 * 1000000 + 1; /* a timer of zero is none */
    }
    timerfd_settime(run->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void supervise(struct run *run)
{
    struct pollfd watch[] = {{.fd = run->signals.fd, .events = POLLIN},
                             {.fd = run->events, .events = POLLIN},
                             {.fd = run->guard.fd, .events = POLLIN},
                             {.fd = run->timer, .events = POLLIN}};

    while (!run->is_over) {
        set_timer(run);
        poll(watch, sizeof watch / sizeof watch[0], -1);
        if (watch[1].revents != 0)
            take_events(run);
        if (watch[2].revents != 0)
            take_news(run);
        if (!run->is_over && watch[0].revents != 0)
            take_signals(run);
        if (!run->is_over)
            judge(run);
    }
    if (!run->guard_failed) {
        guard_dismiss(&run->guard);
        return;
    }
    say(run, REPORT_FAILURE, "guard lost",
        "the process that guards the command was killed or stopped, so the command is being ended");
    guard_replace(&run->guard);
}

/* ---- before and after the command ---- */

/* The guard starts the command; the keeper comes after it, since nothing may fork beside a thread. */
static enum verdict start(struct run *run, char *const *argv, char *const *envp)
{
    struct ward_plan plan = {
        .spawn = {.argv = argv,
                  .envp = envp,
                  .mask = &run->signals.inherited,
                  .ignore_child = run->signals.ignores_child},
        .grace_ms = run->timing.grace_ms,
        .wait_all = run->options->wait_all != 0,
        .keep_fd = run->local.fd,
        .report = &run->report,
    };
    struct rlock_error err;
    int failed;

    run->end_ms = run->grant.until_ms;
    run->agreed = plan.lease = deadlines_of(run, run->end_ms);
    /* however the loss of a lease is taken, a command is never started after its end */
    plan.spawn.not_after_ms =
        run->agreed.term_ms < run->end_ms ? run->agreed.term_ms : run->end_ms;
    run->max_hold_ms =
        run->options->max_hold_ms > 0 ? run->granted_ms + run->options->max_hold_ms : RLOCK_NEVER;
    run->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer < 0)
        return give_up_for(run, RLOCK_E_SYSTEM, "timer", errno);
    failed = guard_start(&run->guard, &plan);
    if (failed)
        return give_up_for(run, RLOCK_E_SYSTEM, "fork", failed);
    if (rlock_keep(run->lock, &run->events, &err) != RLOCK_OK)
        /* without renewals it ends in time by itself; a short command needs none */
        say(run, REPORT_NOTICE, "renewal failed", err.text);
    return VERDICT_GRANTED;
}

static enum verdict not_started(const struct run *run, const char *command)
{
    char why[300];

    if (run->last.failed == SPAWN_TOO_LATE) {
        say(run, REPORT_FAILURE, "lost", "the lease ended before the command could be started");
        return VERDICT_LOST;
    }
    snprintf(why, sizeof why, "%.200s: %s", command, strerror(run->last.failed));
    if (!run->last.forked)
        return give_up_for(run, RLOCK_E_SYSTEM, why, 0);
    if (run->last.failed == ENOENT) {
        say(run, REPORT_FAILURE, "not-found", why);
        return VERDICT_NOT_FOUND;
    }
    say(run, REPORT_FAILURE, "not-executable", why);
    return VERDICT_NOT_EXECUTABLE;
}

/* Was the lease proven until after the end? Then the command's status is worth something. */
static enum verdict judge_end(struct run *run)
{
    if (run->last.says == WARD_DONE && (run->last.by_lease || run->last.ended_ms >= run->end_ms))
        lose_by_time(run);
    if (run->is_lost)
        return VERDICT_LOST;
    if (run->guard_failed)
        return VERDICT_SYSTEM;
    return run->is_held_long ? VERDICT_MAX_HOLD : VERDICT_GRANTED;
}

/* Last, when nothing runs any more. A lock that turns out not to be ours was not proven. */
static enum verdict release(struct run *run, enum verdict verdict)
{
    struct rlock_until until = {rlock_clock_ms() + RELEASE_MS, -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    rlock_unkeep(run->lock);
    run->events = -1;
    if (run->is_lost)
        until.at_ms = rlock_clock_ms() + run->timing.reply_ms;
    st = rlock_release(run->lock, until, &err);
    if (st == RLOCK_LOST && !run->is_lost) {
        say(run, REPORT_FAILURE, "lost",
            "at the end the lock was gone from the server, or another's");
        return VERDICT_LOST;
    }
    if (st != RLOCK_OK && st != RLOCK_LOST)
        report_say(&run->report, REPORT_NOTICE,
                   (struct message){.what = "not released",
                                    .why = err.text,
                                    .hint = "the lock is free when its ttl ends"});
    else
        say(run, REPORT_STEP, "released", NULL);
    return verdict;
}

static int status_of(const struct run *run, enum verdict verdict, int number)
{
    int status = run->last.status;

    if (verdict == VERDICT_BUSY || verdict == VERDICT_TIMEOUT)
        return (int)run->options->conflict_status;
    if (verdict == VERDICT_INTERRUPTED)
        return 128 + number;
    if (verdict != VERDICT_GRANTED)
        return verdict_row(verdict)->status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void write_report(const struct run *run, enum verdict verdict, int number)
{
    int64_t now = rlock_clock_ms();
    struct summary summary = {
        .verdict = verdict,
        .status = status_of(run, verdict, number),
        .waited_ms = (run->granted_ms > 0 ? run->granted_ms : now) - run->report.start_ms,
        .held_ms = run->grant.fence != 0 ? now - run->granted_ms : 0,
        .renewals = run->renewals,
        .fence = run->grant.fence,
    };
    char why[300];
    int failed;

    if (run->options->report == NULL)
        return;
    failed = report_file(&run->report, run->options->report, &summary);
    if (failed == 0)
        return;
    snprintf(why, sizeof why, "%.200s: %s", run->options->report, strerror(failed));
    say(run, REPORT_NOTICE, "no report", why);
}

static enum verdict hold(struct run *run, int *number)
{
    char *const shell[] = {"/bin/sh", "-c", (char *)run->options->command, NULL};
    char *const *argv = run->options->command != NULL ? shell : run->options->argv;
    struct environment environment = {.all = NULL};
    enum verdict verdict = VERDICT_GRANTED;

    if (must_stop(run, number))
        verdict = VERDICT_INTERRUPTED;
    else if (!environment_make(&environment, environ, run->options->key, run->timing.ttl_ms,
                               &run->grant, run->options->pass_credentials != 0))
        verdict = give_up_for(run, RLOCK_E_MEMORY, "no memory", 0);
    else
        verdict = start(run, argv, environment.all);
    if (verdict == VERDICT_GRANTED) {
        supervise(run);
        verdict = run->last.says == WARD_FAILED && !run->guard_failed ? not_started(run, argv[0])
                                                                      : judge_end(run);
    }
    environment_fini(&environment);
    return release(run, verdict);
}

/* ---- from the beginning ---- */

static const char *program_name(const struct options *options)
{
    const char *slash;

    if (options->command != NULL)
        return "sh";
    slash = strrchr(options->argv[0], '/');
    return slash == NULL ? options->argv[0] : slash + 1;
}

/* What an outer rlock took out would have named the server: the default is another one. */
static bool lacks_its_url(const struct options *options)
{
    const char *stripped = getenv(ENVIRONMENT_STRIPPED);

    return options->url_from == FROM_DEFAULT && getenv("REDIS_URL") == NULL && stripped != NULL &&
           strstr(stripped, "_URL") != NULL;
}

/*
 * Who runs us, by name. The local file first: the name service switch costs a
 * tenth of a millisecond, as much as all else that happens before the lock is
 * asked for.
 */
static const char *user_name(void)
{
    FILE *file = fopen("/etc/passwd", "re");
    struct passwd *user = NULL;
    uid_t uid = geteuid();

    while (file != NULL && (user = fgetpwent(file)) != NULL && user->pw_uid != uid)
        continue;
    if (file != NULL)
        fclose(file);
    if (user == NULL)
        user = getpwuid(uid);
    return user == NULL ? NULL : user->pw_name;
}

static enum rlock_status open_lock(struct run *run, const struct credentials *credentials,
                                   struct rlock_error *err)
{
    const struct options *options = run->options;
    struct utsname host;
    const char *url = run->local.fd >= 0 ? run->local.url : credentials->url;
    struct rlock_config config = {
        .urls = &url,
        .n_urls = 1,
        .password = credentials->password,
        .key = options->key,
        .timing = run->timing,
        .holder = {.host = uname(&host) == 0 ? host.nodename : NULL,
                   .user = user_name(),
                   .command = program_name(options),
                   .label = options->label,
                   .pid = getpid()},
        .connect_ms = options->connect_ms,
    };

    return rlock_open(&run->lock, &config, err);
}

/* Everything that can be wrong before the lock is asked for. */
static enum rlock_status prepare(struct run *run, char **argv, struct rlock_error *err)
{
    const struct options *options = run->options;
    struct rlock_until until = {run->report.start_ms + options->connect_ms, run->signals.fd};
    struct credentials credentials;
    enum rlock_status st;

    err->status = RLOCK_E_CONFIG;
    snprintf(err->text, sizeof err->text, "%s",
             options->n_urls > 1 ? "several servers were named, and one is possible"
                                 : "the server's URL held a password, so an outer rlock took it "
                                   "out of the environment: use a configuration file or -u");
    if (options->n_urls > 1 || lacks_its_url(options))
        return RLOCK_E_CONFIG;
    st = credentials_read(&credentials, options, argv, err);
    if (st != RLOCK_OK)
        return st;
    st = rlock_timing_fit(options->ttl_ms, options->kill_after_ms, &run->timing, err);
    if (st == RLOCK_OK && strcmp(credentials.url, LOCAL_URL) == 0)
        st = local_open(&run->local, until, err);
    if (st == RLOCK_OK)
        st = open_lock(run, &credentials, err);
    credentials_fini(&credentials);
    return st;
}

static enum report_level level_of(const struct options *options)
{
    if (options->quiet)
        return REPORT_FAILURE;
    return options->verbose ? REPORT_STEP : REPORT_NOTICE;
}

int run(const struct options *options, char **argv)
{
    struct run run = {.options = options,
                      .report = {.level = level_of(options),
                                 .json = options->json != 0,
                                 .key = options->key,
                                 .start_ms = rlock_clock_ms()},
                      .local = LOCAL_NONE,
                      .events = -1,
                      .timer = -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum verdict verdict = VERDICT_GRANTED;
    enum rlock_status st;
    int number = 0;
    int failed = signals_open(&run.signals);

    if (failed) {
        verdict = give_up_for(&run, RLOCK_E_SYSTEM, "signalfd", failed);
    } else {
        st = prepare(&run, argv, &err);
        if (st == RLOCK_STOPPED)
            verdict = must_stop(&run, &number) ? VERDICT_INTERRUPTED : VERDICT_SYSTEM;
        else if (st != RLOCK_OK)
            verdict = give_up(&run, &err);
    }
    if (verdict == VERDICT_GRANTED)
        verdict = acquire(&run, &number);
    if (verdict == VERDICT_GRANTED) {
        say(&run, REPORT_STEP, "granted", NULL);
        verdict = hold(&run, &number);
    }
    write_report(&run, verdict, number);
    rlock_close(run.lock);
    local_close(&run.local);
    if (verdict == VERDICT_INTERRUPTED)
        signals_yield(number);
    if (verdict == VERDICT_GRANTED && WIFSIGNALED(run.last.status) &&
        WTERMSIG(run.last.status) == run.from_terminal)
        signals_yield(run.from_terminal); /* so that the shell sees that the key ended its job */
    return status_of(&run, verdict, number);
}
