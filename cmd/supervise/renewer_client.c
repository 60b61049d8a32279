/* SPDX-License-Identifier: MIT */
/* renewer_client: starts the renewer's thread, receives its events and reports them to the user. */
#include "supervise/renewer_client.h"

#include <stdio.h>
#include <unistd.h>

void renewer_client_init(struct renewer_client *renewer, struct rlock *lock,
                         const struct report *report)
{
    *renewer = (struct renewer_client){.lock = lock, .report = report, .events = -1};
}

enum rlock_status renewer_client_start(struct renewer_client *renewer, struct rlock_error *err)
{
    enum rlock_status st = rlock_keep(renewer->lock, &renewer->events, err);

    if (st != RLOCK_OK)
        renewer->events = -1;
    return st;
}

void renewer_client_stop(struct renewer_client *renewer)
{
    rlock_unkeep(renewer->lock);
    renewer->events = -1;
}

bool renewer_client_next_event(const struct renewer_client *renewer, struct rlock_event *event)
{
    return read(renewer->events, event, sizeof *event) == (ssize_t)sizeof *event;
}

static void say(const struct renewer_client *renewer, enum report_level level, enum event what,
                const char *why)
{
    report_say(renewer->report, level, (struct message){.what = what, .why = why});
}

/*
 * If the last renewal failed, report this one as a notice, because the failure was reported as a
 * notice.
 */
static void say_renewed(struct renewer_client *renewer, bool was_restored)
{
    if (was_restored)
        say(renewer, REPORT_NOTICE, EVENT_RESTORED,
            "the key had vanished, and rlock wrote it again: no other rlock was granted the lock "
            "since");
    else
        say(renewer, renewer->trouble[0] != '\0' ? REPORT_NOTICE : REPORT_STEP, EVENT_RENEWED,
            NULL);
    renewer->trouble[0] = '\0';
}

void renewer_client_report(struct renewer_client *renewer, const struct rlock_event *event)
{
    if (event->kind == RLOCK_KEPT_RENEWED || event->kind == RLOCK_KEPT_RESTORED) {
        say_renewed(renewer, event->kind == RLOCK_KEPT_RESTORED);
    } else if (event->kind == RLOCK_KEPT_TROUBLE) {
        snprintf(renewer->trouble, sizeof renewer->trouble, "%s", event->text);
        say(renewer, REPORT_NOTICE, EVENT_RENEWAL_FAILED, event->text);
    }
}

void renewer_client_overdue_text(const struct renewer_client *renewer, const char *more, char *text,
                                 size_t room)
{
    snprintf(text, room, "no renewal was confirmed in time%s%s%s",
             renewer->trouble[0] != '\0' ? ": " : "", renewer->trouble, more);
}
