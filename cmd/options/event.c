/* SPDX-License-Identifier: MIT */
/* event: the names of the events that messages report, such as "renewal-failed". */
#include "options/event.h"

#define NAME(constant, name) [constant] = (name),

static const char *const names[EVENTS] = {EVENT_NAMES(NAME)};

enum event event_of_reason(enum exit_reason reason)
{
    return (enum event)reason;
}

const char *event_name(enum event event)
{
    return (int)event < EXIT_REASONS ? exit_reason_row((enum exit_reason)event)->name
                                     : names[event];
}
