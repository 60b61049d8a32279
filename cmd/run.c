/* SPDX-License-Identifier: MIT */
/* run: hold a lock for as long as a command runs. */
#include "run.h"

#include "credentials.h"
#include "environment.h"
#include "hold.h"
#include "local.h"
#include "report.h"
#include "signals.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct run {
    const struct options *options;
    struct report report;
    struct signals signals;
    struct local local;
    struct rlock *lock;
    struct rlock_timing timing;
    struct rlock_grant grant;
    int64_t granted_ms; /* 0: never */
    struct hold_result held;
    int number; /* of the signal that ended the wait */
};

/* ---- ending without a run ---- */

static const char *hint_for(const struct run *run, const struct rlock_error *err)
{
    if (verdict_of(err->status) == VERDICT_UNREACHABLE && run->options->url_from == FROM_DEFAULT)
        return "-u URL names another server, and -u local: is one for this machine alone";
    if (err->status == RLOCK_E_REFUSED && credentials_were_stripped())
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

/* ---- waiting for the lock ---- */

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
    report_say(&run->report, REPORT_NOTICE,
               (struct message){.what = verdict_row(verdict)->name, .why = why});
    return verdict;
}

static enum verdict acquire(struct run *run)
{
    struct rlock_until until = {RLOCK_NEVER, run->signals.fd};
    struct rlock_obstacle obstacle = {.left_ms = -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    if (run->options->wait_ms >= 0)
        until.at_ms = run->report.start_ms + run->options->wait_ms;
    do
        st = rlock_acquire(run->lock, until, &run->grant, &obstacle, &err);
    while (st == RLOCK_STOPPED && !signals_end(&run->signals, &run->number));
    run->granted_ms = rlock_clock_ms();
    if (st == RLOCK_OK)
        return VERDICT_GRANTED;
    if (st == RLOCK_STOPPED)
        return VERDICT_INTERRUPTED;
    if (st == RLOCK_BUSY || st == RLOCK_TIMEOUT || st == RLOCK_SUPERSEDED)
        return say_busy(run, verdict_of(st), &obstacle);
    return give_up(run, &err);
}

static int status_of(const struct run *run, enum verdict verdict)
{
    int status = run->held.status;

    if (verdict_row(verdict)->status == verdict_row(VERDICT_BUSY)->status)
        return (int)run->options->conflict_status;
    if (verdict == VERDICT_INTERRUPTED)
        return 128 + run->number;
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
        .waited_ms = (run->granted_ms > 0 ? run->granted_ms : now) - run->report.start_ms,
        .held_ms = run->grant.fence != 0 ? now - run->granted_ms : 0,
        .renewals = run->held.renewals,
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
    report_say(&run->report, REPORT_NOTICE, (struct message){.what = "no-report", .why = why});
}

static enum verdict run_command(struct run *run)
{
    const struct options *options = run->options;
    char *const shell[] = {"/bin/sh", "-c", (char *)options->command, NULL};
    struct hold_plan plan = {
        .options = options,
        .report = &run->report,
        .signals = &run->signals,
        .lock = run->lock,
        .timing = run->timing,
        .until_ms = run->grant.until_ms,
        .granted_ms = run->granted_ms,
        .keep_fd = run->local.fd,
        .argv = options->command != NULL ? shell : options->argv,
    };
    struct environment environment;
    enum verdict verdict;

    if (environment_make(&environment, environ, options->key, run->timing.ttl_ms, &run->grant,
                         options->pass_credentials != 0))
        plan.envp = environment.all;
    verdict = hold(&plan, &run->held);
    environment_fini(&environment);
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
        .password = run->local.fd >= 0 ? NULL : credentials->password,
        .key = options->key,
        .timing = run->timing,
        .holder = {.host = uname(&host) == 0 ? host.nodename : NULL,
                   .user = user_name(),
                   .command = program_name(options),
                   .label = options->label,
                   .pid = getpid()},
        .connect_ms = options->connect_ms,
        .queue = (enum rlock_queue)options->queue,
    };

    return rlock_open(&run->lock, &config, err);
}

/* A signal that doesn't end us only cuts the wait short. */
static enum rlock_status open_local(struct run *run, struct rlock_error *err)
{
    struct rlock_until until = {run->report.start_ms + run->options->connect_ms, run->signals.fd};
    enum rlock_status st;

    do
        st = local_open(&run->local, until, err);
    while (st == RLOCK_STOPPED && !signals_end(&run->signals, &run->number));
    return st;
}

/* Everything that can be wrong before the lock is asked for. */
static enum rlock_status prepare(struct run *run, struct rlock_error *err)
{
    const struct options *options = run->options;
    struct credentials credentials;
    enum rlock_status st;

    st = credentials_read(&credentials, options, err);
    if (st != RLOCK_OK)
        return st;
    st = rlock_timing_fit(options->ttl_ms, options->kill_after_ms, &run->timing, err);
    if (st == RLOCK_OK && strcmp(credentials.url, LOCAL_URL) == 0)
        st = open_local(run, err);
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

/* So that a shell sees which signal ended its job, as it would have without us. */
static void end_alike(const struct run *run, enum verdict verdict)
{
    int status = run->held.status;

    if (verdict == VERDICT_INTERRUPTED)
        signals_yield(run->number);
    if (verdict == VERDICT_GRANTED && WIFSIGNALED(status) &&
        WTERMSIG(status) == run->held.from_terminal)
        signals_yield(run->held.from_terminal);
}

static enum verdict run_all(struct run *run)
{
    struct rlock_error err = {.status = RLOCK_OK};
    int failed = signals_open(&run->signals);
    enum rlock_status st;
    enum verdict verdict;

    if (failed)
        return report_fault(&run->report, VERDICT_SYSTEM, "signalfd", failed);
    st = prepare(run, &err);
    if (st == RLOCK_STOPPED)
        return VERDICT_INTERRUPTED;
    if (st != RLOCK_OK)
        return give_up(run, &err);
    verdict = acquire(run);
    return verdict == VERDICT_GRANTED ? run_command(run) : verdict;
}

int run(const struct options *options)
{
    struct run run = {.options = options,
                      .report = {.level = level_of(options),
                                 .json = options->json != 0,
                                 .key = options->key,
                                 .start_ms = rlock_clock_ms()},
                      .local = LOCAL_NONE};
    enum verdict verdict = run_all(&run);

    if (verdict == VERDICT_INTERRUPTED && run.held.interrupted_by != 0)
        run.number = run.held.interrupted_by;
    write_report(&run, verdict);
    rlock_close(run.lock);
    local_close(&run.local);
    end_alike(&run, verdict);
    return status_of(&run, verdict);
}
