/* SPDX-License-Identifier: MIT */
/* say: messages that the main process and the guard have in common. */
#include "supervise/say.h"

#include "supervise/proctree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void say_lost(const struct report *report, const struct lost *lost)
{
    struct message message = {.what = EVENT_LOST, .why = lost->why, .hint = lost->hint};

    message_add(&message, fact_text("cause", lost->cause));
    if (lost->loss != NULL && lost->loss->cause == RLOCK_LOSS_HELD)
        message_add(&message, fact_party("holder", &lost->loss->by, "held_ms"));
    else if (lost->loss != NULL && lost->loss->cause == RLOCK_LOSS_BROKEN)
        message_add(&message, fact_party("broken_by", &lost->loss->by, NULL));
    message_add(&message, lost->subject);
    ending_add_facts(&message, &lost->ending);
    report_say(report, REPORT_FAILURE, message);
}

void say_refused(const struct report *report, pid_t pid, const char *hint)
{
    char name[32];
    char why[128];

    proctree_name(pid, name);
    snprintf(why, sizeof why, "pid %d (%s): %s, as it has other rights than rlock", (int)pid, name,
             strerror(EPERM));
    report_say(
        report, REPORT_FAILURE,
        (struct message){.what = EVENT_CANNOT_BE_ENDED,
                         .why = why,
                         .hint = hint,
                         .facts = {fact_number("process", pid), fact_text("command", name)}});
}
