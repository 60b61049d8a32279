/* SPDX-License-Identifier: MIT */
/* run: hold a lock for as long as a command runs. */
#include "run.h"

#include "environment.h"
#include "hold.h"
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

struct run {
    const struct options *options;
    struct session session;
    struct rlock_grant grant;
    int64_t granted_ms; /* 0: never */
    struct hold_result held;
};

/* ---- waiting for the lock ---- */

/* With several keys the one is named that is in the way. */
static enum verdict say_busy(const struct run *run, enum verdict verdict,
                             const struct rlock_obstacle *obstacle)
{
    const struct options *options = run->options;
    char key[100] = "";
    char why[500];

    if (options->n_keys > 1 && obstacle->key < options->n_keys)
        report_escape(key, sizeof key, options->keys[obstacle->key]);
    if (obstacle->holder[0] == '\0')
        snprintf(why, sizeof why, "not had in time");
    else if (obstacle->left_ms < 0)
        snprintf(why, sizeof why, "%s%sheld by %s, without an end", key, *key ? " is " : "",
                 obstacle->holder);
    else
        snprintf(why, sizeof why, "%s%sheld by %s, for up to %lld.%01d s more", key,
                 *key ? " is " : "", obstacle->holder, (long long)(obstacle->left_ms / 1000),
                 (int)(obstacle->left_ms % 1000 / 100));
    report_say(&run->session.report, REPORT_NOTICE,
               (struct message){.what = verdict_row(verdict)->name, .why = why});
    return verdict;
}

static enum verdict say_done(const struct run *run, const struct rlock_obstacle *obstacle)
{
    time_t at = (time_t)(obstacle->since_ms / 1000);
    char when[40] = "";
    char why[400];
    struct tm utc;

    if (gmtime_r(&at, &utc) != NULL)
        strftime(when, sizeof when, ", at %Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(why, sizeof why, "by %s%s", obstacle->holder, when);
    report_say(&run->session.report, REPORT_NOTICE,
               (struct message){.what = verdict_row(VERDICT_DONE)->name,
                                .why = why,
                                .who = obstacle->holder,
                                .at_ms = obstacle->since_ms});
    return VERDICT_DONE;
}

static enum verdict acquire(struct run *run)
{
    struct rlock_until until = {RLOCK_NEVER, run->session.signals.stop_fd};
    struct rlock_obstacle obstacle = {.left_ms = -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    if (run->options->wait_ms >= 0)
        until.at_ms = run->session.report.start_ms + run->options->wait_ms;
    do
        st = rlock_acquire(run->session.lock, until, &run->grant, &obstacle, &err);
    while (st == RLOCK_STOPPED && !signals_end(&run->session.signals, &run->session.number));
    run->granted_ms = rlock_clock_ms();
    if (st == RLOCK_OK)
        return VERDICT_GRANTED;
    if (st == RLOCK_STOPPED)
        return VERDICT_INTERRUPTED;
    if (st == RLOCK_BUSY || st == RLOCK_TIMEOUT || st == RLOCK_SUPERSEDED)
        return say_busy(run, verdict_of(st), &obstacle);
    if (st == RLOCK_DONE)
        return say_done(run, &obstacle);
    return session_give_up(&run->session, &err);
}

static int status_of(const struct run *run, enum verdict verdict)
{
    int status = run->held.status;

    if (verdict_row(verdict)->status == verdict_row(VERDICT_BUSY)->status)
        return (int)run->options->conflict_status;
    if (verdict == VERDICT_INTERRUPTED)
        return 128 + run->session.number;
    if (verdict != VERDICT_GRANTED)
        return verdict_row(verdict)->status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void write_report(const struct run *run, enum verdict verdict)
{
    int64_t now = rlock_clock_ms();
    struct summary summary = {
        .verdict = verdict,
        .status = status_of(run, verdict),
        .waited_ms = (run->granted_ms > 0 ? run->granted_ms : now) - run->session.report.start_ms,
        .held_ms = run->grant.fence != 0 ? now - run->granted_ms : 0,
        .renewals = run->held.renewals,
        .paused_ms = run->held.paused_ms,
        .fence = run->grant.fence,
    };
    char why[300];
    int failed;

    if (run->options->report == NULL)
        return;
    failed = report_file(&run->session.report, run->options->report, &summary);
    if (failed == 0)
        return;
    snprintf(why, sizeof why, "%.200s: %s", run->options->report, strerror(failed));
    report_say(&run->session.report, REPORT_NOTICE,
               (struct message){.what = "no-report", .why = why});
}

static enum verdict run_command(struct run *run)
{
    const struct options *options = run->options;
    char *const shell[] = {"/bin/sh", "-c", (char *)options->command, NULL};
    struct hold_plan plan = {
        .options = options,
        .report = &run->session.report,
        .signals = &run->session.signals,
        .lock = run->session.lock,
        .timing = run->grant.timing,
        .until_ms = run->grant.until_ms,
        .granted_ms = run->granted_ms,
        .keep_fd = run->session.local.fd,
        .argv = options->command != NULL ? shell : options->argv,
    };
    char *keys = options_keys(options, '\n');
    struct environment_lock lock = {
        .keys = keys, .has_slot = options->mode == RLOCK_SLOTS, .grant = &run->grant};
    struct environment environment = {.all = NULL};
    enum verdict verdict;

    if (keys != NULL &&
        environment_make(&environment, environ, &lock, options->pass_credentials != 0))
        plan.envp = environment.all;
    verdict = hold(&plan, &run->held);
    environment_fini(&environment);
    free(keys);
    return verdict;
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

/* So that a shell sees which signal ended its job, as it would have without us. */
static void end_alike(const struct run *run, enum verdict verdict)
{
    int status = run->held.status;

    if (verdict == VERDICT_INTERRUPTED)
        signals_yield(run->session.number);
    if (verdict == VERDICT_GRANTED && WIFSIGNALED(status) &&
        WTERMSIG(status) == run->held.from_terminal)
        signals_yield(run->held.from_terminal);
}

static enum verdict run_all(struct run *run)
{
    struct session *session = &run->session;
    struct rlock_error err = {.status = RLOCK_OK};
    int failed = signals_open(&session->signals);
    enum rlock_status st;
    enum verdict verdict;

    if (failed)
        return report_fault(&session->report, VERDICT_SYSTEM, "signalfd", failed);
    st = session_open(session, program_name(run->options), &err);
    if (st == RLOCK_STOPPED)
        return VERDICT_INTERRUPTED;
    if (st != RLOCK_OK)
        return session_give_up(session, &err);
    verdict = acquire(run);
    return verdict == VERDICT_GRANTED ? run_command(run) : verdict;
}

int run(const struct options *options)
{
    struct run run = {.options = options};
    enum verdict verdict;

    session_init(&run.session, options);
    verdict = run_all(&run);
    if (verdict == VERDICT_INTERRUPTED && run.held.interrupted_by != 0)
        run.session.number = run.held.interrupted_by;
    write_report(&run, verdict);
    session_close(&run.session);
    end_alike(&run, verdict);
    return status_of(&run, verdict);
}
