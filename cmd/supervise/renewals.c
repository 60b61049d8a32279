/* SPDX-License-Identifier: MIT */
/* renewals: what the renewer's thread reports, received and told to people. */
#include "supervise/renewals.h"

#include <stdio.h>
#include <unistd.h>

void renewals_init(struct renewals *renewals, struct rlock *lock, const struct report *report)
{
    *renewals = (struct renewals){.lock = lock, .report = report, .events = -1};
}

enum rlock_status renewals_start(struct renewals *renewals, struct rlock_error *err)
{
    enum rlock_status st = rlock_keep(renewals->lock, &renewals->events, err);

    if (st != RLOCK_OK)
        renewals->events = -1;
    return st;
}

void renewals_stop(struct renewals *renewals)
{
    rlock_unkeep(renewals->lock);
    renewals->events = -1;
}

bool renewals_next(const struct renewals *renewals, struct rlock_event *event)
{
    return read(renewals->events, event, sizeof *event) == (ssize_t)sizeof *event;
}

static void say(const struct renewals *renewals, enum report_level level, const char *what,
                const char *why)
{
    report_say(renewals->report, level, (struct message){.what = what, .why = why});
}

/* A renewal after one that failed is told as loudly as the failure was. */
static void say_renewed(struct renewals *renewals, bool was_restored)
{
    if (was_restored)
        say(renewals, REPORT_NOTICE, "restored",
            "the key had vanished and was put back: it was granted to no other rlock since");
    else
        say(renewals, renewals->trouble[0] != '\0' ? REPORT_NOTICE : REPORT_STEP, "renewed", NULL);
    renewals->trouble[0] = '\0';
}

void renewals_say(struct renewals *renewals, const struct rlock_event *event)
{
    if (event->kind == RLOCK_KEPT_RENEWED || event->kind == RLOCK_KEPT_RESTORED) {
        say_renewed(renewals, event->kind == RLOCK_KEPT_RESTORED);
    } else if (event->kind == RLOCK_KEPT_TROUBLE) {
        snprintf(renewals->trouble, sizeof renewals->trouble, "%s", event->text);
        say(renewals, REPORT_NOTICE, "renewal-failed", event->text);
    }
}

void renewals_missing(const struct renewals *renewals, const char *more, char *why, size_t room)
{
    snprintf(why, room, "no renewal was confirmed in time%s%s%s",
             renewals->trouble[0] != '\0' ? ": " : "", renewals->trouble, more);
}
