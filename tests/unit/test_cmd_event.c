/* SPDX-License-Identifier: MIT */
/* test_cmd_event: each event has a name of its own, and an exit reason's event has its name. */
#include "options/event.h"
#include "tap.h"

int main(void)
{
    for (int i = 0; i < EVENTS; i++) {
        ok(event_name((enum event)i) != NULL && *event_name((enum event)i) != '\0');
        for (int other = 0; other < i; other++)
            ok(strcmp(event_name((enum event)i), event_name((enum event)other)) != 0);
    }
    for (int i = 0; i < EXIT_REASONS; i++)
        is_str(event_name(event_of_reason((enum exit_reason)i)),
               exit_reason_row((enum exit_reason)i)->name);
    is_str(event_name(EVENT_LOST), "lost", "the loss of the lock is called lost");
    is_str(event_name(EVENT_NO_REPORT), "no-report", "the last event is called no-report");
    return done_testing();
}
