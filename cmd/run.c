/* SPDX-License-Identifier: MIT */
/* run: hold a lock for as long as a command runs. */
#include "run.h"

#include "claim.h"
#include "environment.h"
#include "hold.h"
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

struct run {
    const struct options *options;
    struct session session;
    struct rlock_grant grant;
    int64_t granted_ms; /* 0: never */
    struct hold_result held;
};

static int status_of(const struct run *run, enum verdict verdict)
{
    int status = run->held.status;

    if (verdict != VERDICT_GRANTED)
        return session_status(&run->session, verdict);
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
    verdict = claim(session, &run->grant, &run->granted_ms);
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
