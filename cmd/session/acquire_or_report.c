/* SPDX-License-Identifier: MIT */
/* acquire_or_report: ask for the lock of a session, and say why it was not had. */
#include "session/acquire_or_report.h"

#include <stdio.h>
#include <time.h>

/* With several keys the one is named that is in the way. */
static enum exit_reason say_busy(const struct session *session, enum exit_reason reason,
                                 const struct rlock_obstacle *obstacle)
{
    const struct options *options = session->options;
    char key[100] = "";
    char why[500];

    if (options->n_keys > 1 && obstacle->key < options->n_keys)
        report_escape(key, sizeof key, options->keys[obstacle->key]);
    if (obstacle->trouble.status != RLOCK_OK)
        progress_trouble(why, sizeof why, obstacle, rlock_clock_ms());
    else if (obstacle->holder[0] == '\0')
        snprintf(why, sizeof why, "not had in time");
    else if (obstacle->left_ms < 0)
        snprintf(why, sizeof why, "%s%sheld by %s, without an end", key, *key ? " is " : "",
                 obstacle->holder);
    else
        snprintf(why, sizeof why, "%s%sheld by %s, for up to %lld.%01d s more", key,
                 *key ? " is " : "", obstacle->holder, (long long)(obstacle->left_ms / 1000),
                 (int)(obstacle->left_ms % 1000 / 100));
    report_say(&session->report, REPORT_NOTICE,
               (struct message){.what = exit_reason_row(reason)->name, .why = why});
    return reason;
}

static enum exit_reason say_done(const struct session *session,
                                 const struct rlock_obstacle *obstacle)
{
    time_t at = (time_t)(obstacle->since_ms / 1000);
    char when[40] = "";
    char why[400];
    struct tm utc;

    if (gmtime_r(&at, &utc) != NULL)
        strftime(when, sizeof when, ", at %Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(why, sizeof why, "by %s%s", obstacle->holder, when);
    report_say(&session->report, REPORT_NOTICE,
               (struct message){.what = exit_reason_row(REASON_DONE)->name,
                                .why = why,
                                .who = obstacle->holder,
                                .at_ms = obstacle->since_ms});
    return REASON_DONE;
}

enum exit_reason acquire_or_report(struct session *session, struct rlock_grant *grant,
                                   int64_t *granted_ms)
{
    struct rlock_deadline deadline = {RLOCK_NEVER, session->signals.stop_fd};
    struct rlock_obstacle obstacle = {.left_ms = -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    if (session->options->wait_ms >= 0)
        deadline.at_ms = session->report.start_ms + session->options->wait_ms;
    do
        st = rlock_acquire(session->lock, deadline, grant, &obstacle, &err);
    while (st == RLOCK_STOPPED && !signals_end(&session->signals, &session->number));
    *granted_ms = rlock_clock_ms();
    if (st == RLOCK_OK)
        return REASON_GRANTED;
    if (st == RLOCK_LOST)
        return report_fault(&session->report, REASON_LOST,
                            "no outer lock holds it, as --nested wants: the lock of RLOCK_TOKEN is "
                            "gone, or another one",
                            0);
    if (st == RLOCK_STOPPED)
        return REASON_INTERRUPTED;
    if (st == RLOCK_BUSY || st == RLOCK_TIMEOUT || st == RLOCK_SUPERSEDED)
        return say_busy(session, exit_reason_of(st), &obstacle);
    if (st == RLOCK_DONE)
        return say_done(session, &obstacle);
    return session_give_up(session, &err);
}
